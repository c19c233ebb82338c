"""The xDSL context that devscope's tools and passes parse and verify in."""

from collections.abc import Callable, Mapping

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect

from devscope.dialects.device import Device
from devscope.dialects.func_ext import FuncExt


def make_planning_context() -> Context:
    """A context with the dialects that planning and splitting look into: builtin, ``func`` and ``device``.

    All other operations are unregistered there, which saves a compiler the import of the dialects that a program
    uses: more time than it takes to compile a small one.
    """
    return _context({"builtin": lambda: Builtin})


def make_context() -> Context:
    """A context with every xDSL dialect, ``device``, and ``func`` completed, each loaded on first use.

    Operations, attributes and types that none of them knows are accepted as unregistered.
    """
    return _context(get_all_dialects())


def _context(dialects: Mapping[str, Callable[[], Dialect]]) -> Context:
    context = Context(allow_unregistered=True)
    # xDSL's Context holds one dialect per name, so FuncExt, which contains xDSL's func, takes its place.
    for name, factory in {**dialects, "func": lambda: FuncExt, "device": lambda: Device}.items():
        context.register_dialect(name, factory)
    return context
