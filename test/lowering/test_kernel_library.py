"""Kernels are made once, whatever they are asked for with."""

from pathlib import Path
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.parsing import make_mlir_context
from devscope.lowering.kernels.library import KernelLibrary


def test_one_kernel_where_values_differ_that_a_template_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "double.mlir").write_text("func.func @${NAME}() { ${WIDTH} }\n")
    library = KernelLibrary(tmp_path, {})
    first = library.symbol("double", {"WIDTH": 8, "LITTLE": 1})
    assert library.symbol("double", {"WIDTH": 8, "LITTLE": 2}) == first
    assert library.symbol("double", {"WIDTH": 4, "LITTLE": 1}) != first


def test_rows_that_several_callers_share_are_not_inlined(tmp_path: Path) -> None:
    with make_mlir_context():
        library = KernelLibrary(tmp_path, {})
        symbols = [library.add_function(_function(library)) for _ in range(2)]
        assert symbols[0] == symbols[1]
        other = library.add_function(_function(library, "f64"))
        assert other != symbols[0]
        shared, alone = mlir_util.functions(library.of_operations(ir.Context.current))
        assert "llvm.no_inline" in shared.attributes
        assert "llvm.no_inline" not in alone.attributes


def _function(library: KernelLibrary, type_: str = "f32") -> Any:
    module = library.of_operations(ir.Context.current)
    return mlir_util.append(module, f"func.func private @rows(%0: {type_}) {{ return }}", ir.Location.unknown())
