"""Programs that come as modules, text, bytecode and portable artifacts: all compute the same."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import devscope
from devscope.errors import InputError, ParseError
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.parse_apart import parsed_apart
from devscope.lowering.interop.parsing import make_mlir_context

TEXT = """
func.func @main(%x: tensor<2x3xf32>, %scale: tensor<f32>) -> tensor<2x3xf32> {
  %wide = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %sum = stablehlo.add %x, %wide : tensor<2x3xf32>
  return %sum : tensor<2x3xf32>
}
"""
X, SCALE = np.arange(6, dtype=np.float32).reshape(2, 3), np.array(2.5, np.float32)


def parse(text: str) -> Any:
    context = ir.Context()
    bindings.register_stablehlo(context)
    return ir.Module.parse(text, context)


def bytecode(module: Any) -> bytes:
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def artifact(module: Any) -> bytes:
    extension = bindings.load("_mlir_libs._stablehlo")
    return extension.serialize_portable_artifact(module, extension.get_current_version())


def xdsl_module(text: str) -> ModuleOp:
    from devscope.dialects.context import make_context

    generic = parse(text).operation.get_asm(print_generic_op_form=True)
    return Parser(make_context(), generic).parse_module()


SOURCES: dict[str, Callable[[], Any]] = {
    "text": lambda: TEXT,
    "encoded text": TEXT.encode,
    "module": lambda: parse(TEXT),
    "operation": lambda: parse(TEXT).operation,
    "bytecode": lambda: bytecode(parse(TEXT)),
    "portable artifact": lambda: artifact(parse(TEXT)),
    "xDSL module": lambda: xdsl_module(TEXT),
}


@pytest.mark.parametrize("way", SOURCES)
def test_same_results(way: str) -> None:
    with devscope.compile(SOURCES[way](), cache=False) as executable:
        np.testing.assert_array_equal(executable(X, SCALE), X + SCALE)


@pytest.mark.parametrize("suffix", ["mlir", "mlirbc", "stablehlo"])
def test_files(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"model.{suffix}"
    ways = {"mlir": TEXT.encode, "mlirbc": SOURCES["bytecode"], "stablehlo": SOURCES["portable artifact"]}
    file.write_bytes(ways[suffix]())
    with devscope.compile(str(file)) as executable:
        np.testing.assert_array_equal(executable(X, SCALE), X + SCALE)


def test_names_of_text() -> None:
    assert devscope.plan(TEXT).signatures == "main(x: 2x3xf32, scale: f32) -> (sum: 2x3xf32)"


def test_chlo_is_parsed() -> None:
    text = TEXT.replace("stablehlo.add %x, %wide", "chlo.broadcast_add %x, %wide")
    type_ = "tensor<2x3xf32>"
    text = text.replace(f"%wide : {type_}", f"%wide : ({type_}, {type_}) -> {type_}")
    assert devscope.plan(text).placements


def test_the_source_stays_as_it_is() -> None:
    module = parse(TEXT)
    before = str(module)
    devscope.plan(module)
    devscope.compile(module, cache=False).close()
    assert str(module) == before


def test_damaged_artifact() -> None:
    data = artifact(parse(TEXT))
    with pytest.raises(ParseError, match="not a StableHLO artifact"):
        devscope.compile(data[:-20], cache=False)


def test_artifacts_are_parsed_apart() -> None:
    """Damaged ones can end the process that reads them."""
    data = artifact(parse(TEXT))
    written_anew = parsed_apart(data, "a.stablehlo")
    assert written_anew is not None
    assert str(parse(TEXT)) == str(ir.Module.parse(written_anew, make_mlir_context()))
    with pytest.raises(ParseError, match=r"a\.stablehlo is not a StableHLO artifact that can be read"):
        parsed_apart(data[:-20], "a.stablehlo")


@pytest.mark.parametrize(
    ("source", "examples", "message"),
    [
        (3, None, "cannot be an object of type int"),
        (TEXT, (X,), "go with functions, modules and ONNX models; the program is none"),
        (TEXT, "x", "of type str are none"),
        (np.sin, None, "is a function"),
    ],
)
def test_no_program(source: Any, examples: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        devscope.compile(source, examples)
