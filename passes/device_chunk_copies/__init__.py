"""``device-chunk-copies``: large data goes to a device, through its work and back in parts, one part at a time.

Runs on a split module. Where a device function goes by rows (see `sliced_function`), its call, with the copies
around it::

    copy in x; copy in w; y = f(x, w); copy out y

becomes a loop, over the same function for fewer rows::

    copy in w; for each chunk: { copy in rows of x; rows of y = f(rows of x, w); copy out rows of y }

which `device-pipeline-loops` then pipelines: copies overlap with computing. What is not needed row by row is
copied whole, before the loop, and what ``f`` computes from that alone is computed there. Where the number of rows
is no multiple of that of a chunk, the last chunk starts early and does some rows again, so that all chunks are of
one size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import ImplicitBuilder
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IndexType, IntegerAttr, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.split_functions import functions_on_devices, is_host_code
from devscope.analysis.symbols import Symbols
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import SAME_SIZE
from devscope.errors import OptionError
from devscope.passes.device_chunk_copies.sliced_function import SlicedFunction, of_rows
from devscope.passes.device_plan.min_cost.sizes import Sizes
from devscope.passes.device_unused import DeviceUnusedPass
from devscope.passes.device_verify_split import SplitModulePass
from devscope.rewriting.functions import fresh_name, redirect, taken_names

#: Copies in and out of a chunk together. Starting a chunk takes as long as copying some ten KiB.
LEAST_BYTES = 1 << 18


@dataclass(frozen=True)
class DeviceChunkCopiesPass(SplitModulePass):
    """Copy large data to devices, compute with it and copy results back in chunks of rows."""

    name = "device-chunk-copies"

    chunks: int = 4
    """How many chunks to make; fewer where they would be too small."""
    least: int = LEAST_BYTES
    """The least bytes to copy per chunk, in and out together."""
    host: str = "cpu:0"
    """The scope that host functions run on."""

    def __post_init__(self) -> None:
        if self.chunks < 1:
            raise OptionError(f"{self.chunks} is not a number of chunks", notes=["legal: 1 (as a whole) and more"])

    def run(self, analyses: AnalysisManager) -> bool:
        """Put calls of device functions into loops over chunks, where that is legal and of use."""
        # Devices that code for the host stands for have no memory of their own.
        functions = [f for f in functions_on_devices(analyses.get(Symbols)) if not is_host_code(f)]
        work = {f: found for f in functions if (found := SlicedFunction.of(f)) is not None}
        calls = [(op, work[f]) for op, _, f in analyses.get(CallGraph).calls if f is not None and f in work]
        names = taken_names(analyses.module)
        changed = False
        for op, function in calls:
            launch = _Launch.of(op, function, analyses.host)
            sizes = launch.sizes(self.chunks, self.least) if launch is not None else None
            if launch is not None and sizes is not None:
                launch.chunk(sizes, names)
                changed = True
        if changed:
            analyses.invalidate()
            DeviceUnusedPass().run(analyses)
        return changed


@dataclass(frozen=True)
class _ChunkSizes:
    """Into which chunks rows fall: the operations in ``block`` make the numbers.

    ``total`` and ``rows``: of all and of each chunk; ``last``: where the last chunk starts. ``static``: ``rows``,
    or `DYNAMIC_INDEX`. All chunks are of one size; without rows there are none.
    """

    block: Block
    zero: SSAValue
    total: SSAValue
    rows: SSAValue
    last: SSAValue
    static: int

    @classmethod
    def of_static(cls, total: int, chunks: int, least: int) -> _ChunkSizes | None:
        """At most ``chunks``, of ``least`` rows or more; None if that leaves one chunk."""
        rows = max(math.ceil(total / chunks), least)
        if rows >= total:
            return None
        with ImplicitBuilder(block := Block()):
            numbers = [_constant(number) for number in (0, total, rows, total - rows)]
        return cls(block, *numbers, static=rows)

    @classmethod
    def of_dynamic(cls, tensor_: SSAValue, chunks: int, least: int) -> _ChunkSizes:
        """The same for the rows of a tensor; there may be one chunk."""
        from xdsl.dialects import arith, tensor

        with ImplicitBuilder(block := Block()):
            zero, one, parts, fewest = (_constant(number) for number in (0, 1, chunks, max(least, 1)))
            total = tensor.DimOp(tensor_, zero).results[0]
            share = arith.CeilDivUIOp(total, parts)
            present = arith.MinUIOp(arith.MaxUIOp(share, fewest), total)
            rows = arith.MaxUIOp(present, one).result  # a step must not be 0
            last = arith.SubiOp(total, rows).result
        return cls(block, zero, total, rows, last, DYNAMIC_INDEX)


def _constant(number: int) -> SSAValue:
    from xdsl.dialects import arith  # programs without chunks do without it

    return arith.ConstantOp(IntegerAttr(number, IndexType())).result


@dataclass(frozen=True)
class _Launch:
    """A call of a function that goes by rows, with its copies: per argument and result that is made of rows."""

    call: Operation
    work: SlicedFunction
    copies_in: list[DeviceCopyOp | None]
    copies_out: list[list[DeviceCopyOp]]

    @classmethod
    def of(cls, call: Operation, work: SlicedFunction, host: ScopeAttr) -> _Launch | None:
        """None where rows are used by others on the device too, or come from there."""
        copies_in: list[DeviceCopyOp | None] = []
        for value, argument in zip(call.operands, work.function.body.block.args, strict=True):
            copy = value.owner
            if argument not in work.by_rows:
                copies_in.append(None)
            elif isinstance(copy, DeviceCopyOp) and copy.src == host and _is_only_for(copy, call):
                copies_in.append(copy)
            else:
                return None
        copies_out: list[list[DeviceCopyOp]] = []
        for result in call.results:
            users = [use.operation for use in result.uses]
            copies = [op for op in users if isinstance(op, DeviceCopyOp) and op.dst == host]
            if not copies or len(copies) < len(users) or any(op.parent is not call.parent for op in copies):
                return None
            copies_out.append(copies)
        launch = cls(call, work, copies_in, copies_out)
        return launch if any(copies_in) and all(_has_static_rows(v.type) for v in launch._by_rows) else None

    @property
    def _by_rows(self) -> list[SSAValue]:
        return [*(copy.operand for copy in self.copies_in if copy is not None), *self.call.results]

    def sizes(self, chunks: int, least: int) -> _ChunkSizes | None:
        """Chunks that copy ``least`` bytes or more; None if there would be only one."""
        bytes_of_row = sum(Sizes(1).bytes(of_rows(value.type, 1)) for value in self._by_rows)
        if chunks == 1 or not bytes_of_row:
            return None
        rows = math.ceil(least / bytes_of_row)
        if self.work.rows == DYNAMIC_INDEX:
            return _ChunkSizes.of_dynamic(self._by_rows[0], chunks, rows)
        return _ChunkSizes.of_static(self.work.rows, chunks, rows)

    def chunk(self, sizes: _ChunkSizes, names: set[str]) -> None:
        """Replace the call by a loop that calls a new function; the copies have no use then.

        ``names`` are taken; that of the function is added.
        """
        from xdsl.dialects import arith, scf, tensor  # programs without chunks do without them

        shared = self._call_of_shared(names)
        name = self.work.function.sym_name.data
        function = self.work.of_rows(sizes.static, fresh_name(f"{name}_chunk", names))
        extents = [sizes.total] if self.work.rows == DYNAMIC_INDEX else []
        block = Block(arg_types=[IndexType(), *self.call.result_types])
        with ImplicitBuilder(block):
            start = arith.MinSIOp(block.args[0], sizes.last).result
            launch = self._call_of(function, [*self._copy_in(start, sizes), *shared])
            scf.YieldOp(*self._copy_out(launch, block.args[1:], start, sizes))
        with ImplicitBuilder(sizes.block):
            self._require_same_rows(sizes)
            wholes = [tensor.EmptyOp(extents, type_) for type_ in self.call.result_types]
            loop = scf.ForOp(sizes.zero, sizes.total, sizes.rows, wholes, block)
        for op in sizes.block.walk():
            op.location = self.call.location
        Rewriter.inline_block(sizes.block, InsertPoint.before(self.call))
        for copies, result in zip(self.copies_out, loop.results, strict=True):
            for copy in copies:
                Rewriter.replace_op(copy, [], [result])
        self.call.detach()
        self.call.erase()

    def _require_same_rows(self, sizes: _ChunkSizes) -> None:
        """Rows that are more than those of another operand must not be left out in silence."""
        from xdsl.dialects import arith, cf, tensor

        for value in [copy.operand for copy in self.copies_in if copy is not None]:
            if sizes.static == DYNAMIC_INDEX and value is not self._by_rows[0]:
                same = arith.CmpiOp(sizes.total, tensor.DimOp(value, sizes.zero).results[0], "eq")
                check = cf.AssertOp(same, "in chunks of rows")
                check.attributes[SAME_SIZE] = ArrayAttr([StringAttr("a number of rows")] * 2)

    def _call_of_shared(self, names: set[str]) -> Sequence[SSAValue]:
        """What all chunks share, by a call in front of this one. The rows are arguments that it does not use."""
        if not self.work.shared:
            return ()
        function = self.work.of_shared(fresh_name(f"{self.work.function.sym_name.data}_shared", names))
        call = self._call_of(function, self.call.operands)
        Rewriter.insert_op(call, InsertPoint.before(self.call))
        return call.results

    def _call_of(self, function: FuncOp, arguments: Sequence[SSAValue]) -> Operation:
        call = type(self.call).create(
            operands=arguments,
            result_types=function.function_type.outputs.data,
            attributes=dict(self.call.attributes),
            properties=dict(self.call.properties),
            location=self.call.location,
        )
        redirect(call, function.sym_name.data)
        return call

    def _copy_in(self, start: SSAValue, sizes: _ChunkSizes) -> list[SSAValue]:
        """The arguments of the call for a chunk."""
        from xdsl.dialects import tensor

        arguments: list[SSAValue] = []
        known = self.work.function.body.block.args
        for value, copy, argument in zip(self.call.operands, self.copies_in, known, strict=True):
            if copy is None:
                arguments.append(sizes.rows if argument in self.work.counts else value)
                continue
            type_ = of_rows(value.type, sizes.static)
            _, *row = type_.get_shape()
            rows = sizes.rows if sizes.static == DYNAMIC_INDEX else sizes.static
            strides = [1, *(1 for _ in row)]
            slice_ = tensor.ExtractSliceOp(copy.operand, [start, *(0 for _ in row)], [rows, *row], strides, type_)
            arguments.append(DeviceCopyOp(slice_, copy.src, copy.dst).result)
        return arguments

    def _copy_out(
        self, launch: Operation, wholes: Sequence[SSAValue], start: SSAValue, sizes: _ChunkSizes
    ) -> list[SSAValue]:
        """The whole results, with a chunk in them."""
        from xdsl.dialects import tensor

        updated: list[SSAValue] = []
        for result, copies, whole in zip(launch.results, self.copies_out, wholes, strict=True):
            moved = DeviceCopyOp(result, copies[0].src, copies[0].dst)
            shape = of_rows(result.type, sizes.static).get_shape()
            extents = [sizes.rows] if sizes.static == DYNAMIC_INDEX else []
            inserted = tensor.InsertSliceOp.get(moved.result, whole, shape, offsets=[start], sizes=extents)
            updated.append(inserted.result)
        return updated


def _is_only_for(copy: DeviceCopyOp, call: Operation) -> bool:
    return copy.parent is call.parent and copy.result.has_one_use()


def _has_static_rows(type_: Attribute) -> bool:
    """Whether it is known what a row looks like, if not how many there are."""
    return isinstance(type_, TensorType) and DYNAMIC_INDEX not in type_.get_shape()[1:]
