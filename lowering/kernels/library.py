"""The functions of kernels that a program calls, and the templates that they are made from."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


class KernelLibrary:
    """``folder``: where the target has its templates, ``NAME.mlir`` with ``${VALUE}``s in them.

    ``functions``: operations of `math` that the target has arithmetic for, of vectors of any shape.
    """

    def __init__(self, folder: Path, functions: Collection[str] = ()) -> None:
        self._folder = folder
        self.functions = functions
        self._symbols: dict[tuple[str, tuple[tuple[str, object], ...]], str] = {}
        self._texts: list[str] = []

    def symbol(self, template: str, values: Mapping[str, object]) -> str:
        """The function that ``template`` becomes with ``values``, beside which it knows its ``NAME``."""
        key = template, tuple(values.items())
        if key not in self._symbols:
            self._symbols[key] = name = f"devscope_{template}_{len(self._symbols)}"
            self._texts.append(_template(self._folder / f"{template}.mlir").substitute(values, NAME=name))
        return self._symbols[key]

    def definitions(self, context: Any) -> Any:
        """A module with all functions."""
        return ir.Module.parse("\n".join(self._texts), context)

    @staticmethod
    def declare(op: Any, symbol: str, types: Sequence[str]) -> None:
        """Declare a function of the library, with parameters of ``types``, in the module of ``op``."""
        module = op
        while module.name != "builtin.module":
            module = module.parent
        if not any(mlir_util.symbol_name(function) == symbol for function in mlir_util.functions(module)):
            mlir_util.append(module, f"func.func private @{symbol}({', '.join(types)})")


@cache
def _template(path: Path) -> Template:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return Template("".join(line for line in lines if not line.startswith("//")))
