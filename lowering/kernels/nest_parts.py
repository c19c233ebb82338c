"""How nests of loops are cut into tasks."""

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, Numbers
from devscope.lowering.kernels.nest_bodies import combiners
from devscope.lowering.mlir_util import Builder


class Parts:
    """How nests are cut into tasks: along which loops of the first, outermost first, and how often along each."""

    def __init__(
        self, nests: Sequence[Nest], loops: Sequence[int], innermost: Sequence[int], numbers: Numbers
    ) -> None:
        nest = nests[0]
        self._nests = nests
        self._innermost = innermost
        self._numbers = numbers
        self._columns = numbers["columns"]
        if any(not all(each.parallel) and any(one is None for one in combiners(each.op)) for each in nests):
            # What goes over all rows, such as an argmax, is not cut into parts of rows, so into more of columns.
            self._columns = ceil(self._columns / 4)
        self._loops = [loop for loop in loops if nest.static_extent(loop) != 1]
        work = 0
        for each in nests:
            extents = [each.static_extent(loop) for loop in range(len(each.parallel))]
            known = [extent for extent in extents if extent is not None]
            unknown = len(known) < len(extents) and 0 not in known
            work = None if work is None or unknown else work + prod(known) * each.cost()
        self._never = work is not None and work < 2 * numbers["grain"]

    @property
    def is_single(self) -> bool:
        """Whether there is never more than one task."""
        return self._never or not self._loops

    def emit(self, build: Builder, body: Callable[[Builder, dict[int, tuple[Any, Any]], Any], None]) -> Any:
        """``body`` gets the ranges of loops that are cut, and the task's number; returns how many tasks."""
        if self.is_single:
            body(build, {}, build.constant(0))
            return build.constant(1)
        nest, index = self._nests[0], build.index
        zero, one = build.constant(0), build.constant(1)

        def value(name: str, *operands: Any, at: Builder = build) -> Any:
            return at.value(f"arith.{name}", operands, index)

        work = zero
        for each in self._nests:
            product = build.constant(each.cost())
            for loop in range(len(each.parallel)):
                product = value("muli", product, each.extent(build, loop))
            work = value("addi", work, product)
        rest = value("divui", work, build.constant(self._numbers["grain"]))
        # Each task may have memory of its own, so what is left of the most is rounded down, unlike the rest.
        most = build.constant(self._numbers["most_tasks"])
        rest = value("maxui", rest, one)
        cuts: list[tuple[int, Any, Any]] = []
        tasks = one
        for loop in self._loops:
            extent = nest.extent(build, loop)
            units = extent
            if loop in self._innermost:
                units = value("ceildivui", extent, build.constant(self._columns))
            times = value("maxui", value("minui", units, value("minui", rest, most)), one)
            rest = value("ceildivui", rest, times)
            most = value("divui", most, times)
            tasks = value("muli", tasks, times)
            cuts.append((loop, extent, times))
        tasks_loop = build.grouped("scf.parallel", [[zero], [tasks], [one], []], [], regions=1)
        block = ir.Block.create_at_start(tasks_loop.regions[0], [index], [nest.op.location])
        end = ir.Operation.create("scf.reduce", loc=nest.op.location, ip=ir.InsertionPoint(block))
        inside = Builder(end)
        left = block.arguments[0]
        ranges: dict[int, tuple[Any, Any]] = {}
        for loop, extent, times in reversed(cuts):
            number = value("remui", left, times, at=inside)
            left = value("divui", left, times, at=inside)
            size = value("ceildivui", extent, times, at=inside)
            if loop in self._innermost:
                columns = inside.constant(self._columns)
                size = value("muli", value("ceildivui", size, columns, at=inside), columns, at=inside)
            begin = value("minui", value("muli", number, size, at=inside), extent, at=inside)
            stop = value("minui", value("addi", begin, size, at=inside), extent, at=inside)
            ranges[loop] = begin, stop
        body(inside, ranges, block.arguments[0])
        return tasks
