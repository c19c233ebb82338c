"""Patterns of operations, as backends describe what they take: see docs/partitioning.md.

`language` has what patterns are made of, `matcher` finds them, `matches` is what it gives, `roots` where it looks;
`pdl` makes one from a pattern of MLIR's PDL dialect.
"""

from devscope.analysis.patterns.attributes import splat_value, transposes
from devscope.analysis.patterns.language import (
    Custom,
    Pattern,
    broadcast,
    constant,
    dominated,
    elementwise,
    one_or_more,
    op,
    relu,
    wildcard,
)
from devscope.analysis.patterns.matcher import match, near_miss
from devscope.analysis.patterns.matches import Match, NearMiss
from devscope.analysis.patterns.pdl import pdl_pattern
from devscope.dialects.names import op_name

__all__ = [
    "Custom",
    "Match",
    "NearMiss",
    "Pattern",
    "broadcast",
    "constant",
    "dominated",
    "elementwise",
    "match",
    "near_miss",
    "one_or_more",
    "op",
    "op_name",
    "pdl_pattern",
    "relu",
    "splat_value",
    "transposes",
    "wildcard",
]
