"""Sums of overlapping windows (PyTorch's ``fold``)."""

from typing import Any

from devscope.lowering.stablehlo.templates import commas, element, extents_of, shape, tensor


def add_windows(op: Any) -> str:
    """Of ``op``'s first operand, b x windows (p x q) x places (h x w): b images, each window added at its place.

    The element p, q of the window h, w is at row ``h * s0 + p * d0`` and column ``w * s1 + q * d1``; s0, s1, d0 and d1
    are the extents of the second operand, which has no other meaning.
    """
    given, result = op.operands[0].type, op.results[0].type
    steps, of = shape(op.operands[1].type), element(given)
    images = shape(result)
    single = tensor(images[1:], of)
    lines: list[str] = []
    emit = lines.append
    extents_of(emit, "n", "%0", given)
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index")
    emit("".join(f"%s{n} = arith.constant {step} : index\n" for n, step in enumerate(steps)))
    emit(f"%nothing = arith.constant 0.0 : {of}" if "f" in str(of) else f"%nothing = arith.constant 0 : {of}")
    emit(f"%fresh = tensor.empty({'%n0' if images[0] < 0 else ''}) : {result}")
    emit(f"%r = scf.forall (%b) in (%n0) shared_outs(%out = %fresh) -> ({result}) {{")
    place = f"[%b, 0, 0] [1, {images[1]}, {images[2]}] [1, 1, 1]"
    emit(f"%old = tensor.extract_slice %out{place} : {result} to {single}")
    emit(f"%empty = linalg.fill ins(%nothing : {of}) outs(%old : {single}) -> {single}")
    before = "%empty"
    for dim in range(1, 5):
        emit(
            f"%l{dim} = scf.for %i{dim} = %zero to %n{dim} step %one iter_args(%t{dim} = {before}) -> ({single}) {{"
        )
        before = f"%t{dim}"
        if dim > 2:  # rows are known before columns
            emit(
                f"%w{dim} = arith.muli %i{dim - 2}, %s{dim - 1} : index\n%p{dim} = arith.muli %i{dim}, %s{dim - 3} : index"
            )
            emit(f"%a{dim} = arith.addi %w{dim}, %p{dim} : index")
    emit(f"%x = tensor.extract %0[%b, {commas(f'%i{dim}' for dim in range(1, 5))}] : {given}")
    emit(f"%was = tensor.extract %t4[%a3, %a4] : {single}")
    emit(f"%sum = arith.add{'f' if 'f' in str(of) else 'i'} %was, %x : {of}")
    emit(f"%l5 = tensor.insert %sum into %t4[%a3, %a4] : {single}")
    for dim in range(4, 0, -1):
        emit(f"scf.yield %l{dim + 1} : {single}\n}}")
    emit(
        f"scf.forall.in_parallel {{\ntensor.parallel_insert_slice %l1 into %out{place} : {single} into {result}\n}}\n}}"
    )
    emit(f'"devscope.return"(%r) : ({result}) -> ()')
    return "\n".join(lines)
