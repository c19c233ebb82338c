"""The process in which `lowering` has torch-mlir lower: bytecode from stdin; pickled, text in linalg.

Or, where passes fail, a message, the name of the operation of PyTorch that is to blame (or nothing), and notes.
"""

import importlib
import os
import pickle
import re
import sys
from typing import Any

from devscope.frontends.torch.assertions import drop_wrong_assertions
from devscope.frontends.torch.lowering_loops import LOOP, put_loops
from devscope.runtime.child_process import limit_time

ir: Any = importlib.import_module("torch_mlir.ir")  # its stubs are empty
torch_dialect: Any = importlib.import_module("torch_mlir._mlir_libs._torchMlir")  # see `fx`
passmanager: Any = importlib.import_module("torch_mlir.passmanager")

_PASSES = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{extra-library= })",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})",
)
_OPERATION = re.compile(r"'torch\.((?:aten|prims?|prim|torchvision|quantized_decomposed)\.[\w.]+)'")
_UNKNOWN = re.compile(r'"torch\.((?:aten|prims?)\.[\w.]+)"')
_NAME = re.compile(r'^loc\("(?!devscope\.)([^"]*)"')
_FILE = re.compile(r'"([^"]+)":(\d+):\d+')

_EXTREMA = ("arith.maximumf", "arith.minimumf")

_LAST = "torch-verify-linalg-on-tensors-backend-contract"

CALL = "devscope.call."
"""How functions are called that stand for routines on matrices, which follow, and a number."""

_OPTIONS = {"Eigh": ' {backend_config = "1"}'}
_DECLARED = re.compile(rf"^ *func\.func private @{re.escape(CALL)}.*\n", re.MULTILINE)
_CALLED = re.compile(rf"(?:func\.)?call @{re.escape(CALL)}([\w.]+)\.\d+(\([^)]*\))")

LIMITS = "devscope.limits"
"""An attribute of functions: argument, dimension, least and largest size, for each dimension that has limits."""

Refusal = tuple[str, str, list[str]]


def lower(module: Any) -> bytes | Refusal:
    """Text of the module, in linalg; or why there is none."""
    has_calls = any(
        op.operation.attributes["sym_name"].value.startswith((CALL, LOOP)) for op in module.body.operations
    )
    with module.context:
        for passes in _PASSES:
            try:
                without_last(passmanager.PassManager.parse(passes), has_calls).run(module.operation)
            except ir.MLIRError as error:
                return _refusal(module, error)
        if left := _left(module):
            return f"torch-mlir has no lowering for {left[0].removeprefix('torch.')}", "", []
        put_loops(module)
        drop_wrong_assertions(module)
        _convert_by_words(module)
        _compare_as_elements(module)
        _find_nans(module)
        _check_limits(module)
        for op in module.body.operations:
            for name in [str(name) for name in op.operation.attributes if str(name).startswith("torch.")]:
                del op.operation.attributes[name]
    text = module.operation.get_asm(enable_debug_info=True)
    return _CALLED.sub(_custom_call, _DECLARED.sub("", text)).encode()


def _custom_call(call: Any) -> str:
    return f"stablehlo.custom_call @{call[1]}{call[2]}{_OPTIONS.get(call[1], '')}"


def without_last(manager: Any, has_calls: bool) -> Any:
    """The last pass looks what is left, and has no place for calls."""
    return passmanager.PassManager.parse(str(manager).replace(f",{_LAST}", "")) if has_calls else manager


def _check_limits(module: Any) -> None:
    """Assert that dynamic dimensions have sizes that the program was traced for."""
    for function in [op for op in module.body.operations if LIMITS in op.operation.attributes]:
        limits = list(ir.DenseI64ArrayAttr(function.attributes[LIMITS]))
        del function.attributes[LIMITS]
        block = function.regions[0].blocks[0]
        index = ir.IndexType.get()
        with ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
            for at in range(0, len(limits), 4):
                number, dim, least, most = limits[at : at + 4]
                size = _made("tensor.dim", [block.arguments[number], _number(dim)], index)
                for predicate, bound in ((5, least), (3, most)):  # sge, sle
                    way = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)}
                    holds = _made("arith.cmpi", [size, _number(bound)], ir.IntegerType.get_signless(1), way)
                    text = f"the program was traced for {least} to {most} in dimension {dim} of argument {number}"
                    ir.Operation.create("cf.assert", operands=[holds], attributes={"msg": ir.StringAttr.get(text)})


def _convert_by_words(module: Any) -> None:
    """Floats become integers of fewer than 32 bits as eager's do: by i32, whose low bits they keep.

    torch-mlir converts to signed integers at once, unsigned ones, too, and LLVM assumes that results are in range.
    """
    found: list[Any] = []

    def look(op: Any) -> Any:
        if op.name == "arith.fptosi" and ir.IntegerType(op.results[0].type).width < 32:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for op in found:
        with op.location, ir.InsertionPoint(op):
            word = _made("arith.fptosi", [op.operands[0]], ir.IntegerType.get_signless(32))
            op.results[0].replace_all_uses_with(_made("arith.trunci", [word], op.results[0].type))
        op.erase()


def _compare_as_elements(module: Any) -> None:
    """Floats are compared with a number of Python as it is in their type, which is how eager compares them.

    torch-mlir compares in f64: there an f32 that 0.1 was rounded to is larger than 0.1.
    """
    found: list[tuple[Any, list[Any]]] = []

    def look(op: Any) -> Any:
        if op.name == "arith.cmpf":
            sources = [_extended_from(value) for value in op.operands]
            if sum(source is not None for source in sources) == 1:
                found.append((op, sources))
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for op, sources in found:
        (type_,) = (source.type for source in sources if source is not None)
        with op.location, ir.InsertionPoint(op):
            for number, source in enumerate(sources):
                if source is None:
                    source = _made("arith.truncf", [op.operands[number]], type_)
                op.operands[number] = source


def _extended_from(value: Any) -> Any | None:
    """The float that ``value`` is in a wider type, in the body of one operation."""
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.operation
    return op.operands[0] if op.name == "arith.extf" else None


def _find_nans(module: Any) -> None:
    """The place of an extremum is that of the first NaN, if there is one: to torch-mlir no number is better."""
    found: list[Any] = []

    def look(op: Any) -> Any:
        if op.name == "arith.cmpf" and op.parent.name == "linalg.generic":
            arguments = list(op.parent.regions[0].blocks[0].arguments)
            extrema = [each for each in op.block.operations if each.operation.name in _EXTREMA]
            pair = set(op.operands)
            if pair.issubset(arguments) and any(pair == set(each.operation.operands) for each in extrema):
                found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for op in found:
        new, old = op.operands
        users = [(use.owner, use.operand_number) for use in op.result.uses]
        i1, i64 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)
        with op.location, ir.InsertionPoint(users[0][0]):
            is_nan, is_number = (
                _made("arith.cmpf", [each, each], i1, {"predicate": ir.IntegerAttr.get(i64, predicate)})
                for each, predicate in ((new, 14), (old, 7))  # uno, ord
            )
            is_first = _made("arith.andi", [is_nan, is_number], i1)
            is_better = _made("arith.ori", [op.result, is_first], i1)
        for user, number in users:
            user.operands[number] = is_better


def _number(value: int) -> Any:
    return _made(
        "arith.constant", [], ir.IndexType.get(), {"value": ir.IntegerAttr.get(ir.IndexType.get(), value)}
    )


def _made(name: str, operands: list[Any], type_: Any, attributes: dict[str, Any] | None = None) -> Any:
    return ir.Operation.create(name, results=[type_], operands=operands, attributes=attributes or {}).result


def _refusal(module: Any, error: Any) -> Refusal:
    diagnostics = [one for one in error.error_diagnostics] or [None]
    first = diagnostics[0]
    if first is None:
        return f"torch-mlir does not lower the program: {str(error).splitlines()[0]}", "", []
    where = _place(str(first.location))
    text = " ".join([first.message, *(note.message for note in first.notes)])
    blamed = (
        _UNKNOWN.search(text) or _OPERATION.search(text) if "'torch.operator'" in text else _OPERATION.search(text)
    )
    if blamed is None and "torch.constant" in first.message:
        blamed = re.search(r"torch\.(aten\.[\w.]+)", " ".join(_left(module)))
    if blamed is None:
        return f"torch-mlir does not lower the program{where}: {first.message.splitlines()[0]}", "", []
    name = blamed[1]
    return f"torch-mlir has no lowering for {name}{where}", _without_overload(name), []


def _left(module: Any) -> list[str]:
    """Names of operations of PyTorch that no pass has lowered; constants are left for them."""
    found: list[str] = []

    def look(op: Any) -> Any:
        if op.name.startswith(("torch.aten.", "torch.prim", "torch.operator")):
            found.append(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return found


def _without_overload(name: str) -> str:
    return ".".join(name.split(".")[:2])


def _place(location: str) -> str:
    """`` (layer1.conv1, model.py:12)`` of what MLIR prints of a location."""
    path, line = _NAME.search(location), _FILE.search(location)
    parts = []
    if path is not None and not _FILE.match(location.removeprefix("loc(")):
        parts.append(f"in {path[1]}")
    if line is not None:
        parts.append(f"{line[1]}:{line[2]}")
    return f" ({', '.join(parts)})" if parts else ""


if __name__ == "__main__":
    limit_time()
    data = sys.stdin.buffer.read()
    context = ir.Context()
    torch_dialect.register_dialect(context)
    context.emit_error_diagnostics = False
    answer = pickle.dumps(lower(ir.Module.parse(data, context)))
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)
