"""Sorts by one number of each element, which becomes an integer in the same order.

The place of an element of a short row is the number of those that come before it: vectors count these. One element of
a longer row is found by its bits, the highest first, each by a count of the smaller ones.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.number_keys import emit_number_key, emit_sign
from devscope.lowering.stablehlo.templates import axes_map, commas, enum, tensor

RANKED = 128
"""Elements of rows that are counted to sort them, at most."""

RUN = 64
"""Elements of longer rows that are counted to sort them, before these are merged; a power of two."""

SELECTED = 64
"""Elements of a row, from which on one is found without a sort."""

Emit = Callable[[str], None]

Merge = Callable[[Sequence[str], Sequence[Any], Sequence[int]], list[str]]
"""Emits the merges of runs of `RUN`, of tensors of these names, types of elements and extents; names of the results."""

_Input = tuple[str, str, Sequence[int]]
"""A tensor, its type, and the loops that index it."""

_COUNTED = "\n%more = arith.extui %is : i1 to i32\n%y = arith.addi %o, %more : i32"


class Key(NamedTuple):
    """What is compared: of which operand. ``order``: of floats "numbers", in which those that are none come last and
    zeros are equal, or "total"; else "signed" or "unsigned"."""

    operand: int
    ascending: bool
    order: str

    def rows(self, elements: Sequence[Any], extents: Sequence[int]) -> "Rows | None":
        """None where integers of 32 or 64 bits do not have the order, or rows are of unknown length or too long."""
        of = elements[self.operand]
        is_float = isinstance(of, ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type)
        is_integer = isinstance(of, ir.IntegerType) and of.is_signless and 8 <= of.width <= 64
        if not (is_float or is_integer) or is_float == self.order.endswith("signed"):
            return None
        return Rows(self, of, list(extents)) if 0 < extents[-1] < 1 << 31 else None


def stablehlo_key(op: Any) -> Key | None:
    """Of a body that compares one operand in an order without equals that differ."""
    block = op.regions[0].blocks[0]
    *body, end = [inner.operation for inner in block.operations]
    if len(body) != 1 or body[0].name != "stablehlo.compare" or end.operands[0] != body[0].results[0]:
        return None
    arguments = list(block.arguments)
    sides = [arguments.index(value) if value in arguments else -1 for value in body[0].operands]
    first, direction = min(sides), enum(body[0], "comparison_direction")
    order = {"TOTALORDER": "total", "SIGNED": "signed", "UNSIGNED": "unsigned"}.get(enum(body[0], "compare_type"))
    if first < 0 or first % 2 or max(sides) != first + 1 or direction not in ("LT", "GT") or order is None:
        return None
    return Key(first // 2, (direction == "LT") == (sides[0] == first), order)


def _element(type_: str) -> str:
    return type_.removeprefix("tensor<").rpartition("x")[2].rstrip(">")


class Rows:
    """Text of what is done with rows, the last dimension of tensors of ``extents``, ``%n0`` and so on."""

    def __init__(self, key: Key, of: Any, extents: list[int]) -> None:
        self._key, self._of, self._extents = key, of, extents
        self._width = of.width
        self._kind = "i32" if of.width <= 32 else "i64"
        self._length, self._outer = extents[-1], list(range(len(extents) - 1))
        self._keys = tensor(extents, self._kind)

    @property
    def are_long(self) -> bool:
        return self._length > SELECTED

    def sort(
        self, emit: Emit, names: Sequence[str], elements: Sequence[Any], merge: Merge, read: Sequence[int]
    ) -> list[str]:
        """All elements of the operands ``read``, in order; names of the results. ``merge``: sorts words of which runs
        are in order."""
        self._emit_keys(emit, names)
        names, elements = ([each[n] for n in read] for each in (names, elements))
        if self._length <= RANKED:
            return self._ranked(emit, "row", "%keys", names, elements, self._extents, has_equals=True)
        words, kinds, padded = self._emit_words(emit)
        outer = self._outer
        split = [*self._extents[:-1], padded // RUN, RUN]
        whole, groups = [*self._extents[:-1], padded], [*([axis] for axis in outer), [len(outer), len(outer) + 1]]
        sizes = commas(f"%n{axis}" if extent < 0 else extent for axis, extent in enumerate(split))
        runs: list[str] = []
        for n, (name, of) in enumerate(zip(words, kinds, strict=True)):
            types = f"{tensor(whole, of)} into {tensor(split, of)}"
            emit(f"%runs{n} = tensor.expand_shape {name} {groups} output_shape [{sizes}] : {types}")
            runs.append(f"%runs{n}")
        runs = self._ranked(emit, "run", runs[0], runs, kinds, split, has_equals=len(words) > 1)
        for n, (name, of) in enumerate(zip(runs, kinds, strict=True)):
            emit(
                f"%long{n} = tensor.collapse_shape {name} {groups} : {tensor(split, of)} into {tensor(whole, of)}"
            )
        found = merge([f"%long{n}" for n in range(len(words))], kinds, whole)
        return self._gathered(emit, found[-1], kinds[-1], whole, names, elements)

    def _emit_words(self, emit: Emit) -> tuple[list[str], list[Any], int]:
        """Keys with the places that they are from, in one number of 64 bits or in two, and how many there are of a
        row: whole runs."""
        own, axes, most = self._kind, list(range(len(self._extents))), (1 << int(self._kind[1:]) - 1) - 1
        padded = -(-self._length // RUN) * RUN
        extents, keys = [*self._extents[:-1], padded], "%keys"
        type_ = tensor(extents, own)
        if padded > self._length:
            low, high = commas([0] * len(axes)), commas([*[0] * len(self._outer), padded - self._length])
            dims = commas(f"%i{axis}: index" for axis in axes)
            emit(f"%most_key = arith.constant {most} : {own}")
            emit(f"%padded = tensor.pad %keys low[{low}] high[{high}] {{\n^bb0({dims}):")
            emit(f"tensor.yield %most_key : {own}\n}} : {self._keys} to {type_}")
            keys = "%padded"
        place = f"%i = linalg.index {axes[-1]} : index\n%y = arith.index_cast %i : index to i32"
        if own == "i64":
            self._empty(emit, "places_room", extents, "i32")
            self._generic(emit, "places", [], ("%places_room", tensor(extents, "i32"), axes), axes, place)
            return [keys, "%places"], [own, "i32"], padded
        text = f"""
            {place.replace("%y", "%at")}
            %low = arith.extui %at : i32 to i64
            %wide = arith.extsi %g0 : i32 to i64
            %width = arith.constant 32 : i64
            %high = arith.shli %wide, %width : i64
            %y = arith.ori %high, %low : i64"""
        self._empty(emit, "words_room", extents, "i64")
        result = ("%words_room", tensor(extents, "i64"), axes)
        self._generic(emit, "words", [(keys, type_, axes)], result, axes, text)
        return ["%words"], ["i64"], padded

    def _gathered(
        self, emit: Emit, words: str, of: str, whole: Sequence[int], names: Sequence[str], elements: Sequence[Any]
    ) -> list[str]:
        """Elements of the places that are the lower bits of words."""
        outer, axes = self._outer, list(range(len(self._extents)))
        sizes = commas(f"%n{axis}" if extent < 0 else extent for axis, extent in enumerate(self._extents))
        zeros, ones = commas([0] * len(axes)), commas([1] * len(axes))
        type_ = tensor(self._extents, of)
        emit(f"%own = tensor.extract_slice {words}[{zeros}] [{sizes}] [{ones}] : {tensor(whole, of)} to {type_}")
        narrow = "" if of == "i32" else f"%place = arith.trunci %g0 : {of} to i32\n"
        narrow += f"%q = arith.index_cast {'%place' if narrow else '%g0'} : i32 to index\n"
        dims = "".join(f"%e{axis} = linalg.index {axis} : index\n" for axis in outer)
        read = commas([*(f"%e{axis}" for axis in outer), "%q"])
        for n, (name, kind) in enumerate(zip(names, elements, strict=True)):
            given = tensor(self._extents, kind)
            self._empty(emit, f"sorted_room{n}", self._extents, kind)
            text = f"{dims}{narrow}%y = tensor.extract {name}[{read}] : {given}"
            result = (f"%sorted_room{n}", given, axes)
            self._generic(emit, f"in_order{n}", [("%own", type_, axes)], result, axes, text)
        return [f"%in_order{n}" for n in range(len(names))]

    def _ranked(
        self,
        emit: Emit,
        tag: str,
        keys: str,
        names: Sequence[str],
        elements: Sequence[Any],
        extents: Sequence[int],
        has_equals: bool,
    ) -> list[str]:
        """Rows of tensors of ``extents``, in the order of ``keys``: the number of those before each is counted."""
        last, length = len(extents) - 1, extents[-1]
        outer, own = list(range(last)), "i64" if tag == "run" else self._kind
        key_type, numbers = tensor(extents, own), tensor(extents, "i32")
        text = f"%{'less' if has_equals else 'is'} = arith.cmpi slt, %g0, %g1 : {own}"
        if has_equals:
            text += f"""
            %j = linalg.index {last} : index
            %i = linalg.index {last + 1} : index
            %j32 = arith.index_cast %j : index to i32
            %i32 = arith.index_cast %i : index to i32
            %equal = arith.cmpi eq, %g0, %g1 : {own}
            %first = arith.cmpi slt, %j32, %i32 : i32
            %tie = arith.andi %equal, %first : i1
            %is = arith.ori %less, %tie : i1"""
        self._empty(emit, f"{tag}unranked", extents, "i32")
        emit(f"%{tag}zero = arith.constant 0 : i32\n%{tag}length = arith.constant {length} : index")
        fill = f"linalg.fill ins(%{tag}zero : i32) outs(%{tag}unranked : {numbers}) -> {numbers}"
        emit(f"%{tag}no_ranks = {fill}")
        inputs = [(keys, key_type, [*outer, axis]) for axis in (last, last + 1)]
        result = (f"%{tag}no_ranks", numbers, [*outer, last + 1])
        self._generic(emit, f"{tag}ranks", inputs, result, [*outer, last + 1], text + _COUNTED)

        count, dims = len(names), [f"%d{axis}" for axis in outer]
        types, parts = ([tensor(each, of) for of in elements] for each in (extents, [length]))
        for n, of in enumerate(elements):
            self._empty(emit, f"{tag}room{n}", extents, of)
        for axis, extent in enumerate(extents[:-1]):
            size = f"arith.addi %n{axis}, %zero : index" if extent < 0 else f"arith.constant {extent} : index"
            emit(f"%{tag}size{axis} = {size}")
        done = f"%{tag}ranked"
        emit(
            f"{done}{f':{count}' if count > 1 else ''} = scf.forall ({commas(dims or ['%only'])}) in "
            f"({commas([f'%{tag}size{axis}' for axis in outer] or ['%one'])}) "
            f"shared_outs({commas(f'%o{n} = %{tag}room{n}' for n in range(count))}) -> ({commas(types)}) {{"
        )
        place = f"[{commas([*dims, 0])}] [{commas([*[1] * last, length])}] [{commas([1] * (last + 1))}]"
        for n, (type_, part) in enumerate(zip(types, parts, strict=True)):
            emit(f"%part{n} = tensor.extract_slice %o{n}{place} : {type_} to {part}")
        state = commas(f"%x{n} = %part{n}" for n in range(count))
        emit(
            f"%l:{count} = scf.for %u = %zero to %{tag}length step %one iter_args({state}) -> ({commas(parts)}) {{"
        )
        at = commas([*dims, "%u"])
        emit(f"%rank = tensor.extract %{tag}ranks[{at}] : {numbers}\n%to = arith.index_cast %rank : i32 to index")
        for n, (name, type_, part) in enumerate(zip(names, types, parts, strict=True)):
            emit(f"%v{n} = tensor.extract {name}[{at}] : {type_}")
            emit(f"%y{n} = tensor.insert %v{n} into %x{n}[%to] : {part}")
        emit(f"scf.yield {commas(f'%y{n}' for n in range(count))} : {commas(parts)}\n}}")
        emit("scf.forall.in_parallel {")
        for n, (type_, part) in enumerate(zip(types, parts, strict=True)):
            emit(f"tensor.parallel_insert_slice %l#{n} into %o{n}{place} : {part} into {type_}")
        emit("}\n}")
        return [f"{done}#{n}" for n in range(count)] if count > 1 else [done]

    def select(self, emit: Emit, names: Sequence[str], elements: Sequence[Any], place: int) -> list[str]:
        """The elements at one place, in tensors with anything at others; names of these."""
        self._emit_keys(emit, names)
        kind, outer, last = self._kind, self._outer, len(self._outer)
        emit(f"%place = arith.constant {place} : i32\n%none = arith.constant 0 : i32")
        emit(f"%least = arith.constant {-(1 << (self._width - 1))} : {kind}")

        smaller = f"%is = arith.cmpi slt, %g0, LIMIT : {kind}"
        enough = "%few = arith.cmpi sle, %g0, %place : i32"
        self._highest(emit, "value", (kind, "%least", self._width), ["%keys"], smaller, enough)
        keys = ("%keys", self._keys, [*outer, last])
        value = ("%value", tensor(self._extents[:-1], kind), outer)
        self._count(emit, "smaller", [keys, value], smaller.replace("LIMIT", "%g1"))
        earlier = f"""
            %i = linalg.index {last} : index
            %i32 = arith.index_cast %i : index to i32
            %equal = arith.cmpi eq, %g0, %g1 : {kind}
            %first = arith.cmpi slt, %i32, LIMIT : i32
            %is = arith.andi %equal, %first : i1"""
        enough = "%left = arith.subi %place, %g2 : i32\n%few = arith.cmpi sle, %g0, %left : i32"
        bits = max(1, (self._length - 1).bit_length())
        self._highest(emit, "at", ("i32", "%none", bits), ["%keys", "%value"], earlier, enough, ["%smaller"])

        results: list[str] = []
        for n, (name, of) in enumerate(zip(names, elements, strict=True)):
            dims = "\n".join(f"%e{axis} = linalg.index {axis} : index" for axis in outer)
            read = commas([*(f"%e{axis}" for axis in outer), "%q"])
            text = f"{dims}\n%q = arith.index_cast %g0 : i32 to index\n%y = tensor.extract {name}[{read}] : "
            self._by_row(emit, f"one{n}", ["%at"], ["i32"], of, text + tensor(self._extents, of))
            self._empty(emit, f"rest{n}", self._extents, of)
            sizes = commas(
                [*(f"%n{axis}" if self._extents[axis] < 0 else self._extents[axis] for axis in outer), 1]
            )
            emit(
                f"%full{n} = tensor.insert_slice %one{n} into %rest{n}[{commas([*[0] * last, place])}] [{sizes}] "
                f"[{commas([1] * (last + 1))}] : {tensor(self._extents[:-1], of)} into {tensor(self._extents, of)}"
            )
            results.append(f"%full{n}")
        return results

    def _highest(
        self,
        emit: Emit,
        tag: str,
        state: tuple[str, str, int],
        inputs: Sequence[str],
        counted: str,
        enough: str,
        more: Sequence[str] = (),
    ) -> None:
        """``%TAG``: the largest numbers of a type that few enough elements are below; ``state``: the type, the least
        one, and bits that may be set."""
        kind, least, bits = state
        rows = tensor(self._extents[:-1], kind)
        self._empty(emit, f"{tag}_room", self._extents[:-1], kind)
        emit(f"%{tag}_first = linalg.fill ins({least} : {kind}) outs(%{tag}_room : {rows}) -> {rows}")
        emit(f"%{tag}_bits = arith.constant {bits} : index\n%{tag}_last = arith.constant {bits - 1} : index")
        emit(
            f"%{tag} = scf.for %bit = %zero to %{tag}_bits step %one iter_args(%was = %{tag}_first) -> ({rows}) {{"
        )
        emit(f"%above = arith.subi %{tag}_last, %bit : index\n%digit = arith.index_cast %above : index to {kind}")
        emit(f"%unit = arith.constant 1 : {kind}\n%step = arith.shli %unit, %digit : {kind}")
        self._by_row(emit, "next", ["%was"], [kind], kind, f"%y = arith.addi %g0, %step : {kind}")
        outer, keys, limit = self._outer, [*self._outer, len(self._outer)], f"%g{len(inputs)}"
        given = [
            ("%keys", self._keys, keys),
            *((name, tensor(self._extents[:-1], self._kind), outer) for name in inputs[1:]),
            ("%next", rows, outer),
        ]
        self._count(emit, "below", given, counted.replace("LIMIT", limit))
        taken = enough.replace("%g2", "%g3") + f"\n%y = arith.select %few, %g1, %g2 : {kind}"
        kinds = ["i32", kind, kind, *["i32"] * len(more)]
        self._by_row(emit, "new", ["%below", "%next", "%was", *more], kinds, kind, taken)
        emit(f"scf.yield %new : {rows}\n}}")

    def _count(self, emit: Emit, tag: str, inputs: Sequence[_Input], text: str) -> None:
        """``%TAG``: how many elements of each row have ``%is``."""
        rows = tensor(self._extents[:-1], "i32")
        self._empty(emit, f"{tag}_room", self._extents[:-1], "i32")
        emit(f"%{tag}_none = linalg.fill ins(%none : i32) outs(%{tag}_room : {rows}) -> {rows}")
        result = (f"%{tag}_none", rows, self._outer)
        self._generic(emit, tag, inputs, result, self._outer, text + _COUNTED, loops=len(self._outer) + 1)

    def _by_row(
        self, emit: Emit, tag: str, names: Sequence[str], kinds: Sequence[str], of: Any, text: str
    ) -> None:
        """``%TAG``: an element for each row."""
        self._empty(emit, f"{tag}_room", self._extents[:-1], of)
        rows = [tensor(self._extents[:-1], kind) for kind in (*kinds, of)]
        inputs = [(name, type_, self._outer) for name, type_ in zip(names, rows, strict=False)]
        self._generic(emit, tag, inputs, (f"%{tag}_room", rows[-1], self._outer), self._outer, text)

    def _empty(self, emit: Emit, tag: str, extents: Sequence[int], of: Any) -> None:
        sizes = commas(f"%n{axis}" for axis, extent in enumerate(extents) if extent < 0)
        emit(f"%{tag} = tensor.empty({sizes}) : {tensor(extents, of)}")

    def _generic(
        self,
        emit: Emit,
        tag: str,
        inputs: Sequence[_Input],
        result: _Input,
        parallel: Sequence[int],
        text: str,
        loops: int | None = None,
    ) -> None:
        """``%TAG``: ``%y`` of a text of ``%g0`` and so on, elements of the inputs, and ``%o``, one of the result."""
        count = loops or max([*parallel, -1]) + 1
        maps = commas(axes_map(count, axes) for _, _, axes in (*inputs, result))
        kinds = commas('"parallel"' if loop in parallel else '"reduction"' for loop in range(count))
        types = [_element(type_) for _, type_, _ in (*inputs, result)]
        arguments = commas([*(f"%g{n}: {of}" for n, of in enumerate(types[:-1])), f"%o: {types[-1]}"])
        emit(f"%{tag} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}")
        if inputs:
            emit(f"ins({commas(name for name, _, _ in inputs)} : {commas(type_ for _, type_, _ in inputs)})")
        emit(f"outs({result[0]} : {result[1]}) {{\n^bb0({arguments}):\n{text}")
        emit(f"linalg.yield %y : {types[-1]}\n}} -> {result[1]}")

    def _emit_keys(self, emit: Emit, names: Sequence[str]) -> None:
        """The text of ``%keys``, integers in the order of what is compared."""
        own, short = self._kind, f"i{self._width}"
        axes, most = list(range(len(self._extents))), (1 << (self._width - 1)) - 1
        lines: list[str] = []
        bits = "%g0"
        if isinstance(self._of, ir.FloatType):
            lines.append(f"%bits = arith.bitcast %g0 : {self._of} to {short}")
            bits = "%bits"
        if self._key.order == "unsigned":
            lines.append(f"%low = arith.constant {-most - 1} : {short}\n%moved = arith.xori %g0, %low : {short}")
            bits = "%moved"
        if short != own:
            lines.append(f"%wide = arith.extsi {bits} : {short} to {own}")
            bits = "%wide"
        if isinstance(self._of, ir.FloatType):
            bits = self._float_key(lines.append, bits)
        turned = 0 if self._key.ascending else -1
        lines.append(f"%turn = arith.constant {turned} : {own}\n%y = arith.xori {bits}, %turn : {own}")
        self._empty(emit, "keys_room", self._extents, own)
        given = tensor(self._extents, self._of)
        inputs = [(names[self._key.operand], given, axes)]
        self._generic(emit, "keys", inputs, ("%keys_room", self._keys, axes), axes, "\n".join(lines))

    def _float_key(self, emit: Emit, bits: str) -> str:
        own = self._kind
        if self._key.order != "total":
            return emit_number_key(emit, bits, self._of, own)
        emit_sign(emit, bits, self._of, own)
        emit(f"%flip = arith.andi %sign, %most : {own}\n%total = arith.xori {bits}, %flip : {own}")
        return "%total"
