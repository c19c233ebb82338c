"""Functions of templates that launch kernels, in the module of the launchers of a device."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.kernel_tables import FOLDER
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.library import read_template
from devscope.lowering.mlir_util import Builder
from devscope.lowering.target import Lanes

TILES = "tiles"
"""The kind of schedules for products in which workgroups share tiles."""

TENSOR_TILES = "tensor_tiles"
"""The same where tensor cores multiply; the element type of a row is that of the operands."""

REDUCTION = "reduction"
"""The kind of schedules for reductions in which work-items share a result."""

ROWS = "rows"
"""The kind of schedules for several operations in which work-items share rows."""

TILE_TRANSPOSE = "tile_transpose"
"""The kind of schedules for transposes in which workgroups turn tiles around."""

_AROUND = {"scf.for", "scf.if", "scf.while", "scf.index_switch", "scf.execute_region", "func.func"}
"""Code of the host, in launchers."""


class Launchers:
    """``taken``: names of the program, to which those of functions and kernels are added.

    ``lanes``: those of the device. ``functions``: operations of `math` that epilogues may have.
    """

    def __init__(self, module: Any, taken: set[str], lanes: Lanes, functions: Collection[str] = ()) -> None:
        self._module = module
        self._taken = taken
        self._symbols: dict[tuple[str, tuple[tuple[str, object], ...]], str] = {}
        self._texts: list[tuple[Any, str]] = []
        self.lanes, self.functions = lanes, functions

    @staticmethod
    def is_launched(op: Any) -> bool:
        """Whether ``op`` is work of the device, and no part of such work."""
        while op.name != "func.func":
            op = op.parent
            if op.name not in _AROUND:
                return False
        return True

    def call(self, before: Any, template: str, values: Mapping[str, object], operands: Sequence[Any]) -> Any:
        """A call of the function that ``template`` becomes with ``values``, which is made once."""
        key = template, tuple(values.items())
        if key not in self._symbols:
            function = before
            while function.name != "func.func":
                function = function.parent
            name = first = f"{mlir_util.symbol_name(function)}_{template}_{len(self._symbols)}"
            while name in self._taken or f"{name}_kernel" in self._taken:
                name = f"{first}_{len(self._taken)}"
            self._taken.update((name, f"{name}_kernel"))
            self._symbols[key] = name
            text = read_template(FOLDER / f"{template}.mlir").substitute(values, NAME=name)
            types = ir.FunctionType.get([value.type for value in operands], [], context=before.context)
            declared = mlir_util.declare(self._module, name, types, before.location)
            self._texts.append((declared, text))
        return Builder(before).call(self._symbols[key], operands)

    def define(self, space: Any) -> None:
        """Give the functions their bodies, with buffers in memory space ``space``.

        To be done once buffers are freed: upstream does not know what the operations of kernels do to memory.
        """
        for declared, text in self._texts:
            (made,) = mlir_util.insert(declared, text)
            mlir_util.retype_memrefs(made, space, lambda old: old is None)
            declared.erase()
