"""What patterns of backends are written with: see docs/partitioning.md."""

from devscope.analysis.patterns import *  # noqa: F403
