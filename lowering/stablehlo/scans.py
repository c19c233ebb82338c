"""Scans that torch-mlir's ``tm_tensor.scan`` has no form for: running extrema with their places, sums of exponentials.

All are of b x m x n, along m: a loop along it, in parallel for all others.
"""

from collections.abc import Callable, Sequence
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.number_keys import INFINITY, emit_number_key
from devscope.lowering.stablehlo.templates import (
    RETURN,
    commas,
    element,
    extents_of,
    shape,
    tensor,
)

Step = Callable[[Callable[[str], None]], Sequence[str]]
"""Emits what becomes of ``%x``, the element at ``%i``, and of ``%was0``, ``%was1``, ...: names of the new ones."""


def running_extremum(is_max: bool, op: Any) -> str:
    """The extremum of each beginning, and where the last one of it is (i64); of what is not a number, the last.

    Of floats, integers in the same order are compared: a step waits for the one before for two instructions.
    """
    of = element(op.operands[0].type)
    first = [f"arith.constant {_worst(of, is_max)}", "arith.constant 0 : i64"]
    best = "%best = arith.select %taken, %x, %was0"
    place = "%at = arith.index_cast %i : index to i64\n%place = arith.select %taken, %at, %was1 : i64"

    def step(emit: Callable[[str], None]) -> Sequence[str]:
        emit(f"%taken = arith.cmpi {'sge' if is_max else 'sle'}, %x, %was0 : {of}\n{best} : {of}\n{place}")
        return "%best", "%place"

    if isinstance(of, ir.IntegerType):
        return _whole(op, first, step)
    bits = ir.IntegerType.get_signless(of.width, op.context)

    def step_of_floats(emit: Callable[[str], None]) -> Sequence[str]:
        emit(f"%bits = arith.bitcast %x : {of} to {bits}")
        key = emit_number_key(emit, "%bits", of, str(bits), descending=not is_max)
        emit(f"%taken = arith.cmpi sge, {key}, %was2 : {bits}\n{best} : {of}\n{place}")
        emit(f"%best_key = arith.select %taken, {key}, %was2 : {bits}")
        return "%best", "%place", "%best_key"

    return _whole(op, [*first, f"arith.constant {_worst(bits, True)}"], step_of_floats, [bits])


def running_log_sum(op: Any) -> str:
    """The logarithm of the sum of exponentials of each beginning, as in ATen/native/cpu/LogAddExp.h."""
    of = element(op.operands[0].type)

    def step(emit: Callable[[str], None]) -> Sequence[str]:
        emit(f"%least = arith.minimumf %x, %was0 : {of}\n%most = arith.maximumf %x, %was0 : {of}")
        emit(f"%apart = arith.subf %least, %most : {of}\n%share = math.exp %apart : {of}")
        emit(f"%more = math.log1p %share : {of}\n%sum = arith.addf %most, %more : {of}")
        # The difference of equal infinities is none.
        emit(f"%none = arith.cmpf uno, %apart, %apart : {of}\n%sure = arith.cmpf ord, %most, %most : {of}")
        emit(f"%stays = arith.andi %none, %sure : i1\n%total = arith.select %stays, %most, %sum : {of}")
        return ("%total",)

    return _whole(op, [f"arith.constant {_worst(of, True)}"], step)


def _worst(of: Any, is_max: bool) -> str:
    """What any number is at least as good as."""
    if isinstance(of, ir.IntegerType):
        half = 1 << (of.width - 1)
        return f"{-half if is_max else half - 1} : {of}"
    width = ir.FloatType(of).width
    return f"{hex(INFINITY[str(of)] | (1 << (width - 1) if is_max else 0))} : {of}"


def _whole(op: Any, first: Sequence[str], step: Step, more: Sequence[Any] = ()) -> str:
    """A scan of the operand of ``op`` that gives its results; ``more``: types that it carries besides."""
    results = [str(result.type) for result in op.results]
    kinds = [*(element(result.type) for result in op.results), *more]
    lines = scan("%0", op.operands[0].type, results, kinds, first, step)
    returned = commas(f"%r#{n}" for n in range(len(results)))
    return "\n".join([*lines, f'"{RETURN}"({returned}) : ({commas(results)}) -> ()'])


def scan(
    name: str,
    given: Any,
    results: Sequence[str],
    kinds: Sequence[Any],
    first: Sequence[str],
    step: Step,
    is_backwards: bool = False,
) -> list[str]:
    """Text of ``%r#0`` and so on, of types ``results``, from values that operations ``first`` make.

    ``kinds``: of all that is carried; the first ones are those of results.
    """
    extents, of = shape(given), element(given)
    rows = [tensor([extents[1]], kind) for kind in kinds[: len(results)]]
    numbers = range(len(results))
    lines: list[str] = []
    emit = lines.append
    extents_of(emit, "n", name, given)
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index\n%last = arith.subi %n1, %one : index")
    sizes = commas(f"%n{dim}" for dim, extent in enumerate(extents) if extent < 0)
    for n in numbers:
        emit(f"%fresh{n} = tensor.empty({sizes}) : {results[n]}")
    for n, value in enumerate(first):
        emit(f"%first{n} = {value}")
    outs = commas(f"%out{n} = %fresh{n}" for n in numbers)
    emit(f"%r:{len(results)} = scf.forall (%b, %c) in (%n0, %n2) shared_outs({outs}) -> ({commas(results)}) {{")
    place = f"[%b, 0, %c] [1, {extents[1] if extents[1] >= 0 else '%n1'}, 1] [1, 1, 1]"
    emit(f"%row = tensor.extract_slice {name}{place} : {given} to {tensor([extents[1]], of)}")
    for n in numbers:
        emit(f"%into{n} = tensor.extract_slice %out{n}{place} : {results[n]} to {rows[n]}")
    carried = [f"%t{n} = %into{n}" for n in numbers] + [f"%was{n} = %first{n}" for n in range(len(kinds))]
    types = commas([*rows, *kinds])
    emit(
        f"%l:{len(results) + len(kinds)} = scf.for %k = %zero to %n1 step %one iter_args({commas(carried)}) -> ({types}) {{"
    )
    emit(f"%i = arith.subi {'%last, %k' if is_backwards else '%k, %zero'} : index")
    emit(f"%x = tensor.extract %row[%i] : {tensor([extents[1]], of)}")
    new = step(emit)
    for n in numbers:
        emit(f"%put{n} = tensor.insert {new[n]} into %t{n}[%i] : {rows[n]}")
    emit(f"scf.yield {commas([*(f'%put{n}' for n in numbers), *new])} : {types}\n}}\nscf.forall.in_parallel {{")
    for n in numbers:
        emit(f"tensor.parallel_insert_slice %l#{n} into %out{n}{place} : {rows[n]} into {results[n]}")
    emit("}\n}")
    return lines
