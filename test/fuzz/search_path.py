"""Makes the modules of other folders of tests importable, where pytest does not."""

import sys
from pathlib import Path

_TEST = Path(__file__).resolve().parent.parent
sys.path += [str(_TEST / folder) for folder in ("", "passes/device_plan", "e2e")]
