"""Loops of `scf` in the place of calls of `loops`, once what they do is in linalg."""

import importlib
from collections.abc import Sequence
from typing import Any

ir: Any = importlib.import_module("torch_mlir.ir")  # its stubs are empty

LOOP = "devscope.loop."
"""How functions are called that stand for loops; a number follows."""

KIND, PARTS, SIZES = "devscope.loop", "devscope.parts", "devscope.sizes"
"""Their attributes: ``while``, or ``scan``, with how many operands are carried, and how many are gone along;
functions of what they do; where sizes of results are found, an operand and its dimension each."""


def put_loops(module: Any) -> None:
    """Put loops in the place of all calls that stand for some."""
    functions = {op.operation.attributes["sym_name"].value: op.operation for op in module.body.operations}
    parts: set[str] = set()
    while calls := [
        found for op in functions.values() if KIND not in op.attributes for found in _calls(op, parts)
    ]:
        for call in calls:
            loop = functions[_callee(call)]
            kind, counts = ir.ArrayAttr(loop.attributes[KIND])
            names = [_named(part) for part in ir.ArrayAttr(loop.attributes[PARTS])]
            parts.update(names)
            with call.location, ir.InsertionPoint(call):
                build = _Loop(call, [functions[name] for name in names], list(ir.DenseI64ArrayAttr(counts)))
                sizes = list(ir.DenseI64ArrayAttr(loop.attributes[SIZES]))
                values = build.scan(sizes) if ir.StringAttr(kind).value == "scan" else build.repeat()
                for old, new in zip(call.results, values, strict=True):
                    old.replace_all_uses_with(_cast(new, old.type))
            call.erase()
    for name, op in functions.items():
        if KIND in op.attributes or name in parts:
            op.erase()


def _named(part: Any) -> str:
    """Public functions are named by text: torch-mlir does not refine those that something refers to."""
    return (ir.StringAttr if isinstance(part, ir.StringAttr) else ir.FlatSymbolRefAttr)(part).value


def _callee(call: Any) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _calls(function: Any, parts: set[str]) -> list[Any]:
    """The calls of loops in a function that is none of ``parts``, which are copied to where they are called."""
    found: list[Any] = []

    def look(op: Any) -> Any:
        if op.name == "func.call" and _callee(op).startswith(LOOP):
            found.append(op)
        return ir.WalkResult.ADVANCE

    if function.attributes["sym_name"].value not in parts:
        function.walk(look)
    return found


class _Loop:
    """What is put in the place of ``call``; of the ``counts`` of its operands, `KIND` tells."""

    def __init__(self, call: Any, parts: list[Any], counts: list[int]) -> None:
        self._operands = list(call.operands)
        self._results = [value.type for value in call.results]
        self._parts = parts
        self._counts = counts
        inputs = ir.FunctionType(ir.TypeAttr(parts[-1].attributes["function_type"]).value).inputs
        self._carried = list(inputs[: counts[0]])
        self._start = [_cast(*each) for each in zip(self._operands, self._carried, strict=False)]

    def repeat(self) -> list[Any]:
        count = self._counts[0]
        others = self._operands[count:]
        loop = ir.Operation.create("scf.while", self._carried, self._start, regions=2)
        places = [loop.location] * count
        condition, body = (ir.Block.create_at_start(region, self._carried, places) for region in loop.regions)
        with ir.InsertionPoint(condition):
            now = list(condition.arguments)
            (goes_on,) = inlined(self._parts[0], [*now, *others])
            if isinstance(goes_on.type, ir.RankedTensorType):
                goes_on = _value("tensor.extract", [goes_on], ir.IntegerType.get_signless(1))
            ir.Operation.create("scf.condition", [], [goes_on, *now])
        with ir.InsertionPoint(body):
            made = inlined(self._parts[1], [*body.arguments, *others])
            ir.Operation.create("scf.yield", [], self._cast_carried(made))
        return list(loop.results)

    def scan(self, sizes: list[int]) -> list[Any]:
        count, along = self._counts
        rows, others = self._operands[count : count + along], self._operands[count + along :]
        length = _size(rows[0], 0)
        made = [_empty(type_, length, self._operands, sizes) for type_ in self._results[count:]]
        start = [*self._start, *made]
        types = [value.type for value in start]
        loop = ir.Operation.create("scf.for", types, [_index(0), length, _index(1), *start], regions=1)
        inside = [ir.IndexType.get(), *types]
        block = ir.Block.create_at_start(loop.regions[0], inside, [loop.location] * len(inside))
        step, *now = block.arguments
        with ir.InsertionPoint(block):
            given = [_row(one, step) for one in rows]
            found = inlined(self._parts[0], [*now[:count], *given, *others])
            behind = [_put(*each, step) for each in zip(found[count:], now[count:], strict=True)]
            ir.Operation.create("scf.yield", [], [*self._cast_carried(found), *behind])
        return list(loop.results)

    def _cast_carried(self, values: Sequence[Any]) -> list[Any]:
        return [_cast(*each) for each in zip(values, self._carried, strict=False)]


def inlined(function: Any, arguments: list[Any]) -> list[Any]:
    """What a copy of the operations of ``function`` returns, which are put to the insertion point."""
    copy = function.clone()
    block = copy.regions[0].blocks[0]
    for argument, value in zip(block.arguments, arguments, strict=True):
        argument.replace_all_uses_with(_cast(value, argument.type))
    *ops, end = [op.operation for op in block.operations]
    for op in ops:
        op.move_before(copy)
    values = list(end.operands)
    copy.erase()
    return values


def _row(value: Any, number: Any) -> Any:
    type_ = ir.RankedTensorType(value.type)
    part = ir.RankedTensorType.get(type_.shape[1:], type_.element_type)
    return _slice("tensor.extract_slice", [value], part, type_, number)


def _put(row: Any, target: Any, number: Any) -> Any:
    return _slice("tensor.insert_slice", [row, target], target.type, ir.RankedTensorType(target.type), number)


def _slice(name: str, values: list[Any], result: Any, whole: Any, number: Any) -> Any:
    """The row ``number`` of the last of ``values``, which is of type ``whole``: read, or written."""
    dynamic = ir.ShapedType.get_dynamic_size()
    rank = whole.rank
    sizes = [_size(values[-1], dim) for dim in range(1, rank) if whole.is_dynamic_dim(dim)]
    known = [dynamic if whole.is_dynamic_dim(dim) else whole.shape[dim] for dim in range(1, rank)]
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get(
            [ir.ShapedType.get_dynamic_stride_or_offset(), *[0] * (rank - 1)]
        ),
        "static_sizes": ir.DenseI64ArrayAttr.get([1, *known]),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([*[1] * len(values), 1, len(sizes), 0]),
    }
    return _value(name, [*values, number, *sizes], result, attributes)


def _empty(type_: Any, length: Any, operands: list[Any], sizes: list[int]) -> Any:
    """Room for as many rows; ``sizes`` are taken from as they are needed."""
    type_ = ir.RankedTensorType(type_)
    found = [length] if type_.is_dynamic_dim(0) else []
    for dim in range(1, type_.rank):
        if type_.is_dynamic_dim(dim):
            found.append(_size(operands[sizes.pop(0)], sizes.pop(0)))
    return _value("tensor.empty", found, type_)


def _size(value: Any, dim: int) -> Any:
    type_ = ir.RankedTensorType(value.type)
    if type_.is_dynamic_dim(dim):
        return _value("tensor.dim", [value, _index(dim)], ir.IndexType.get())
    return _index(type_.shape[dim])


def _cast(value: Any, type_: Any) -> Any:
    return value if value.type == type_ else _value("tensor.cast", [value], type_)


def _index(value: int) -> Any:
    index = ir.IndexType.get()
    return _value("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, value)})


def _value(name: str, operands: list[Any], type_: Any, attributes: dict[str, Any] | None = None) -> Any:
    return ir.Operation.create(name, [type_], operands, attributes or {}).result
