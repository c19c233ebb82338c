"""Operations of `scf` with bodies that functions fill."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder


def for_loop(
    build: Builder,
    bounds: tuple[Any, Any, Any],
    initial: Sequence[Any],
    body: Callable[[Builder, Any, list[Any]], list[Any]],
) -> list[Any]:
    """``scf.for`` over the bounds (begin, end, step); ``body`` makes what it yields from what it carries."""
    types = [value.type for value in initial]
    loop = build.op("scf.for", [*bounds, *initial], types, regions=1)
    with _block(loop, loop.regions[0], [build.index, *types]) as (inside, (index, *carried)):
        inside.op("scf.yield", body(inside, index, carried))
    return list(loop.results)


def if_then(
    build: Builder, condition: Any, branch: Callable[[Builder], list[Any]], values: Sequence[Any]
) -> list[Any]:
    """What ``branch`` makes if ``condition`` holds, else ``values``."""
    return if_else(build, condition, branch, lambda _: list(values), [value.type for value in values])


def if_else(
    build: Builder,
    condition: Any,
    branch: Callable[[Builder], list[Any]],
    other: Callable[[Builder], list[Any]],
    types: Sequence[Any],
) -> list[Any]:
    """What ``branch`` makes if ``condition`` holds, else what ``other`` makes: values of ``types``."""
    choice = build.op("scf.if", [condition], types, regions=2)
    for make, region in zip((branch, other), choice.regions, strict=True):
        with _block(choice, region, []) as (inside, _):
            inside.op("scf.yield", make(inside))
    return list(choice.results)


def while_loop(
    build: Builder,
    initial: Sequence[Any],
    condition: Callable[[Builder, list[Any]], Any],
    body: Callable[[Builder, list[Any]], list[Any]],
) -> list[Any]:
    types = [value.type for value in initial]
    loop = build.op("scf.while", initial, types, regions=2)
    with _block(loop, loop.regions[0], types) as (inside, values):
        inside.op("scf.condition", [condition(inside, values), *values])
    with _block(loop, loop.regions[1], types) as (inside, values):
        inside.op("scf.yield", body(inside, values))
    return list(loop.results)


@contextmanager
def _block(op: Any, region: Any, types: Sequence[Any]) -> Generator[tuple[Builder, list[Any]]]:
    """A block of a region, to be filled, and its arguments."""
    block = ir.Block.create_at_start(region, list(types), [op.location] * len(types))
    end = ir.Operation.create("scf.yield", loc=op.location, ip=ir.InsertionPoint(block))
    yield Builder(end), list(block.arguments)
    end.erase()
