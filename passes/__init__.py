"""The passes over xDSL IR. Each is imported when a tool first asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from devscope.analysis.manager import AnalysisManager


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass name to a function that imports and returns the pass, in alphabetical order.

    The pass ``device-plan`` is the class ``DevicePlanPass`` of ``device_plan``, and so on.
    """
    modules = sorted(module.name for module in iter_modules(__path__))
    return {name.replace("_", "-"): partial(_load, name) for name in modules}


def _load(module: str) -> type[ModulePass]:
    from xdsl.passes import ModulePass

    name = "".join(word.capitalize() for word in module.split("_")) + "Pass"
    found = getattr(import_module(f"{__name__}.{module}"), name)
    assert issubclass(found, ModulePass)
    return found


def simplify_across_functions(analyses: AnalysisManager) -> bool:
    """Run the interprocedural passes on a split module, in place; whether it has device functions at all.

    Facts, dead values and equal code on the host simplify devices, and the other way round. Raises LoweringError
    for a recursive function that a target would have to inline.
    """
    from devscope.analysis.split_functions import functions_on_devices
    from devscope.analysis.symbols import Symbols

    if not functions_on_devices(analyses.get(Symbols)):
        return False
    # Imported here because programs for the host alone do without.
    from devscope.passes.device_inline import DeviceInlinePass
    from devscope.passes.device_merge import DeviceMergePass
    from devscope.passes.device_sccp import DeviceSccpPass
    from devscope.passes.device_unused import DeviceUnusedPass

    for one in (DeviceInlinePass(), DeviceSccpPass(), DeviceUnusedPass(), DeviceMergePass()):
        analyses.run(one)
    return True
