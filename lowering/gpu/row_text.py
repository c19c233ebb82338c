"""What the template of kernels over rows is filled with.

A few work-items share a row, and each has every so manieth element of it: of operations that are done element by
element it has the results, of reductions a part, which they combine. Where the lengths of rows are known and go
into equal shares, what an element is stays in a register from one operation to the next: it is read and written
once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.bodies import (
    Combine,
    Workgroup,
    beginning,
    body_names,
    body_text,
    captured,
    like,
    own_combiners,
    used_arguments,
)
from devscope.lowering.gpu.index_text import Extent, Text
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.best_elements import Best, best_of
from devscope.lowering.kernels.contraction_operands import zero
from devscope.lowering.kernels.nest import Nest, Operand, product_of
from devscope.lowering.kernels.nest_bodies import neutral_text
from devscope.lowering.kernels.rows import RowGroup
from devscope.lowering.kernels.vector_bodies import EXTREMA
from devscope.lowering.memory.effects import elementwise_pairs
from devscope.lowering.target import Lanes

_ALONE = "alone"
_EACH = "each"
_ALL = "all"


def can_be_shared(nest: Nest, rows: int) -> bool:
    """Whether work-items can share a row of the results of ``nest``; ``rows``: how many axes say which.

    Those side by side are to read elements side by side.
    """
    if len({operand.dims for operand in nest.results}) > 1:
        return False
    around = nest.results[0].dims[:rows]
    kind = _kind(nest, rows)
    if kind is None or (kind == _ALL and own_combiners(nest.op) is None and best_of(nest.op) is None):
        return False
    return not any(
        operand.contiguous() in around
        for operand in nest.operands
        if operand.is_buffer and len(operand.dims) == len(nest.parallel) > rows
    )


def _kind(nest: Nest, rows: int) -> str | None:
    """What one row of results is: one number, of one element or of all of a row; or a number of each element."""
    inner = len(nest.results[0].dims) - rows
    if len(nest.parallel) > len(nest.results[0].dims):
        return None if inner else _ALL
    return _EACH if inner else _ALONE


_One = Callable[[Text, str, Mapping[int, str], int | None, Sequence[str]], Sequence[str]]
"""(its index in the row, those of loops, its number in registers, what there is so far): what there is then."""


@dataclass
class _Step:
    """``loops``: those inside a row, outermost first, and ``around`` it."""

    number: int
    nest: Nest
    kind: str
    loops: Sequence[int]
    around: Sequence[int]
    captured: Sequence[Any]
    best: Best | None

    def name(self, loop: int) -> int:
        """Of a loop in the text: those of rows are the same in all steps."""
        return self.around.index(loop) if loop in self.around else 100 * (self.number + 1) + loop

    def length(self) -> int | None:
        return product_of(self.nest.static_extent(loop) for loop in self.loops)

    def is_aligned(self, operand: Operand) -> bool:
        """Whether a work-item has the elements of ``operand`` that it has iterations of."""
        return self.kind in (_EACH, _ALL) and list(operand.dims) == [*self.around, *self.loops]


@dataclass
class RowText:
    """``operands``: values for the parameters. ``written``: those that are. ``private``: buffers that nobody needs
    any more. ``pairs``: inputs with results that may be in their memory."""

    group: RowGroup
    numbers: Mapping[str, int]
    lanes: Lanes
    operands: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        rows = self.group.rows
        self._names = count()
        self._steps = [_step(number, nest, rows) for number, nest in enumerate(self.group.nests)]
        self.written = {o.value for nest in self.group.nests for o in nest.results}
        self._divide()
        accesses: dict[Any, list[tuple[_Step, Operand]]] = {}
        for step in self._steps:
            for operand in step.nest.operands:
                if operand.is_buffer:
                    accesses.setdefault(operand.value, []).append((step, operand))
        self._scalars = {
            value for value, uses in accesses.items() if all(list(o.dims) == list(s.around) for s, o in uses)
        }
        self._held = {
            value
            for value, uses in accesses.items()
            if self._in_registers
            and all(s.is_aligned(o) and not (s.best and value in self.written) for s, o in uses)
        }
        temporary = set(self.group.temporaries())
        self.private = [v for v in accesses if v in temporary & (self._scalars | self._held)]
        self._local: dict[Any, str] = {}
        left = self.numbers["local_bytes"]
        for value in accesses:
            size = self._local_bytes(value)
            if value in temporary and value not in self.private and size is not None and size <= left:
                left -= size
                self._local[value] = f"line{len(self._local)}"
        self.private += list(self._local)
        values = [o.value for step in self._steps for o in step.nest.operands]
        values += [value for step in self._steps for value in step.captured]
        self.operands = [value for value in dict.fromkeys(values) if value not in self.private]
        self._memory = {v for v in self.written if v not in self._scalars and v not in self._held}
        self.pairs = [
            (source, target)
            for step in self._steps
            for source, target in elementwise_pairs(step.nest.op)
            if {source, target} <= self._held
            and source not in self.written
            and target in self.operands
            and not any(s.best for s, _ in accesses[source])  # which read all elements again
        ]
        self._changing = self.written | {source for source, _ in self.pairs}
        self.written &= set(self.operands)
        self._workgroup = Workgroup(self._threads, self._share, 1, self.lanes)
        self._now: dict[Any, str] = {}
        self._elements: dict[tuple[Any, int | None], str] = {}
        self._waits = False

    # ------------------------------------------------------------------------------------------ who does what

    def _divide(self) -> None:
        """How many work-items share a row, how many rows a workgroup has, whether elements stay in registers."""
        most, values = self.numbers["work_items"], self.numbers["values"]
        shared = [step for step in self._steps if step.kind != _ALONE]
        lengths = [step.length() for step in shared]
        known = [length for length in lengths if length is not None]
        share = most
        self._in_registers = False
        if len(known) == len(lengths) and 0 not in known:
            while share > 1 and any(length % share for length in known):
                share //= 2
            self._in_registers = max(known) <= share * values
            if not self._in_registers:
                share = min(most, 1 << (max(known) - 1).bit_length())
        self._share = share
        self._per_group = most // share
        rows = self.group.row_count()
        while self._per_group > 1 and rows is not None and self._per_group >= 2 * rows:
            self._per_group //= 2
        self._is_exact = self._per_group == 1 or (rows is not None and rows % self._per_group == 0)
        self._threads = share * self._per_group

    def _local_bytes(self, value: Any) -> int | None:
        type_ = ir.MemRefType(value.type)
        inside = type_.shape[self.group.rows :]
        if ir.ShapedType.get_dynamic_size() in inside or str(type_.element_type) == "i1":
            return None
        return prod(inside) * mlir_util.element_bytes(type_.element_type) * self._per_group

    # --------------------------------------------------------------------------------------------------- text

    def values(self) -> dict[str, object]:
        outside, inside, at_row = (Text([], self._names) for _ in range(3))
        around = self._steps[0].around
        outside.sizes("", "N", range(len(around)), self._extent_of_row)
        inside.sizes("inside_", "N", range(len(around)), self._extent_of_row)
        self._row = at_row.split("%row", list(range(len(around))))
        text = Text([], self._names)
        for step in self._steps:
            self._wait(text, step)
            self._emit(text, inside, step)
        self._store_rest(text)
        lines = [f"%{name}: {self._type(value)}" for value, name in self._local.items()]
        parameters = [f"{self._name(value)}: {value.type}" for value in self.operands]
        return {
            "PARAMETERS": ", ".join(parameters),
            "SIZES": outside.joined(),
            "SIZES_INSIDE": inside.joined(),
            "WORK_ITEMS": self._threads,
            "SHARE": self._share,
            "ROWS": self._per_group,
            "ROOMS": self._workgroup.parameters(lines),
            # Work-items behind the last row compute the first one, in vain.
            "AT": "%wanted" if self._is_exact else "%there",
            "AT_ROW": at_row.joined(),
            "STEPS": text.joined(),
        }

    def _name(self, value: Any) -> str:
        return f"%operand{self.operands.index(value)}"

    def _type(self, value: Any) -> str:
        """Of the memory that has ``value``."""
        if value not in self._local:
            return str(value.type)
        type_ = ir.MemRefType(value.type)
        shape = "x".join(map(str, [self._per_group, *type_.shape[self.group.rows :]]))
        return f"memref<{shape}x{type_.element_type}, #gpu.address_space<workgroup>>"

    def _extent_of_row(self, number: int) -> Extent:
        found: Extent | None = None
        for step in self._steps:
            for operand in step.nest.operands:
                if operand.is_buffer and step.around[number] in operand.dims:
                    known = step.nest.static_extent(step.around[number])
                    if known is not None:
                        return Extent(known, "", 0, "")
                    if operand.value in self.operands and found is None:
                        found = self._extent(operand, step.around[number])
        assert found is not None
        return found

    def _extent(self, operand: Operand, loop: int) -> Extent:
        return Extent(None, self._name(operand.value)[1:], operand.dims.index(loop), str(operand.value.type))

    def _extent_in(self, step: _Step) -> Callable[[int], Extent]:
        def extent(name: int) -> Extent:
            loop = next(loop for loop in range(len(step.nest.parallel)) if step.name(loop) == name)
            known = step.nest.static_extent(loop)
            if known is not None:
                return Extent(known, "", 0, "")
            operands = (o for o in step.nest.operands if o.is_buffer and o.value in self.operands)
            return self._extent(next(o for o in operands if loop in o.dims), loop)

        return extent

    def _wait(self, text: Text, step: _Step) -> None:
        """Work-items wait for each other where one may use what another wrote, or write what another reads."""
        used = {operand.value for operand in step.nest.operands} & self._memory
        if used and self._waits:
            text.lines.append("gpu.barrier")
            self._waits = False
        self._waits |= bool(used)

    def _emit(self, text: Text, sizes: Text, step: _Step) -> None:
        loops = [step.name(loop) for loop in step.loops]
        sizes.sizes("inside_", f"K{step.number}", loops, self._extent_in(step))
        if step.kind == _ALONE:
            results = self._iteration(text, step, {}, None)
            self._now.update(zip((o.value for o in step.nest.results), results, strict=True))
        elif step.kind == _ALL:
            self._reduce(text, step, loops)
        elif self._in_registers:
            for turn, index in self._turns(text, step):
                self._one(text, step, self._at(text, step, index, loops), turn)
        else:
            index = f"%k{step.number}"
            text.lines.append(f"scf.for {index} = %share to %inside_K{step.number} step %step {{")
            self._one(text, step, self._at(text, step, index, loops), None)
            text.lines.append("}")

    def _turns(self, text: Text, step: _Step) -> Sequence[tuple[int, str]]:
        length = step.length() or 0
        return [(turn, text.plus("%share", turn * self._share)) for turn in range(length // self._share)]

    def _at(self, text: Text, step: _Step, index: str, names: Sequence[int]) -> dict[int, str]:
        """The indices of the loops of ``step`` that are called ``names``, and of those around."""
        found = {**self._row, **text.split(index, names)}
        return {
            loop: found[step.name(loop)] for loop in range(len(step.nest.parallel)) if step.name(loop) in found
        }

    def _one(self, text: Text, step: _Step, at: Mapping[int, str], turn: int | None) -> None:
        """The results that an index in a row has."""
        results = self._iteration(text, step, at, turn)
        for operand, result in zip(step.nest.results, results, strict=True):
            if operand.value in self._held:
                self._elements[operand.value, turn] = result
            else:
                self._store(text, step, operand, result, at)

    def _reduce(self, text: Text, step: _Step, loops: Sequence[int]) -> None:
        """What work-items have of a row is combined, and then with what was there before."""
        combiners = own_combiners(step.nest.op)
        old = [self._load(text, step, operand, {}, None) for operand in step.nest.results]
        if combiners is None:
            results = self._reduce_to_best(text, step, loops, old)
        else:
            types = [str(combiner.results[0].type) for combiner in combiners]
            begin = [(beginning(combiner), type_) for combiner, type_ in zip(combiners, types, strict=True)]

            def one(
                text: Text, _: str, at: Mapping[int, str], turn: int | None, so_far: Sequence[str]
            ) -> Sequence[str]:
                return self._iteration(text, step, at, turn, so_far)

            def combine(text: Text, ones: Sequence[str], others: Sequence[str]) -> list[str]:
                pairs = zip(combiners, ones, others, strict=True)
                return [text.value(like(combiner, [one, other])) for combiner, one, other in pairs]

            results = combine(text, old, self._shared(text, step, loops, begin, one, combine))
        for operand, done in zip(step.nest.results, results, strict=True):
            assert operand.value in self._scalars
            self._now[operand.value] = done

    def _shared(
        self,
        text: Text,
        step: _Step,
        loops: Sequence[int],
        begin: Sequence[tuple[str, str]],
        one: _One,
        combine: Combine,
    ) -> Sequence[str]:
        """What comes of a row, of numbers and types that it begins with, by a step for each element."""
        types = [type_ for _, type_ in begin]
        parts: Sequence[str] = [text.value(f"arith.constant {number} : {type_}") for number, type_ in begin]
        if self._in_registers:
            for turn, index in self._turns(text, step):
                parts = one(text, index, self._at(text, step, index, loops), turn, parts)
        else:
            inside, index = text.nested(), f"%k{step.number}"
            so_far = [f"%so{step.number}_{n}" for n in range(len(types))]
            yielded = one(inside, index, self._at(inside, step, index, loops), None, so_far)
            bounds = f"%share to %inside_K{step.number} step %step"
            parts = _loop(
                text, f"{index} = {bounds}", dict(zip(so_far, parts, strict=True)), types, inside, yielded
            )
        before = len(text.lines)
        parts = self._workgroup.combine(text, parts, types, combine)
        self._waits &= "gpu.barrier" not in text.lines[before:]
        return parts

    def _reduce_to_best(self, text: Text, step: _Step, loops: Sequence[int], old: Sequence[str]) -> Sequence[str]:
        """The body is done once, for the element that decides. With NaN, or a best zero: for all, in order."""
        best, nest = step.best, step.nest
        assert best is not None
        type_ = best.number.type
        begin = [(neutral_text(best.name, type_), str(type_)), ("0", "index"), ("0", "i32")]
        kind, predicate = ("arith.cmpf" if best.is_float else "arith.cmpi"), EXTREMA[best.name][0]

        def is_better(text: Text, new: str, old: str) -> str:
            compared = f'"{kind}"({new}, {old}) {{predicate = {predicate} : i64}}'
            return text.value(f"{compared} : ({type_}, {type_}) -> i1")

        def one(
            text: Text, index: str, at: Mapping[int, str], turn: int | None, so_far: Sequence[str]
        ) -> Sequence[str]:
            given = self._given(text, step, at, turn, old)
            number = body_names(text, nest.op, given, self._indices(step, at))[best.number]
            better = is_better(text, number, so_far[0])
            found = text.value(f"arith.select {better}, {number}, {so_far[0]} : {type_}")
            place = text.value(f"arith.select {better}, {index}, {so_far[1]} : index")
            if not best.is_float:
                return found, place, so_far[2]
            doubt = text.value(f"arith.cmpf uno, {number}, {number} : {type_}")
            return found, place, text.value(f"arith.select {doubt}, %one, {so_far[2]} : i32")

        def combine(text: Text, ones: Sequence[str], others: Sequence[str]) -> Sequence[str]:
            better, worse = is_better(text, others[0], ones[0]), is_better(text, ones[0], others[0])
            before = text.value(f"arith.cmpi ult, {others[1]}, {ones[1]} : index")
            no_worse = text.value(f"arith.select {worse}, {better}, {before} : i1")
            chosen = text.value(f"arith.ori {better}, {no_worse} : i1")
            return (
                text.value(f"arith.select {chosen}, {others[0]}, {ones[0]} : {type_}"),
                text.value(f"arith.select {chosen}, {others[1]}, {ones[1]} : index"),
                text.value(f"arith.ori {ones[2]}, {others[2]} : i32"),
            )

        number, place, doubt = self._shared(text, step, loops, begin, one, combine)
        known = text.value(f"arith.cmpi ne, %inside_K{step.number}, %c0 : index")
        if best.is_float:
            certain = text.value(f"arith.cmpi ne, {doubt}, %one : i32")
            zero = text.value(f"arith.constant 0.0 : {type_}")
            certain = text.value(
                f"arith.andi {certain}, {text.value(f'arith.cmpf one, {number}, {zero} : {type_}')} : i1"
            )
            known = text.value(f"arith.andi {known}, {certain} : i1")
        types = [str(ir.MemRefType(o.value.type).element_type) for o in nest.results]
        done = [f"%chosen{step.number}_{n}" for n in range(len(types))]
        once, all_, inside = text.nested(), text.nested(), text.nested()
        results = self._iteration(once, step, self._at(once, step, place, loops), None, old, fresh=True)
        so_far, index = [f"%in_order{step.number}_{n}" for n in range(len(types))], f"%s{step.number}"
        yielded = self._iteration(inside, step, self._at(inside, step, index, loops), None, so_far, fresh=True)
        bounds = f"{index} = %c0 to %inside_K{step.number} step %c1"
        in_order = _loop(all_, bounds, dict(zip(so_far, old, strict=True)), types, inside, yielded)
        listed = ", ".join(types)
        text.lines += [
            f"{', '.join(done)} = scf.if {known} -> ({listed}) {{",
            *once.lines,
            f"scf.yield {', '.join(results)} : {listed}",
            "} else {",
            *all_.lines,
            f"scf.yield {', '.join(in_order)} : {listed}",
            "}",
        ]
        return done

    def _iteration(
        self,
        text: Text,
        step: _Step,
        at: Mapping[int, str],
        turn: int | None,
        so_far: Sequence[str] = (),
        fresh: bool = False,
    ) -> list[str]:
        """What the body makes of the elements at indices; ``so_far``: of results. ``fresh``: from memory."""
        given = self._given(text, step, at, turn, so_far, fresh)
        return body_text(text, step.nest.op, given, self._indices(step, at))

    def _given(
        self,
        text: Text,
        step: _Step,
        at: Mapping[int, str],
        turn: int | None,
        so_far: Sequence[str] = (),
        fresh: bool = False,
    ) -> dict[Any, str]:
        nest, used = step.nest, used_arguments(step.nest.op)
        given = {value: self._name(value) for value in step.captured}
        arguments = zip(mlir_util.entry_block(nest.op).arguments, nest.operands, strict=True)
        for number, (argument, operand) in enumerate(arguments):
            if number not in used:
                continue
            if number >= nest.inputs and so_far:
                given[argument] = so_far[number - nest.inputs]
            elif not operand.is_buffer:
                given[argument] = self._name(operand.value)
            elif fresh and operand.value in self._held:
                given[argument] = self._read(text, step, operand, at)
            else:
                given[argument] = self._load(text, step, operand, at, turn)
        return given

    def _indices(self, step: _Step, at: Mapping[int, str]) -> dict[int, str]:
        around = {loop: self._row[number] for number, loop in enumerate(step.around)}
        return {**around, **at}

    def _load(self, text: Text, step: _Step, operand: Operand, at: Mapping[int, str], turn: int | None) -> str:
        value = operand.value
        if value in self._now and value in self._scalars:
            return self._now[value]
        if value not in self._held:
            return self._read(text, step, operand, at)
        key = value, turn
        if key not in self._elements:
            self._elements[key] = self._read(text, step, operand, at)
        return self._elements[key]

    def _place(self, step: _Step, operand: Operand, at: Mapping[int, str]) -> str:
        indices = self._indices(step, at)
        if operand.value in self._local:
            inner = [indices[loop] for loop in operand.dims[self.group.rows :]]
            return f"%{self._local[operand.value]}[{', '.join(['%row_of', *inner])}]"
        return f"{self._name(operand.value)}[{', '.join(indices[loop] for loop in operand.dims)}]"

    def _read(self, text: Text, step: _Step, operand: Operand, at: Mapping[int, str]) -> str:
        load = f"memref.load {self._place(step, operand, at)} : {self._type(operand.value)}"
        if self._is_exact or operand.value in self._local or operand.value not in self._changing:
            return text.value(load)
        # Of rows that are not there, nothing is read that others write.
        type_ = str(ir.MemRefType(operand.value.type).element_type)
        inside, other = text.nested(), text.nested()
        read = inside.value(load)
        none = other.value(f"arith.constant {zero(type_)} : {type_}")
        made = text.value(f"scf.if %is_there -> ({type_}) {{")
        text.lines += [*inside.lines, f"scf.yield {read} : {type_}", "} else {"]
        text.lines += [*other.lines, f"scf.yield {none} : {type_}", "}"]
        return made

    def _store(self, text: Text, step: _Step, operand: Operand, value: str, at: Mapping[int, str]) -> None:
        line = f"memref.store {value}, {self._place(step, operand, at)} : {self._type(operand.value)}"
        is_shared = operand.value not in self._local and not self._is_exact
        text.lines += ["scf.if %is_there {", line, "}"] if is_shared else [line]

    def _store_rest(self, text: Text) -> None:
        """What stayed in registers, and somebody else wants."""
        numbers = [value for value in self._now if value in self.written and value in self._scalars]
        if numbers:
            text.lines.append(f"scf.if {text.value('arith.cmpi eq, %share, %c0 : index')} {{")
            for value in numbers:
                step, operand = self._last(value)
                self._store(text, step, operand, self._now[value], {})
            text.lines.append("}")
        for (value, turn), element in self._elements.items():
            if value in self.written:
                step, operand = self._last(value)
                index = text.plus("%share", (turn or 0) * self._share)
                at = self._at(text, step, index, [step.name(loop) for loop in step.loops])
                self._store(text, step, operand, element, at)

    def _last(self, value: Any) -> tuple[_Step, Operand]:
        """A step that uses ``value``, and how."""
        return next((s, o) for s in self._steps[::-1] for o in s.nest.operands if o.value == value)


def _step(number: int, nest: Nest, rows: int) -> _Step:
    around = nest.results[0].dims[:rows]
    kind = _kind(nest, rows)
    assert kind is not None
    loops: Sequence[int] = nest.results[0].dims[rows:]
    if kind == _ALL:
        loops = [loop for loop in range(len(nest.parallel)) if loop not in around]
    best = best_of(nest.op) if kind == _ALL and own_combiners(nest.op) is None else None
    return _Step(number, nest, kind, loops, around, captured(nest.op), best)


def _loop(
    text: Text, bounds: str, carried: Mapping[str, str], types: Sequence[str], body: Text, yielded: Sequence[str]
) -> list[str]:
    """A loop that carries numbers; their names behind it."""
    done = [text.new_name() for _ in carried]
    pairs = ", ".join(f"{name} = {value}" for name, value in carried.items())
    text.lines += [
        f"{', '.join(done)} = scf.for {bounds} iter_args({pairs}) -> ({', '.join(types)}) {{",
        *body.lines,
        f"scf.yield {', '.join(yielded)} : {', '.join(types)}",
        "}",
    ]
    return done
