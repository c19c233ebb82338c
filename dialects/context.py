"""The xDSL context that devscope's tools and passes parse and verify in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import get_all_dialects

if TYPE_CHECKING:
    from xdsl.ir import Dialect


def _device() -> Dialect:
    from devscope.dialects.device import Device

    return Device


def _func() -> Dialect:
    from devscope.dialects.func_ext import FuncExt

    return FuncExt


def make_planning_context() -> Context:
    """A context with the dialects that planning and splitting look into: builtin, ``func`` and ``device``.

    All other operations are unregistered there, which saves a compiler the import of the dialects that a program
    uses: more time than it takes to compile a small one.
    """
    from xdsl.dialects.builtin import Builtin

    context = Context(allow_unregistered=True)
    for name, factory in {"builtin": lambda: Builtin, "func": _func, "device": _device}.items():
        context.register_dialect(name, factory)
    return context


def make_context() -> Context:
    """A context with every xDSL dialect, ``device``, and ``func`` completed, each loaded on first use.

    Operations, attributes and types that none of them knows are accepted as unregistered.
    """
    context = Context(allow_unregistered=True)
    # xDSL's Context holds one dialect per name, so FuncExt, which contains xDSL's func, takes its place.
    for name, factory in {**get_all_dialects(), "func": _func, "device": _device}.items():
        context.register_dialect(name, factory)
    return context
