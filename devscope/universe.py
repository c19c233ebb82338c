"""What plain ``xdsl-opt`` sees of devscope through the ``xdsl.universe`` entry point."""

from xdsl.ir import Dialect
from xdsl.universe import Universe

from devscope.passes import get_all_passes


def _device() -> Dialect:
    from devscope.dialects.device import Device

    return Device


# Only `device`: xDSL refuses to start when two universes offer a dialect of one name, so that the completed
# `func` (devscope.dialects.func_ext) is there in devscope's own tools only.
UNIVERSE = Universe(all_dialects={"device": _device}, all_passes=dict(get_all_passes()))
