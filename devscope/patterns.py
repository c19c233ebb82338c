"""What patterns of backends are written with: see docs/partitioning.md."""

from devscope.analysis.patterns import (
    Custom,
    Match,
    NearMiss,
    Pattern,
    broadcast,
    constant,
    dominated,
    elementwise,
    match,
    near_miss,
    one_or_more,
    op,
    pdl_pattern,
    relu,
    wildcard,
)

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
    "pdl_pattern",
    "relu",
    "wildcard",
]
