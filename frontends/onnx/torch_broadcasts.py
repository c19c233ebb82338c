"""`broadcasts.BROADCAST` in a model that torch-mlir imports: as calls, until all else is in linalg."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from devscope.frontends.torch.lowering_loops import inlined

_AXES = "devscope.axes"
_MARK = "devscope.broadcast"
BROADCASTS = f"{_MARK}."
"""How functions are called that stand for them; a number follows."""
_CLEAN = "builtin.module(func.func(resolve-shaped-type-result-dims,canonicalize,cse,canonicalize))"


def put_call(importer: Any, node: Any) -> None:
    """A call of a function that stands for it."""
    ir: Any = import_module("torch_mlir.ir")
    given = {one.name: one for one in node.attribute}
    operands = [importer._nv_map[name] for name in node.input]
    made = importer._cc.type_proto_to_type(importer._gi.find_type_proto_for_name(node.output[0]))
    block = importer._m.regions[0].blocks[0]
    name = f"{BROADCASTS}{len(block.operations)}"
    numbers = [given["elements"].i, *given["axes"].ints]
    with ir.Location.name(node.name), ir.InsertionPoint(block):
        type_ = ir.FunctionType.get([one.type for one in operands], [made])
        function = ir.Operation.create(
            "func.func",
            regions=1,
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "sym_visibility": ir.StringAttr.get("private"),
                "function_type": ir.TypeAttr.get(type_),
                _AXES: ir.DenseI64ArrayAttr.get(numbers),
            },
        )
    importer._populate_graph_attrs(function)
    with ir.Location.name(node.name), ir.InsertionPoint(importer._b):
        callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
        importer._nv_map[node.output[0]] = ir.Operation.create("func.call", [made], operands, callee).result


def put_broadcasts(module: Any) -> None:
    """Operations of linalg in the place of the calls; none where sizes turn out to be the same."""
    ir: Any = import_module("torch_mlir.ir")
    passmanager: Any = import_module("torch_mlir.passmanager")
    functions = {op.operation.attributes["sym_name"].value: op.operation for op in module.body.operations}
    functions = {name: op for name, op in functions.items() if name.startswith(BROADCASTS)}
    if not functions:
        return
    calls = _all(module, lambda op: op.name == "func.call" and _callee(ir, op) in functions)
    for call in calls:
        function = functions[_callee(ir, call)]
        elements, *axes = ir.DenseI64ArrayAttr(function.attributes[_AXES])
        text = _text([one.type for one in call.operands], call.results[0].type, axes, bool(elements))
        made = ir.Module.parse(text, module.context)
        with call.location, ir.InsertionPoint(call):
            (value,) = inlined(made.body.operations[0].operation, list(call.operands))
        call.results[0].replace_all_uses_with(value)
        call.erase()
    for function in functions.values():
        function.erase()
    passmanager.PassManager.parse(_CLEAN, module.context).run(module.operation)
    for op in _all(module, lambda op: _MARK in op.attributes):
        _drop_if_plain(ir, op)


def _drop_if_plain(ir: Any, op: Any) -> None:
    """An operation that reads each element at its own place is what it reads."""
    del op.attributes[_MARK]
    *_, read, _ = op.regions[0].blocks[0].operations
    whole, *places = read.operands
    axes = [ir.IntegerAttr(one.owner.attributes["dim"]).value for one in places if _is_index(one)]
    if axes != [*range(len(places))]:
        return
    value, type_ = whole, op.results[0].type
    if value.type != type_:
        with op.location, ir.InsertionPoint(op):
            value = ir.Operation.create("tensor.cast", [type_], [value]).result
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _is_index(value: Any) -> bool:
    return getattr(value.owner, "name", "") == "linalg.index"


def _all(module: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    ir: Any = import_module("torch_mlir.ir")
    found: list[Any] = []

    def look(op: Any) -> Any:
        if wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return found


def _callee(ir: Any, call: Any) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _text(operands: list[Any], result: Any, axes: list[int], elements: bool) -> str:
    """A function that reads its first operand at 0 along each axis whose size is 1."""
    rank = operands[0].rank
    lines: list[str] = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
    sizes = {axis: f"%d{axis}" for axis in range(rank)}
    places = {axis: f"%i{axis}" for axis in range(rank)}
    body = [f"%i{axis} = linalg.index {axis} : index" for axis in range(rank)]
    for axis in range(rank):
        lines += [f"%a{axis} = arith.constant {axis} : index"]
        lines += [f"%d{axis} = tensor.dim %x0, %a{axis} : {operands[0]}"]
    for number, (axis, at, dim) in enumerate(zip(axes[::3], axes[1::3], axes[2::3], strict=True)):
        size, other, type_ = sizes[axis], f"%x{at + 1}", operands[at + 1]
        lines += [f"%k{number} = arith.constant {dim} : index"]
        if elements:
            lines += [f"%e{number} = tensor.extract {other}[%k{number}] : {type_}"]
            lines += [f"%o{number} = arith.index_cast %e{number} : {type_.element_type} to index"]
        else:
            lines += [f"%o{number} = tensor.dim {other}, %k{number} : {type_}"]
        lines += [f"%t{number} = arith.cmpi eq, {size}, %c1 : index"]
        lines += [f"%s{number} = arith.select %t{number}, %o{number}, {size} : index"]
        sizes[axis] = f"%s{number}"
    for axis in sorted({*axes[::3]}):
        lines += [f"%same{axis} = arith.cmpi eq, {sizes[axis]}, %d{axis} : index"]
        lines += [f"%step{axis} = arith.select %same{axis}, %c1, %c0 : index"]
        body += [f"%p{axis} = arith.muli %i{axis}, %step{axis} : index"]
        places[axis] = f"%p{axis}"
    extents = ", ".join(sizes[axis] for axis in range(rank) if result.is_dynamic_dim(axis))
    identity = (
        f"affine_map<({', '.join(f'd{k}' for k in range(rank))}) -> ({', '.join(f'd{k}' for k in range(rank))})>"
    )
    kinds = ", ".join(['"parallel"'] * rank)
    element = result.element_type
    inputs = ", ".join(f"%x{number}: {type_}" for number, type_ in enumerate(operands))
    lines += [
        f"%empty = tensor.empty({extents}) : {result}",
        f"%made = linalg.generic {{indexing_maps = [{identity}], iterator_types = [{kinds}]}}"
        f" outs(%empty : {result}) attrs = {{{_MARK}}} {{",
        f"^bb0(%old: {element}):",
        *body,
        f"%v = tensor.extract %x0[{', '.join(places.values())}] : {operands[0]}",
        f"linalg.yield %v : {element}",
        f"}} -> {result}",
        f"return %made : {result}",
    ]
    return f"func.func @f({inputs}) -> {result} {{\n" + "\n".join(lines) + "\n}"
