"""Code that makes a primitive of oneDNN and executes it: the same for all kinds of primitives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from devscope.backends.backend import Claimed, Mlir
from devscope.backends.onednn.api import (
    ANY_FORMAT,
    CPU,
    ELTWISE,
    F32,
    IN_ORDER,
    LIBRARY_ALLOCATES,
    QUERY,
    USER_SCRATCHPAD,
    Argument,
    Size,
    Tensor,
    Text,
)

Create = Callable[[Text, str, Callable[[Argument], str], str], None]
"""Writes the making of a primitive descriptor: its address, an engine and what gives descriptors of memory and the
attributes are there."""


class _Cells(NamedTuple):
    """Where the handles of a tensor are: its memory as the program has it, the memory and the reorderings (to it,
    and back) if the library wants another layout, and the descriptor that the primitive is made with."""

    memory: int
    other: int
    to: int
    back: int
    descriptor: int
    wanted: int
    descriptions: tuple[int, int] = (-1, -1)
    """Of the reorderings."""


@dataclass
class Primitive:
    """``activation``: of `ELTWISE`. ``adds``: to what is in the result. ``before``: text that runs before;
    ``after`` writes what runs after."""

    function: Claimed
    tensors: Sequence[Tensor]
    create: Create
    activation: str | None = None
    adds: bool = False
    before: Sequence[str] = ()
    after: Callable[[Text], None] | None = None
    text: Text = field(init=False)

    def __post_init__(self) -> None:
        self.text = text = Text(self.function)
        self._stream = text.keep("stream")
        self._primitive, self._pd = text.keep("primitive"), text.keep("pd")
        self._attributes, self._post_ops = text.keep("attr"), text.keep("post_ops")
        self._scratchpad = text.keep("memory")
        self._of: Mapping[Argument, _Cells] = {one.argument: self._cells(one) for one in self.tensors}
        self._arguments = text.cells(2 * (len(self.tensors) + 1))
        self._pair = text.cells(4)
        self._keys = {
            size: text.cells() for size in sorted({s for t in self.tensors for d in t.dims for s in d.sizes})
        }

    def _cells(self, tensor: Tensor) -> _Cells:
        text = self.text
        memory, descriptor = text.keep("memory"), text.keep("md")
        if not tensor.is_free:
            return _Cells(memory, -1, -1, -1, descriptor, descriptor)
        back = text.keep("primitive") if tensor.argument is Argument.DESTINATION else -1
        reorderings = text.keep("pd"), text.keep("pd")
        to, wanted = text.keep("primitive"), text.keep("md")
        return _Cells(memory, text.keep("memory"), to, back, descriptor, wanted, reorderings)

    def code(self) -> Mlir:
        text = self.text
        with text.lines() as body:
            result = next(one for one in self.tensors if one.argument is Argument.DESTINATION)
            empty = [size for size in result.dims if size.sizes or not size.number]
            if empty:
                count = text.number(1)
                for size in empty:
                    count = text.new(f"arith.muli {count}, {text.size(size)} : i64")
                with text.when(text.new(f"arith.cmpi ne, {count}, {text.number(0)} : i64")):
                    self._call()
            else:
                self._call()
        with text.lines() as close:
            text.destroy()
        return text.module(body, close)

    # ------------------------------------------------------------------------------------------- a call

    def _call(self) -> None:
        text = self.text
        for line in self.before:
            text.line(line)
        most = text.call("omp_get_max_threads", result="i32")
        threads = text.new(f"arith.trunci {text.call('devscope_threads', result='i64')} : i64 to i32")
        text.call("omp_set_num_threads", (threads, "i32"))
        stale = text.new(f"arith.cmpi eq, {text.load(self._primitive, 'i64')}, {text.number(0)} : i64")
        for size, cell in self._keys.items():
            other = text.new(f"arith.cmpi ne, {text.load(cell, 'i64')}, {text.size(Size(1, (size,)))} : i64")
            stale = text.new(f"arith.ori {stale}, {other} : i1")
        with text.when(stale):
            self._make()
        stream = text.load(self._stream)
        for tensor in self.tensors:
            self._give(tensor, stream)
        count = text.i32(len(self.tensors) + 1)
        text.checked(
            "dnnl_primitive_execute", text.load(self._primitive), stream, count, text.cell(self._arguments)
        )
        for tensor in self.tensors:
            back = self._of[tensor.argument].back
            if back >= 0:
                with text.when(text.is_set(back)):
                    self._reorder(tensor.argument, back, stream)
        text.checked("dnnl_stream_wait", stream)
        text.call("omp_set_num_threads", (most, "i32"))
        if self.after is not None:
            self.after(text)

    def _give(self, tensor: Tensor, stream: str) -> None:
        """Tell a tensor's memory where its data is; put that into the layout that the primitive wants."""
        text, cells = self.text, self._of[tensor.argument]
        text.checked("dnnl_memory_set_data_handle", text.load(cells.memory), text.data(tensor.operand))
        if tensor.is_free and tensor.is_read and not tensor.is_constant:
            with text.when(text.is_set(cells.to)):
                self._reorder(tensor.argument, cells.to, stream)

    def _reorder(self, argument: Argument, primitive: int, stream: str) -> None:
        text, cells = self.text, self._of[argument]
        ends = [cells.memory, cells.other]
        for number, (name, memory) in enumerate(
            zip(
                (Argument.SOURCE, Argument.DESTINATION), ends if primitive == cells.to else ends[::-1], strict=True
            )
        ):
            self._argument(self._pair + 2 * number, name, text.load(memory))
        text.checked("dnnl_primitive_execute", text.load(primitive), stream, text.i32(2), text.cell(self._pair))

    def _argument(self, cell: int, argument: Argument, memory: str) -> None:
        """A dnnl_exec_arg_t."""
        self.text.store(self.text.number(argument), cell, "i64")
        self.text.store(memory, cell + 1)

    # ------------------------------------------------------------------------------------------- making it

    def _make(self) -> None:
        text = self.text
        text.destroy()
        text.checked("dnnl_engine_create", text.cell(text.engine_cell), text.i32(CPU), (text.number(0), "i64"))
        engine = text.engine()
        text.checked("dnnl_stream_create", text.cell(self._stream), engine, text.i32(IN_ORDER))
        for tensor in self.tensors:
            self._describe(tensor)
        self._describe_attributes()
        attributes = text.load(self._attributes)
        self.create(text, text.cell(self._pd), self._descriptor, attributes)
        for tensor in self.tensors:
            if tensor.is_free and tensor.spread:
                wanted = self._wanted(text.load(self._pd), tensor.argument)
                with text.when(self._is_other(tensor, wanted, "ne")):
                    self._spread(tensor, attributes)
        pd, stream = text.load(self._pd), text.load(self._stream)
        for number, tensor in enumerate(self.tensors):
            memory = self._remember(tensor, pd, stream)
            self._argument(self._arguments + 2 * number, tensor.argument, memory)
        scratchpad = self._wanted(pd, Argument.SCRATCHPAD)
        self._new_memory(self._scratchpad, scratchpad, LIBRARY_ALLOCATES)
        last = self._arguments + 2 * len(self.tensors)
        self._argument(last, Argument.SCRATCHPAD, text.load(self._scratchpad))
        for size, cell in self._keys.items():
            text.store(text.size(Size(1, (size,))), cell, "i64")
        text.checked("dnnl_primitive_create", text.cell(self._primitive), pd)

    def _describe(self, tensor: Tensor) -> None:
        text, cells = self.text, self._of[tensor.argument]
        self._describe_strides(cells.descriptor, tensor, tensor.strides)
        if tensor.is_free:
            wanted, format_ = text.cell(cells.wanted), text.i32(ANY_FORMAT)
            text.checked("dnnl_memory_desc_create_with_tag", wanted, *self._shape(tensor), format_)

    def _describe_strides(self, cell: int, tensor: Tensor, strides: Sequence[Size]) -> None:
        text = self.text
        made, shape, steps = text.cell(cell), self._shape(tensor), text.sizes(strides, 1)
        text.checked("dnnl_memory_desc_create_with_strides", made, *shape, steps)

    def _shape(self, tensor: Tensor) -> tuple[tuple[str, str], str, tuple[str, str]]:
        text = self.text
        return text.i32(len(tensor.dims)), text.sizes(tensor.dims), text.i32(F32)

    def _spread(self, tensor: Tensor, attributes: str) -> None:
        """Describe the primitive again, with a tensor of the strides that it is spread to."""
        text, wanted = self.text, self._of[tensor.argument].wanted
        text.destroy_one("pd", self._pd)
        text.destroy_one("md", wanted)
        self._describe_strides(wanted, tensor, tensor.spread)
        self.create(text, text.cell(self._pd), self._descriptor, attributes)

    def _descriptor(self, argument: Argument) -> str:
        """The descriptor of memory that a primitive is made with; null if it has no such argument."""
        return self.text.load(self._of[argument].wanted) if argument in self._of else self.text.null()

    def _describe_attributes(self) -> None:
        text = self.text
        text.checked("dnnl_primitive_attr_create", text.cell(self._attributes))
        attributes = text.load(self._attributes)
        text.checked("dnnl_primitive_attr_set_scratchpad_mode", attributes, text.i32(USER_SCRATCHPAD))
        text.checked("dnnl_post_ops_create", text.cell(self._post_ops))
        post_ops = text.load(self._post_ops)
        if self.adds:
            one = text.real(1.0), "f32"
            text.checked("dnnl_post_ops_append_sum", post_ops, one, text.i32(0), text.i32(0))
        if self.activation is not None:
            zero = text.real(0.0), "f32"
            text.checked("dnnl_post_ops_append_eltwise", post_ops, text.i32(ELTWISE[self.activation]), zero, zero)
        text.checked("dnnl_primitive_attr_set_post_ops", attributes, post_ops)

    def _wanted(self, pd: str, argument: Argument) -> str:
        return self.text.call(
            "dnnl_primitive_desc_query_md",
            pd,
            self.text.i32(QUERY[argument]),
            self.text.i32(0),
            result="!llvm.ptr",
        )

    def _new_memory(self, cell: int, descriptor: str, address: int) -> None:
        text = self.text
        handle = text.pointer(text.number(address))
        text.checked("dnnl_memory_create", text.cell(cell), descriptor, text.engine(), handle)

    def _remember(self, tensor: Tensor, pd: str, stream: str) -> str:
        """Make the memory of a tensor, and what puts it into the layout that the primitive wants.

        Gives the memory that the primitive gets.
        """
        text, cells = self.text, self._of[tensor.argument]
        own = text.load(cells.descriptor)
        self._new_memory(cells.memory, own, 0)
        memory = text.load(cells.memory)
        if not tensor.is_free:
            return memory
        wanted = self._wanted(pd, tensor.argument)
        differs = self._is_other(tensor, wanted)
        with text.when(differs):
            self._new_memory(cells.other, wanted, LIBRARY_ALLOCATES)
            if tensor.is_read:
                self._new_reorder(cells.descriptions[0], cells.to, own, wanted)
            if cells.back >= 0:
                self._new_reorder(cells.descriptions[1], cells.back, wanted, own)
            if tensor.is_constant:
                text.checked("dnnl_memory_set_data_handle", memory, text.data(tensor.operand))
                self._reorder(tensor.argument, cells.to, stream)
        other = text.load(cells.other)
        return text.new(f"arith.select {differs}, {other}, {memory} : !llvm.ptr")

    def _is_other(self, tensor: Tensor, wanted: str, predicate: str = "eq") -> str:
        """Whether the library wants a tensor in another layout; with the predicate "ne", whether in the same."""
        text = self.text
        own = text.load(self._of[tensor.argument].descriptor)
        equal = text.call("dnnl_memory_desc_equal", own, wanted, result="i32")
        return text.new(f"arith.cmpi {predicate}, {equal}, {text.number(0, 'i32')} : i32")

    def _new_reorder(self, made: int, cell: int, source: str, target: str) -> None:
        text = self.text
        engine = text.engine()
        text.checked(
            "dnnl_reorder_primitive_desc_create", text.cell(made), source, engine, target, engine, text.null()
        )
        text.checked("dnnl_primitive_create", text.cell(cell), text.load(made))
