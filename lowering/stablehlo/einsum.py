"""``stablehlo.einsum`` of two operands: sums of what only one of them has, a ``dot_general`` and a ``transpose``."""

from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.arrays import literal
from devscope.lowering.stablehlo.templates import RETURN, element, expand, shape, tensor


def terms_of(op: Any) -> list[str]:
    """A letter for each dimension of the operands and of the result."""
    return ir.StringAttr(op.attributes["einsum_config"]).value.replace(" ", "").replace("->", ",").split(",")


def expand_einsum(op: Any) -> None:
    """Diagonals, and dimensions without a letter, are left to upstream."""
    *terms, out = terms_of(op)
    if any(len(set(term)) < len(term) or "." in term for term in (*terms, out)):
        return
    of, result = element(op.results[0].type), op.results[0].type
    sizes = {
        letter: extent
        for term, value in zip(terms, op.operands, strict=True)
        for letter, extent in zip(term, shape(value.type), strict=True)
    }

    def type_of(term: str) -> str:
        return tensor([sizes[letter] for letter in term], of)

    lines, names, kept = [f"%zero = stablehlo.constant dense<{literal(0, str(of))}> : {type_of('')}"], [], []
    for side, term in enumerate(terms):
        alone = [axis for axis, letter in enumerate(term) if letter not in out + terms[1 - side]]
        kept.append("".join(letter for axis, letter in enumerate(term) if axis not in alone))
        names.append(f"%sums{side}" if alone else f"%{side}")
        if alone:
            lines.append(
                f"{names[-1]} = stablehlo.reduce(%{side} init: %zero) applies stablehlo.add "
                f"across dimensions = {alone} : ({type_of(term)}, {type_of('')}) -> {type_of(kept[-1])}"
            )
    left, right = kept
    batch = [letter for letter in left if letter in right and letter in out]
    summed = [letter for letter in left if letter in right and letter not in out]
    made = "".join([*batch, *(letter for letter in left + right if letter not in batch + summed)])
    places = [[[term.index(letter) for letter in letters] for term in kept] for letters in (batch, summed)]
    lines += [
        f"%dot = stablehlo.dot_general {', '.join(names)}, batching_dims = {places[0][0]} x {places[0][1]}, "
        f"contracting_dims = {places[1][0]} x {places[1][1]} "
        f": ({type_of(left)}, {type_of(right)}) -> {type_of(made)}",
        f"%r = stablehlo.transpose %dot, dims = {[made.index(letter) for letter in out]} : ({type_of(made)}) -> {result}",
        f'"{RETURN}"(%r) : ({result}) -> ()',
    ]
    expand(op, "\n".join(lines))
