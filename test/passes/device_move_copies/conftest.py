"""Makes the modules of this folder and of the planner's tests importable.

At the end of the path: tests of the planner import its ``conftest``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "device_plan")]
