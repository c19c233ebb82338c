"""The functions of kernels that a program calls, and the templates that they are made from."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


class Parameter(NamedTuple):
    """Of a kernel: its name there, its type, and the value in the caller's text."""

    name: str
    type: str
    value: str
    written: bool = False


class KernelLibrary:
    """``folder``: where the target has its templates, ``NAME.mlir`` with ``${VALUE}``s in them.

    ``loops``: the numbers of its schedule for operations that become loops. ``functions``: operations of `math`
    that the target has arithmetic for, of vectors of any shape.
    """

    def __init__(self, folder: Path, loops: Mapping[str, int], functions: Collection[str] = ()) -> None:
        self._folder = folder
        self.loops = loops
        self.functions = functions
        self.prefix = "devscope"
        """Of the names of functions."""
        self._symbols: dict[str, str] = {}
        """By text, but for their names: what a template makes no use of makes no other kernel."""
        self._texts: list[str] = []
        self._functions: Any = None

    def symbol(self, template: str, values: Mapping[str, object]) -> str:
        """The function that ``template`` becomes with ``values``, beside which it knows its ``NAME``."""
        text = read_template(self._folder / f"{template}.mlir")
        key = text.substitute(values, NAME="")
        if key not in self._symbols:
            self._symbols[key] = name = f"{self.prefix}_{template}_{len(self._symbols)}"
            self._texts.append(text.substitute(values, NAME=name))
        return self._symbols[key]

    def definitions(self, context: Any) -> Any | None:
        """A module with all functions; None if there are none."""
        if not self._texts:
            return None
        return ir.Module.parse("\n".join(self._texts), context)

    def of_operations(self, context: Any) -> Any:
        """A module with the functions that are made of operations of the program."""
        if self._functions is None:
            self._functions = ir.Module.create(ir.Location.unknown(context))
        return self._functions

    def add_function(self, function: Any) -> str:
        """The name of ``function``, the last one of `of_operations`, or of an equal one that is there already."""
        key = mlir_util.text_but_name(function)
        if key in self._symbols:
            function.erase()
            # LLVM would inline it into every caller: a MiniLM then takes a third longer to compile, for no speed.
            kept = ir.SymbolTable(self._functions.operation)[self._symbols[key]]
            kept.attributes["llvm.no_inline"] = ir.UnitAttr.get(kept.context)
        else:
            self._symbols[key] = f"{self.prefix}_rows_{len(self._symbols)}"
            ir.SymbolTable.set_symbol_name(function, self._symbols[key])
        return self._symbols[key]

    @staticmethod
    def declare(op: Any, symbol: str, types: Sequence[str]) -> None:
        """Declare a function of the library, with parameters of ``types``, in the module of ``op``."""
        module = op
        while module.name != "builtin.module":
            module = module.parent
        if not any(mlir_util.symbol_name(function) == symbol for function in mlir_util.functions(module)):
            mlir_util.append(module, f"func.func private @{symbol}({', '.join(types)})")


@cache
def read_template(path: Path) -> Template:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return Template("".join(line for line in lines if not line.startswith("//")))
