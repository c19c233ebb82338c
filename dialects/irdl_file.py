"""The ``device`` dialect in IRDL, as `devscope.dialects.irdl_export` has written it."""

from pathlib import Path

IRDL_FILE = Path(__file__).with_name("device.irdl.mlir")
