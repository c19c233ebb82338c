"""Which dimensions of arguments are dynamic, and examples that PyTorch traces as such."""

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.export import Dim
from torch.utils._pytree import tree_leaves, tree_map

from devscope.errors import InputError

_MANY = 1 << 31


def complete(module: Any, shapes: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Dynamic shapes of all parameters, as ``torch.export`` wants them; those that are not named are static."""
    if not isinstance(shapes, Mapping | tuple | list) or not shapes:
        return shapes
    arguments = inspect.signature(module.forward).bind(*given, **named).arguments

    def whole(shape: Any, argument: Any) -> Any:
        return tree_map(_nothing, argument) if shape is None else shape

    if isinstance(shapes, Mapping):
        unknown = set(shapes) - set(arguments)  # torch.export says what is wrong with those
        found = {name: whole(shapes.get(name), value) for name, value in arguments.items()}
        return found | {name: shapes[name] for name in unknown}
    pairs = zip(shapes, arguments.values(), strict=False)
    return type(shapes)([*(whole(*pair) for pair in pairs), *shapes[len(arguments) :]])


def _nothing(leaf: Any) -> None:
    """No dimension is dynamic."""


def larger_examples(
    module: Any, shapes: Any, given: tuple[Any, ...], named: dict[str, Any], auto: bool = False
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Zeros of more than one element along what shall be dynamic, where an example has fewer; None if none has.

    ``torch.export`` takes sizes of 0 and 1 for constants (its "0/1 specialization"), and others for any. Of
    ``2 * Dim("n")``, it is ``n`` that counts. ``auto``: along ``Dim.AUTO``, too, which may be constant.
    """
    kinds = [Dim.DYNAMIC.type, *([Dim.AUTO.type] if auto else [])]
    bound = inspect.signature(module.forward).bind(*given, **named)
    by_name = isinstance(shapes, Mapping)
    of = dict(shapes) if by_name else dict(zip(bound.arguments, shapes or (), strict=False))
    sizes: set[int] = set()
    dims: list[Any] = []

    def note(shape: Any, tensor: Any) -> Any:
        sizes.update(tensor.shape)
        dims.extend(_root(dim) for n, dim in _dims(shape, tensor, kinds) if _is_small(dim, tensor.shape[n]))
        return tensor

    def enlarge(shape: Any, tensor: Any) -> Any:
        small = {n: dim for n, dim in _dims(shape, tensor, kinds) if _is_small(dim, tensor.shape[n])}
        return tensor.new_zeros([_of(small[n], size) if n in small else old for n, old in enumerate(tensor.shape)])

    for name, value in bound.arguments.items():
        _on_tensors(note, of.get(name), value)
    if not dims:
        return None
    least, most = max(2, *(dim.min or 0 for dim in dims)), min(_MANY, *(dim.max or _MANY for dim in dims))
    # Another size than all others, so that PyTorch takes none of them for the same.
    size = next((n for n in range(least, least + len(sizes) + 1) if n not in sizes and n <= most), least)
    for name, value in bound.arguments.items():
        bound.arguments[name] = _on_tensors(enlarge, of.get(name), value)
    return bound.args, bound.kwargs


def _on_tensors(change: Callable[[Any, Any], Any], shape: Any, value: Any) -> Any:
    """``value`` with ``change(shape, tensor)`` for each tensor that ``shape`` says something of."""
    if isinstance(value, torch.Tensor):
        return change(shape, value) if isinstance(shape, Mapping | list | tuple) else value
    if isinstance(value, dict) and isinstance(shape, Mapping):
        return {key: _on_tensors(change, shape.get(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple) and isinstance(shape, list | tuple):
        items = [_on_tensors(change, *pair) for pair in zip(shape, value, strict=False)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _dims(shape: Any, tensor: Any, kinds: list[Any]) -> Iterator[tuple[int, Any]]:
    """What of a tensor shall be dynamic: the numbers and `Dim` of its dimensions."""
    for n, dim in shape.items() if isinstance(shape, Mapping) else enumerate(shape):
        is_dynamic = isinstance(dim, Dim) or getattr(dim, "type", None) in kinds
        if is_dynamic and n < tensor.ndim:
            yield n, dim


def _root(dim: Any) -> Any:
    """What ``2 * Dim("n")`` is computed of."""
    return getattr(dim, "root", dim)


def _of(dim: Any, size: int) -> int:
    """``dim`` where its root is ``size``."""
    return dim.fn(size) if _root(dim) is not dim else size


def _is_small(dim: Any, size: int) -> bool:
    return any(_of(dim, few) == size for few in (0, 1))


def are_constant(exported: Any, larger: Any, given: Any) -> bool:
    """Whether PyTorch has made a constant of a size that an example was given for a smaller one."""
    inputs = set(exported.graph_signature.user_inputs)
    made = [
        node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder" and node.name in inputs
    ]
    for value, large, small in zip(made, tree_leaves(larger), tree_leaves(given), strict=True):
        sizes: Any = value.shape if isinstance(value, torch.Tensor) else ()
        for size, one, other in zip(sizes, getattr(large, "shape", ()), getattr(small, "shape", ()), strict=False):
            if isinstance(size, int) and one != other:
                return True
    return False


def check_ranks(exported: Any, as_given: Any, name: str) -> None:
    """Raise InputError where results have another rank for the example: its 1 decides what is computed."""
    ranks = [
        [getattr(getattr(leaf, "meta", {}).get("val"), "ndim", None) for leaf in tree_leaves(result)]
        for result in (program.graph.output_node().args for program in (exported, as_given))
    ]
    if ranks[0] != ranks[1]:
        raise InputError(
            f"'{name}' has results of other ranks where a dynamic dimension is 1, as in the example",
            notes=["give an example with another size, or leave the dimension static"],
        )


def check_dynamic(exported: Any, program: Any, name: str) -> None:
    """Raise InputError where a size that varies in ``exported`` does not in ``program``: decomposed, that is."""
    placeholders = (each.graph.find_nodes(op="placeholder") for each in (exported, program))
    for before, after in zip(*placeholders, strict=True):
        sizes = (getattr(node.meta.get("val"), "shape", ()) for node in (before, after))
        for dim, (any_size, size) in enumerate(zip(*sizes, strict=True)):
            if isinstance(any_size, torch.SymInt) and not isinstance(size, torch.SymInt):
                said = f"{before.name}.shape[{dim}] == {size} only"
                raise InputError(
                    f"what PyTorch decomposes '{name}' into is for {said}", notes=["leave the dimension static"]
                )


def look_at_squeezed(exported: Any, program: Any) -> None:
    """Let ``program`` assert that sizes of arguments which ``exported`` would remove if they were 1 are not.

    PyTorch traces dimensions of any size as if they were never 1, and says nothing of it.
    """
    squeezed: set[str] = set()
    for node in exported.graph.nodes:
        if node.op == "call_function" and str(node.target).startswith("aten.squeeze"):
            shape = node.args[0].meta["val"].shape
            dims = node.args[1] if len(node.args) > 1 else range(len(shape))
            squeezed.update(str(shape[dim]) for dim in ([dims] if isinstance(dims, int) else dims) if shape)
    graph = program.graph
    arguments = graph.find_nodes(op="placeholder")
    for argument in arguments:
        shape: Any = getattr(argument.meta.get("val"), "shape", ())
        for dim, size in enumerate(shape):
            if not isinstance(size, torch.SymInt) or str(size) not in squeezed:
                continue
            squeezed.remove(str(size))
            said = f"the program was traced for sizes with {argument.name}.shape[{dim}] != 1: it squeezes them"
            with graph.inserting_after(arguments[-1]):
                found = graph.call_function(torch.ops.aten.sym_size.int, (argument, dim))
            with graph.inserting_after(found):
                is_other = graph.call_function(operator.ne, (found, 1))
            found.meta["val"], is_other.meta["val"] = size, size != 1
            with graph.inserting_after(is_other):
                graph.call_function(torch.ops.aten._assert_scalar.default, (is_other, said))
