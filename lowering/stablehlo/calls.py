"""Calls of what is known by name, and what several processes would do together: a program is one."""

import re
from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.templates import (
    APPLY,
    RETURN,
    commas,
    element,
    expand,
    extents_of,
    integers,
    shape,
    tensor,
)
from devscope.lowering.stablehlo.windows import expand_dynamic_reduce_window

_NOTHING = frozenset(
    [
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "LayoutConstraint",
        "MoveToHost",
        "MoveToDevice",
        "PinToDevice",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.GlobalToLocalShape",
    ]
)
"""Calls that return what they are given: a program runs on one device of a kind."""


_OF_CHLO = re.compile(r"mhlo\.(acosh?|asinh?|atanh?|bessel_i1e|cosh|erf|erf_inv|sinh|tan|topk)$")


_OF_MATH = "devscope.math."


def _apply(op: Any, function: str) -> None:
    (type_,), types = (result.type for result in op.results), commas(value.type for value in op.operands)
    operands = commas(f"%{number}" for number in range(len(op.operands)))
    expand(op, f'%r = "{function}"({operands}) : ({types}) -> {type_}\n"{RETURN}"(%r) : ({type_}) -> ()')


def recompose(op: Any) -> None:
    """Functions of CHLO, which XLA writes as calls where a program is to be read by others."""
    name = _OF_CHLO.match(ir.StringAttr(op.attributes["call_target_name"]).value)
    if name is None or len(op.operands) != 1:
        return
    given, results = op.operands[0].type, commas(result.type for result in op.results)
    said = ir.DictAttr(op.attributes["mhlo.attributes"]) if "mhlo.attributes" in op.attributes else {}
    if name[1] == "topk":
        if "largest" not in said or str(said["largest"]) == "true":
            line = f"%r:2 = chlo.top_k(%0, k = {ir.IntegerAttr(said['k']).value}) : {given} -> ({results})"
            expand(op, f'{line}\n"{RETURN}"(%r#0, %r#1) : ({results}) -> ()')
    else:
        expand(op, f'%r = chlo.{name[1]} %0 : {given} -> {results}\n"{RETURN}"(%r) : ({results}) -> ()')


def expand_custom_call(op: Any) -> None:
    name = ir.StringAttr(op.attributes["call_target_name"]).value
    if name in _NOTHING and [v.type for v in op.operands] == [v.type for v in op.results]:
        mlir_util.replace_op(op, list(op.operands))
    elif name == "shape_assertion":
        _assert(op)
    elif name == "stablehlo.dynamic_reduce_window":
        expand_dynamic_reduce_window(op)
    elif name == "stablehlo.dynamic_top_k":
        _largest(op)
    elif name == "ApproxTopK":
        _first_in_order(op)
    elif name == "devscope.require":
        _require(op)
    elif name.startswith(_OF_MATH):
        _apply(op, name.removeprefix("devscope."))
    else:
        _compute_with_matrices(op, name)


def _compute_with_matrices(op: Any, name: str) -> None:
    from devscope.lowering.stablehlo import matrix_calls  # takes longer to import than all other calls

    if (routine := matrix_calls.routine(name)) and not _make_nothing(op):
        expand(op, routine(op))


def _make_nothing(op: Any) -> bool:
    """Of matrices without elements the results have none, either, but for those that say that all went well."""
    types = [result.type for result in op.results]
    if not op.operands or any(-1 in shape(type_) for type_ in [op.operands[0].type, *types]):
        return False
    is_empty = [0 in shape(type_) for type_ in types]
    if 0 not in shape(op.operands[0].type) or not all(
        empty or isinstance(element(type_), ir.IntegerType) for empty, type_ in zip(is_empty, types, strict=True)
    ):
        return False
    lines = [
        f"%r{n} = tensor.empty() : {type_}" if empty else f"%r{n} = stablehlo.constant dense<0> : {type_}"
        for n, (empty, type_) in enumerate(zip(is_empty, types, strict=True))
    ]
    values = commas(f"%r{n}" for n in range(len(types)))
    expand(op, "\n".join([*lines, f'"{RETURN}"({values}) : ({commas(types)}) -> ()']))
    return True


def _first_in_order(op: Any) -> None:
    """The first of all elements in order, which any recall that is asked for allows.

    Operands are tensors and a first element for each; the order is a function of two elements of each.
    """
    function = _called(op, ir.FlatSymbolRefAttr(op.attributes["called_computations"][0]).value)
    axis = ir.IntegerAttr(ir.DictAttr(op.attributes["mhlo.backend_config"])["reduction_dim"]).value
    given = [value.type for value in list(op.operands)[: len(op.results)]]
    pairs = [(f"%{side}{n}", tensor([], element(type_))) for n, type_ in enumerate(given) for side in "ab"]
    extents = shape(op.results[0].type)
    if extents[axis] < 0:
        return
    lines: list[str] = []
    extents_of(lines.append, "n", "%0", given[0])
    lengths = [extent if extent >= 0 else f"%n{dim}" for dim, extent in enumerate(extents)]
    less = f'"{APPLY}"({commas(name for name, _ in pairs)}) : ({commas(kind for _, kind in pairs)}) -> tensor<i1>'
    values = [(f"%{n}", type_, element(type_)) for n, type_ in enumerate(given)]
    lines += _sorted_and_cut(op, values, axis, less, lengths)
    expand(op, "\n".join(lines), blocks=[mlir_util.entry_block(function)])


def _largest(op: Any) -> None:
    """JAX's call: the largest of the last dimension and where they are, as many as the second operand says."""
    given, of = op.operands[0].type, element(op.operands[0].type)
    extents = shape(given)
    last, places, one = len(extents) - 1, tensor(extents, "i32"), tensor([], of)
    order = (
        "TOTALORDER" if isinstance(of, ir.FloatType) else "UNSIGNED" if str(of)[:2] in ("ui", "i1") else "SIGNED"
    )
    lines: list[str] = []
    extents_of(lines.append, "n", "%0", given)
    sizes = f"tensor<{len(extents)}xindex>"
    lines += [
        f"%sizes = tensor.from_elements {commas(f'%n{axis}' for axis in range(len(extents)))} : {sizes}",
        f"%i = stablehlo.dynamic_iota %sizes, dim = {last} : ({sizes}) -> {places}",
        f"%count = tensor.extract %1[] : {op.operands[1].type}",
        f"%k = arith.index_cast %count : {element(op.operands[1].type)} to index",
        f"%few = arith.cmpi ule, %k, %n{last} : index",
        'cf.assert %few, "more elements are asked for than there are"',
    ]
    lengths = [*(extent if extent >= 0 else f"%n{axis}" for axis, extent in enumerate(extents[:-1])), "%k"]
    less = f"stablehlo.compare GT, %a0, %b0, {order} : ({one}, {one}) -> tensor<i1>"
    lines += _sorted_and_cut(op, [("%0", given, of), ("%i", places, "i32")], last, less, lengths)
    expand(op, "\n".join(lines))


def _sorted_and_cut(
    op: Any, values: Sequence[tuple[str, Any, Any]], axis: int, less: str, lengths: Sequence[int | str]
) -> list[str]:
    """Text of what sorts values, of a name, a type and that of elements each, and keeps so many places of each dimension.

    ``less`` says whether elements of them, ``%a0`` and so on, come before others, ``%b0`` and so on.
    """
    types, results = commas(type_ for _, type_, _ in values), [result.type for result in op.results]
    arguments = (f"%{side}{n}: {tensor([], of)}" for n, (_, _, of) in enumerate(values) for side in "ab")
    lines = [
        f'%s:{len(values)} = "stablehlo.sort"({commas(name for name, _, _ in values)}) '
        f"<{{dimension = {axis} : i64, is_stable = true}}> ({{",
        f"^bb0({commas(arguments)}):",
        f"%l = {less}",
        f"stablehlo.return %l : tensor<i1>\n}}) : ({types}) -> ({types})",
    ]
    place = f"[{commas([0] * len(lengths))}] [{commas(lengths)}] [{commas([1] * len(lengths))}]"
    for n, ((_, type_, of), result) in enumerate(zip(values, results, strict=True)):
        part = tensor([length if isinstance(length, int) else -1 for length in lengths], of)
        lines.append(f"%c{n} = tensor.extract_slice %s#{n}{place} : {type_} to {part}")
        lines.append(f"%r{n} = tensor.cast %c{n} : {part} to {result}")
    returned = commas(f"%r{n}" for n in range(len(results)))
    return [*lines, f'"{RETURN}"({returned}) : ({commas(results)}) -> ()']


def _called(op: Any, name: str) -> Any:
    module = op.parent
    while module.name != "builtin.module":
        module = module.parent
    return next(each for each in mlir_util.functions(module) if mlir_util.symbol_name(each) == name)


_VALUE = r",? but found \{\d+\}| \(= \{\d+\}\)| = \{\d+\}| \{\d+\}"
"""Where a message of JAX has a number that is known as the program runs, and what introduces it."""


def _assert(op: Any) -> None:
    """Of sizes; what the message would say of them is left out."""
    build = Builder(op)
    test = build.value("tensor.extract", [op.operands[0]], ir.IntegerType.get_signless(1, op.context))
    message = (
        ir.StringAttr(op.attributes["error_message"]).value
        if "error_message" in op.attributes
        else "shapes disagree"
    )
    message = re.sub(_VALUE, "", message)
    build.op("cf.assert", [test], [], {"msg": ir.StringAttr.get(message, op.context)})
    op.erase()


def _require(op: Any) -> None:
    """The second operand, if the first one is true."""
    build = Builder(op)
    test = build.value("tensor.extract", [op.operands[0]], ir.IntegerType.get_signless(1, op.context))
    message = "a sequence is shorter than the program was compiled for, which all of them are"
    build.op("cf.assert", [test], [], {"msg": ir.StringAttr.get(message, op.context)})
    mlir_util.replace_op(op, [op.operands[1]])


def expand_collective(op: Any) -> None:
    """In groups of one each has what it gave. Larger groups are left: there is nobody else."""
    groups = ir.RankedTensorType(op.attributes["replica_groups"].type).shape
    if len(groups) == 2 and groups[1] <= 1:
        _give_back(op)


def _give_back(op: Any) -> None:
    """What is given is the result, whose type may know more or fewer extents."""
    build, pairs = Builder(op), zip(op.operands, op.results, strict=True)
    mlir_util.replace_op(op, [build.value("tensor.cast", [value], result.type) for value, result in pairs])


def expand_permutation(op: Any) -> None:
    """The first of the processes, all there are, gives to itself or gets nothing, which is zeros."""
    type_, pairs = op.results[0].type, integers(op, "source_target_pairs")
    if pairs == [0, 0]:
        _give_back(op)
    elif not pairs and ir.RankedTensorType(type_).has_static_shape:
        zero = "(0.0, 0.0)" if "complex" in str(type_) else ("0.0" if "f" in str(element(type_)) else "0")
        zero = "false" if str(element(type_)) == "i1" else zero
        expand(op, f'%r = stablehlo.constant dense<{zero}> : {type_}\n"devscope.return"(%r) : ({type_}) -> ()')


def expand_number(op: Any) -> None:
    """Which of the processes this is: the first."""
    type_ = op.results[0].type
    expand(op, f'%r = stablehlo.constant dense<0> : {type_}\n"devscope.return"(%r) : ({type_}) -> ()')


def expand_barrier(op: Any) -> None:
    mlir_util.replace_op(op, list(op.operands))
