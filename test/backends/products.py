"""Products of matrices for the tests of libraries: each operand either way round, added to a matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

M, K, N = 3, 5, 4

_MAPS = {False: ("m, k", "k, n"), True: ("k, m", "n, k")}


class Product(NamedTuple):
    """``shapes``: of the arguments, of which the first two are transposed as ``turned`` says."""

    text: str
    shapes: list[tuple[int, int]]
    turned: tuple[bool, bool]

    def expected(self, a: Any, b: Any, c: Any) -> Any:
        return (a.T if self.turned[0] else a) @ (b.T if self.turned[1] else b) + c


def product_of(left: bool, right: bool, before: bool, element: str) -> Product:
    """``left`` and ``right``: whether the operation takes this operand transposed; ``before``: whether another one
    transposes the left one once more, which is folded."""
    turned = left != before, right
    inner = (K, M) if left else (M, K)
    a, b, c = (K, M) if turned[0] else (M, K), (N, K) if right else (K, N), (M, N)
    maps = ", ".join(f"affine_map<(m, n, k) -> ({one})>" for one in (_MAPS[left][0], _MAPS[right][1], "m, n"))
    of_a, of_b, of_c, of_x = (f"tensor<{x}x{y}x{element}>" for x, y in (a, b, c, inner))
    turn = f"""%e = tensor.empty() : {of_x}
      %x = linalg.transpose ins(%a : {of_a}) outs(%e : {of_x}) permutation = [1, 0]"""
    text = f"""func.func @main(%a: {of_a}, %b: {of_b}, %c: {of_c}) -> {of_c} {{
      {turn if before else ""}
      %r = linalg.matmul indexing_maps = [{maps}] ins({"%x" if before else "%a"}, %b : {of_x}, {of_b})
        outs(%c : {of_c}) -> {of_c}
      return %r : {of_c}
    }}"""
    return Product(text, [a, b, c], turned)
