"""Kernels are made once, whatever they are asked for with."""

from pathlib import Path

from devscope.lowering.kernels.library import KernelLibrary


def test_one_kernel_where_values_differ_that_a_template_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "double.mlir").write_text("func.func @${NAME}() { ${WIDTH} }\n")
    library = KernelLibrary(tmp_path, {})
    first = library.symbol("double", {"WIDTH": 8, "LITTLE": 1})
    assert library.symbol("double", {"WIDTH": 8, "LITTLE": 2}) == first
    assert library.symbol("double", {"WIDTH": 4, "LITTLE": 1}) != first
