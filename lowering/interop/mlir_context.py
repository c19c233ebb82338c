"""The MLIR context that devscope parses and compiles in."""

from __future__ import annotations

from importlib import resources
from typing import Any

from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir


def make_mlir_context() -> Any:
    """An ``ir.Context`` that knows the dialects of the bindings and ``device``, and lets others pass."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    bindings.register_stablehlo(context)
    _load_device_dialect(context)
    return context


def _load_device_dialect(context: Any) -> None:
    """Define the ``device`` dialect in ``context`` from its IRDL form, which dialects/device.py generates."""
    source = resources.files("devscope.dialects").joinpath("device.irdl.mlir").read_text(encoding="utf-8")
    bindings.declare_without_module("device")
    with context, ir.Location.unknown():
        bindings.load_irdl(ir.Module.parse(source))
        # IRDL has no traits; without these, no region of device.region and device.launch would verify.
        ir.IsTerminatorTrait.attach("device.yield")
        ir.NoTerminatorTrait.attach("device.launch")
