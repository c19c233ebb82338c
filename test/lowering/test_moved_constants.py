"""Operations whose elements are each one of a constant are another constant, or stay what they are."""

import numpy as np
import pytest

import devscope

BODIES = {
    "turned": ("%l = arith.subi %last, %j : index", "%j0, %l", lambda x: x[:, ::-1]),
    "moved": ("%l = arith.addi %j, %one : index", "%i, %l", lambda x: x[:, 1:]),
    "repeated": ("%l = arith.muli %j, %none : index", "%i, %l", lambda x: np.repeat(x[:, :1], x.shape[1] - 1, 1)),
}


@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "i1"])
@pytest.mark.parametrize("name", BODIES)
def test_values(name: str, element: str) -> None:
    step, places, right = BODIES[name]
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (7, 20)).astype(np.float32)
    literal = [[bool(v) if element == "i1" else int(v) if element == "i8" else float(v) for v in row] for row in x]
    columns = 20 if name == "turned" else 19
    to = f"tensor<7x{columns}x{element}>"
    text = f"""
        func.func @main() -> {to} {{
          %one = arith.constant 1 : index
          %none = arith.constant 0 : index
          %last = arith.constant 19 : index
          %x = arith.constant dense<{str(literal).lower()}> : tensor<7x20x{element}>
          %e = tensor.empty() : {to}
          %r = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a, b)>],
                               iterator_types = ["parallel", "parallel"]}} outs(%e : {to}) {{
          ^bb0(%o: {element}):
            %i = linalg.index 0 : index
            %j0 = linalg.index 0 : index
            %j = linalg.index 1 : index
            {step}
            %v = tensor.extract %x[{places}] : tensor<7x20x{element}>
            linalg.yield %v : {element}
          }} -> {to}
          return %r : {to}
        }}"""
    for default in ("cpu:0", "opencl:0"):
        found = devscope.compile(text, default=default, cache=False)()
        np.testing.assert_array_equal(
            np.asarray(found).astype(np.float32), right(x), f"{name} {element} {default}"
        )


def test_places_known_when_it_runs() -> None:
    text = """
        func.func @main(%none: index) -> tensor<4xf32> {
          %x = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
          %e = tensor.empty() : tensor<4xf32>
          %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
              outs(%e : tensor<4xf32>) {
          ^bb0(%o: f32):
            %i = linalg.index 0 : index
            %j = arith.addi %i, %none : index
            %v = tensor.extract %x[%j] : tensor<4xf32>
            linalg.yield %v : f32
          } -> tensor<4xf32>
          return %r : tensor<4xf32>
        }"""
    np.testing.assert_array_equal(devscope.compile(text, cache=False)(0), [1, 2, 3, 4])
