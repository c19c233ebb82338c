"""What the template of kernels over rows is filled with.

Of operations that are done element by element a work-item has the results, of reductions a part, which those that
share a row combine.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.bodies import (
    Combine,
    Workgroup,
    beginning,
    body_names,
    body_text,
    like,
    own_combiners,
    used_arguments,
)
from devscope.lowering.gpu.index_text import Extent, Text
from devscope.lowering.gpu.row_places import RowPlaces, RowShares
from devscope.lowering.gpu.row_steps import ALL, ALONE, Step, steps_of
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_operands import zero
from devscope.lowering.kernels.nest import Operand
from devscope.lowering.kernels.nest_bodies import neutral_text
from devscope.lowering.kernels.rows import RowGroup
from devscope.lowering.kernels.vector_bodies import EXTREMA
from devscope.lowering.target import Lanes

_One = Callable[[Text, str, Mapping[int, str], int | None, Sequence[str]], Sequence[str]]
"""(its index in the row, those of loops, its number in registers, what there is so far): what there is then."""


class RowText:
    """Of the operations of ``group``; ``numbers``: those of the row of the table."""

    def __init__(self, group: RowGroup, numbers: Mapping[str, int], lanes: Lanes) -> None:
        self._rows = group.rows
        self._names = count()
        self._steps = steps_of(group)
        self._shares = RowShares(group, self._steps, numbers)
        self.places = RowPlaces(group, self._steps, self._shares, numbers["local_bytes"])
        self._workgroup = Workgroup(self._shares.threads, self._shares.share, 1, lanes)
        self._now: dict[Any, str] = {}
        self._elements: dict[tuple[Any, int | None], str] = {}
        self._waits = False
        self._are_numbers_read = False
        """Whether all work-items of a row may still read what one of them writes in the end."""

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
        lines = [f"%{name}: {self._type(value)}" for value, name in self.places.local.items()]
        parameters = [f"{self._name(value)}: {value.type}" for value in self.places.operands]
        return {
            "PARAMETERS": ", ".join(parameters),
            "SIZES": outside.joined(),
            "SIZES_INSIDE": inside.joined(),
            "WORK_ITEMS": self._shares.threads,
            "SHARE": self._shares.share,
            "ROWS": self._shares.per_group,
            "ROOMS": self._workgroup.parameters(lines),
            # Work-items behind the last row compute the first one, in vain.
            "AT": "%wanted" if self._shares.is_exact else "%there",
            "AT_ROW": at_row.joined(),
            "STEPS": text.joined(),
        }

    def _name(self, value: Any) -> str:
        return f"%operand{self.places.operands.index(value)}"

    def _type(self, value: Any) -> str:
        """Of the memory that has ``value``."""
        if value not in self.places.local:
            return str(value.type)
        type_ = ir.MemRefType(value.type)
        shape = "x".join(map(str, [self._shares.per_group, *type_.shape[self._rows :]]))
        return f"memref<{shape}x{type_.element_type}, #gpu.address_space<workgroup>>"

    def _extent_of_row(self, number: int) -> Extent:
        found: Extent | None = None
        for step in self._steps:
            for operand in step.nest.operands:
                if operand.is_buffer and step.around[number] in operand.dims:
                    known = step.nest.static_extent(step.around[number])
                    if known is not None:
                        return Extent(known, "", 0, "")
                    if operand.value in self.places.operands and found is None:
                        found = self._extent(operand, step.around[number])
        assert found is not None
        return found

    def _extent(self, operand: Operand, loop: int) -> Extent:
        return Extent(None, self._name(operand.value)[1:], operand.dims.index(loop), str(operand.value.type))

    def _extent_in(self, step: Step) -> Callable[[int], Extent]:
        def extent(name: int) -> Extent:
            loop = next(loop for loop in range(len(step.nest.parallel)) if step.name(loop) == name)
            known = step.nest.static_extent(loop)
            if known is not None:
                return Extent(known, "", 0, "")
            operands = (o for o in step.nest.operands if o.is_buffer and o.value in self.places.operands)
            return self._extent(next(o for o in operands if loop in o.dims), loop)

        return extent

    def _wait(self, text: Text, step: Step) -> None:
        """Work-items wait for each other where one may use what another wrote, or write what another reads."""
        used = {operand.value for operand in step.nest.operands} & self.places.shared
        if used and self._waits:
            text.lines.append("gpu.barrier")
            self._waits = self._are_numbers_read = False
        self._waits |= bool(used)

    def _emit(self, text: Text, sizes: Text, step: Step) -> None:
        loops = [step.name(loop) for loop in step.loops]
        sizes.sizes("inside_", f"K{step.number}", loops, self._extent_in(step))
        if step.kind == ALONE:
            results = self._iteration(text, step, {}, None)
            self._now.update(zip((o.value for o in step.nest.results), results, strict=True))
        elif step.kind == ALL:
            self._reduce(text, step, loops)
        elif self._shares.in_registers:
            for turn, index in self._turns(text, step):
                self._one(text, step, self._at(text, step, index, loops), turn)
        else:
            index = f"%k{step.number}"
            text.lines.append(f"scf.for {index} = %share to %inside_K{step.number} step %step {{")
            self._one(text, step, self._at(text, step, index, loops), None)
            text.lines.append("}")

    def _turns(self, text: Text, step: Step) -> Sequence[tuple[int, str]]:
        length = step.length() or 0
        return [
            (turn, text.plus("%share", turn * self._shares.share)) for turn in range(length // self._shares.share)
        ]

    def _at(self, text: Text, step: Step, index: str, names: Sequence[int]) -> dict[int, str]:
        """The indices of the loops of ``step`` that are called ``names``, and of those around."""
        found = {**self._row, **text.split(index, names)}
        return {
            loop: found[step.name(loop)] for loop in range(len(step.nest.parallel)) if step.name(loop) in found
        }

    def _one(self, text: Text, step: Step, at: Mapping[int, str], turn: int | None) -> None:
        """The results that an index in a row has."""
        results = self._iteration(text, step, at, turn)
        for operand, result in zip(step.nest.results, results, strict=True):
            if operand.value in self.places.held:
                self._elements[operand.value, turn] = result
            else:
                self._store(text, step, operand, result, at)

    def _reduce(self, text: Text, step: Step, loops: Sequence[int]) -> None:
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
            assert operand.value in self.places.scalars
            self._now[operand.value] = done

    def _shared(
        self,
        text: Text,
        step: Step,
        loops: Sequence[int],
        begin: Sequence[tuple[str, str]],
        one: _One,
        combine: Combine,
    ) -> Sequence[str]:
        """What comes of a row, of numbers and types that it begins with, by a step for each element."""
        types = [type_ for _, type_ in begin]
        parts: Sequence[str] = [text.value(f"arith.constant {number} : {type_}") for number, type_ in begin]
        if self._shares.in_registers:
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
        if "gpu.barrier" in text.lines[before:]:
            self._waits = self._are_numbers_read = False
        return parts

    def _reduce_to_best(self, text: Text, step: Step, loops: Sequence[int], old: Sequence[str]) -> Sequence[str]:
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
        step: Step,
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
        step: Step,
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
            elif fresh and operand.value in self.places.held:
                given[argument] = self._read(text, step, operand, at)
            else:
                given[argument] = self._load(text, step, operand, at, turn)
        return given

    def _indices(self, step: Step, at: Mapping[int, str]) -> dict[int, str]:
        around = {loop: self._row[number] for number, loop in enumerate(step.around)}
        return {**around, **at}

    def _load(self, text: Text, step: Step, operand: Operand, at: Mapping[int, str], turn: int | None) -> str:
        value = operand.value
        if value in self._now and value in self.places.scalars:
            return self._now[value]
        if value not in self.places.held:
            self._are_numbers_read |= value in self.places.scalars and value in self.places.written
            return self._read(text, step, operand, at)
        key = value, turn
        if key not in self._elements:
            self._elements[key] = self._read(text, step, operand, at)
        return self._elements[key]

    def _place(self, step: Step, operand: Operand, at: Mapping[int, str]) -> str:
        indices = self._indices(step, at)
        if operand.value in self.places.local:
            inner = [indices[loop] for loop in operand.dims[self._rows :]]
            return f"%{self.places.local[operand.value]}[{', '.join(['%row_of', *inner])}]"
        return f"{self._name(operand.value)}[{', '.join(indices[loop] for loop in operand.dims)}]"

    def _read(self, text: Text, step: Step, operand: Operand, at: Mapping[int, str]) -> str:
        load = f"memref.load {self._place(step, operand, at)} : {self._type(operand.value)}"
        places = self.places
        if self._shares.is_exact or operand.value in places.local or operand.value not in places.changing:
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

    def _store(self, text: Text, step: Step, operand: Operand, value: str, at: Mapping[int, str]) -> None:
        line = f"memref.store {value}, {self._place(step, operand, at)} : {self._type(operand.value)}"
        is_shared = operand.value not in self.places.local and not self._shares.is_exact
        text.lines += ["scf.if %is_there {", line, "}"] if is_shared else [line]

    def _store_rest(self, text: Text) -> None:
        """What stayed in registers, and somebody else wants."""
        numbers = [value for value in self._now if value in self.places.written and value in self.places.scalars]
        if numbers:
            if self._are_numbers_read and self._shares.share > 1:
                text.lines.append("gpu.barrier")
            text.lines.append(f"scf.if {text.value('arith.cmpi eq, %share, %c0 : index')} {{")
            for value in numbers:
                step, operand = self._last(value)
                self._store(text, step, operand, self._now[value], {})
            text.lines.append("}")
        for (value, turn), element in self._elements.items():
            if value in self.places.written:
                step, operand = self._last(value)
                index = text.plus("%share", (turn or 0) * self._shares.share)
                at = self._at(text, step, index, [step.name(loop) for loop in step.loops])
                self._store(text, step, operand, element, at)

    def _last(self, value: Any) -> tuple[Step, Operand]:
        """A step that uses ``value``, and how."""
        return next((s, o) for s in self._steps[::-1] for o in s.nest.operands if o.value == value)


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
