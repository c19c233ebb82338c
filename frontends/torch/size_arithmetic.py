"""Arithmetic of sizes that are known at run time, in operations that torch-mlir has on numbers."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch._ops import OpOverload

aten: Any = torch.ops.aten
_MAX: Any = torch.ops.prim.max.int
_MIN: Any = torch.ops.prim.min.int
_Made = Callable[..., Any]
"""Adds an operation on numbers to the graph."""


def lower_size_arithmetic(graph: Any) -> None:
    """Put operations of torch-mlir in place of Python's and PyTorch's functions of numbers."""
    tensors = [value_of(node) for node in graph.nodes if isinstance(value_of(node), torch.Tensor)]
    one = tensors[0] if tensors else torch.empty(())
    for node in [node for node in graph.nodes if node.op == "call_function"]:
        rule = _RULES.get(node.target)
        if rule is None:
            continue
        with graph.inserting_before(node):

            def made(target: Any, *arguments: Any, like: Any = node, **named: Any) -> Any:
                values = [value_of(argument) for argument in arguments]
                new = graph.call_function(target, arguments, named)
                new.meta.update(like.meta)
                if target in _VALUES:
                    new.meta["val"] = _VALUES[target](*values)
                elif target in _OF_TENSORS:
                    new.meta["val"] = one.new_empty((), dtype=torch.float64)
                return new

            new = rule(made, *node.args)
        if new is not None:
            node.replace_all_uses_with(new)
            graph.erase_node(node)
    for node in [node for node in graph.nodes if isinstance(node.target, OpOverload)]:
        _take_numbers_for_tensors(graph, node)


def name_sizes_in_assertions(graph: Any) -> None:
    """Say what PyTorch takes for granted in terms of arguments, where it has symbols of its own."""
    names: dict[str, str] = {}
    for node in graph.find_nodes(op="placeholder"):
        sizes: Any = getattr(value_of(node), "shape", ())
        varying = [(dim, size) for dim, size in enumerate(sizes) if isinstance(size, torch.SymInt)]
        names |= {str(size): f"{node.name}.shape[{dim}]" for dim, size in reversed(varying)}
    for node in graph.find_nodes(op="call_function", target=aten._assert_scalar.default):
        if found := _DEFERRED.fullmatch(node.args[1]):
            said = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), found[1])
            node.update_arg(1, f"the program was traced for sizes with {said}")


_DEFERRED = re.compile(r"Runtime assertion failed for expression (.*) on node '\w+'")
_OF_TENSORS = (aten.scalar_tensor.default, aten.pow.Tensor_Scalar)
"""Those that compute what torch-mlir has no operation on numbers for."""
_WITH_NUMBERS = (
    aten.mul.Tensor,
    aten.div.Tensor,
    aten.add.Tensor,
    aten.sub.Tensor,
    aten.floor_divide.default,
)
"""Those that the importer puts in a form for a number that is second."""


def _take_numbers_for_tensors(graph: Any, node: Any) -> None:
    """Make tensors of sizes that stand where the operation has tensors, of the type of those that are there."""
    for number, (parameter, given) in enumerate(zip(node.target._schema.arguments, node.args, strict=False)):
        is_size = isinstance(given, torch.fx.Node) and isinstance(value_of(given), torch.SymInt | torch.SymFloat)
        if not is_size or not isinstance(parameter.type, torch.TensorType):
            continue
        if number == 1 and node.target in _WITH_NUMBERS:
            continue
        tensors = [value_of(one) for one in node.args if isinstance(value_of(one), torch.Tensor)]
        if not tensors:
            continue
        dtype = tensors[0].dtype
        if is_float(given) and not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        with graph.inserting_before(node):
            new = graph.call_function(aten.scalar_tensor.default, (given,), {"dtype": dtype})
        new.meta.update({key: kept for key, kept in node.meta.items() if key != "tensor_meta"})
        new.meta["val"] = tensors[0].new_empty((), dtype=dtype)
        node.update_arg(number, new)


def value_of(argument: Any) -> Any:
    """What a number was when PyTorch traced: a symbol, or itself."""
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def is_float(argument: Any) -> bool:
    """Whether a number, or what stands for one, is a float."""
    return isinstance(value_of(argument), float | torch.SymFloat)


def _float(made: _Made, x: Any) -> Any:
    return x if is_float(x) else made(aten.Float.Scalar, x)


def _floor(made: _Made, x: Any) -> Any:
    """There is no floor."""
    if not is_float(x):
        return x
    return made(aten.neg.int, made(aten.ceil.float, made(aten.neg.float, x)))


def _ceil(made: _Made, x: Any) -> Any:
    return made(aten.ceil.float, x) if is_float(x) else x


def _truncate(made: _Made, x: Any) -> Any:
    """The floor of what is positive, the ceiling of what is not."""
    if not is_float(x):
        return x
    return made(aten.add.int, made(_MAX, _floor(made, x), 0), made(_MIN, _ceil(made, x), 0))


def _root(made: _Made, x: Any) -> Any:
    return None if is_float(x) else made(aten.sqrt.int, x)


def _power(made: _Made, x: Any, y: Any) -> Any:
    if isinstance(y, int) and 0 < y <= _MOST_FACTORS:
        times = aten.mul.float if is_float(x) else aten.mul.int
        return reduce(lambda one, other: made(times, one, other), [x] * y)
    if isinstance(x, torch.fx.Node) and x.target == aten.Float.Scalar:
        x = x.args[0]
    if is_float(x) and isinstance(y, int | float):  # which torch-mlir has of tensors only
        tensor = made(aten.scalar_tensor.default, x, dtype=torch.float64)
        return made(aten.Float.Tensor, made(aten.pow.Tensor_Scalar, tensor, y))
    if is_float(x) or y not in (0.5, -0.5):
        return None
    root = made(aten.sqrt.int, x)
    return root if y > 0 else made(aten.div.float, 1.0, root)


def _remainder(made: _Made, x: Any, y: Any) -> Any:
    """torch-mlir has the remainder of C, whose sign is another."""
    if is_float(x) or is_float(y):
        return None
    return made(aten.sub.int, x, made(aten.mul.int, made(aten.floordiv.int, x, y), y))


def _quotient(made: _Made, x: Any, y: Any) -> Any:
    """``torch.compile`` makes tensors of floats that are divided, after all is decomposed."""
    return made(aten.div.Tensor, x, y)


def _pairwise(target: Any) -> Callable[..., Any]:
    def paired(made: _Made, x: Any, y: Any) -> Any:
        return None if is_float(x) or is_float(y) else made(target, x, y)

    return paired


def _logical(target: Any) -> Callable[..., Any]:
    def combined(made: _Made, x: Any, y: Any) -> Any:
        are_bool = all(isinstance(value_of(one), bool | torch.SymBool) for one in (x, y))
        return made(target, x, y) if are_bool else None

    return combined


def _sum(made: _Made, terms: Any) -> Any:
    return reduce(lambda one, other: made(aten.add.int, one, other), terms)


def _not(made: _Made, x: Any) -> Any:
    """The opposite comparison: a bool has no negation."""
    return made(_OPPOSITES[x.target], *x.args) if getattr(x, "target", None) in _OPPOSITES else None


_MOST_FACTORS = 8
_OPPOSITES = {
    operator.eq: operator.ne,
    operator.ne: operator.eq,
    operator.lt: operator.ge,
    operator.ge: operator.lt,
    operator.le: operator.gt,
    operator.gt: operator.le,
}
_RULES: dict[Any, Callable[..., Any]] = {
    torch.sym_float: _float,
    torch.sym_int: _truncate,
    math.trunc: _truncate,
    math.floor: _floor,
    math.ceil: _ceil,
    torch.sym_sum: _sum,
    torch.sym_max: _pairwise(_MAX),
    torch.sym_min: _pairwise(_MIN),
    torch.sym_not: _not,
    getattr(torch, "_sym_sqrt"): _root,  # noqa: B009  (it has no public name)
    operator.pow: _power,
    operator.mod: _remainder,
    operator.and_: _logical(aten.__and__.bool),
    operator.or_: _logical(aten.__or__.bool),
    aten.true_divide.Tensor: _quotient,
}
_VALUES: dict[Any, Callable[..., Any]] = {
    aten.Float.Scalar: torch.sym_float,
    aten.neg.int: operator.neg,
    aten.neg.float: operator.neg,
    aten.ceil.float: math.ceil,
    aten.mul.int: operator.mul,
    aten.mul.float: operator.mul,
    aten.add.int: operator.add,
    aten.sqrt.int: getattr(torch, "_sym_sqrt"),  # noqa: B009
    aten.div.float: operator.truediv,
    aten.sub.int: operator.sub,
    aten.floordiv.int: operator.floordiv,
    _MAX: torch.sym_max,
    _MIN: torch.sym_min,
}
"""What an operation is of symbols; another has the value of what it is made for."""
