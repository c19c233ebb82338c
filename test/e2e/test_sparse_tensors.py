"""Programs with sparse tensors, whose formats upstream's sparsifier compiles, against numpy."""

import numpy as np
import pytest
from numpy.typing import NDArray

import devscope
from devscope.errors import ExecutionError, LoweringError

ROWS, COLUMNS = 8, 16
DENSE = f"tensor<{ROWS}x{COLUMNS}xf32>"
FORMATS = {
    "rows": "(i, j) -> (i : dense, j : compressed)",
    "columns": "(i, j) -> (j : dense, i : compressed)",
    "both": "(i, j) -> (i : compressed, j : compressed)",
    "coordinates": "(i, j) -> (i : compressed(nonunique), j : singleton)",
    "blocks": "(i, j) -> (i floordiv 2 : dense, j floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)",
}


def sparse(shape: str, format_: str = "rows", widths: str = "") -> str:
    return f"tensor<{shape}xf32, #sparse_tensor.encoding<{{ map = {FORMATS[format_]}{widths} }}>>"


CSR = sparse(f"{ROWS}x{COLUMNS}")


def some(seed: int, rows: int = ROWS, columns: int = COLUMNS) -> NDArray[np.float32]:
    """A third of the elements are not 0, none in the second row."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, columns)).astype(np.float32)
    values[rng.random(values.shape) > 1 / 3] = 0
    values[1:2] = 0
    return values


def close(got: object, want: object) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("format_", FORMATS)
def test_formats(format_: str) -> None:
    """Products with matrices of any size, sums, functions, and the way back."""
    type_ = sparse("?x?", format_)
    made = devscope.compile(f"""
func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>)
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = sparse_tensor.convert %a : tensor<?x?xf32> to {type_}
  %0 = linalg.matmul ins(%s, %b : {type_}, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %m = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : {type_}
  %1 = linalg.abs ins(%s : {type_}) outs(%e : {type_}) -> {type_}
  %f = tensor.empty(%n, %m) : {type_}
  %2 = linalg.add ins(%s, %1 : {type_}, {type_}) outs(%f : {type_}) -> {type_}
  %d = sparse_tensor.convert %2 : {type_} to tensor<?x?xf32>
  return %0, %d : tensor<?x?xf32>, tensor<?x?xf32>
}}
""")
    for rows, columns in ((ROWS, COLUMNS), (2, 4), (0, 4), (4, 0)):
        a, b = some(rows, rows, columns), np.random.default_rng(1).random((columns, 6), np.float32)
        c = np.random.default_rng(2).random((rows, 6), np.float32)
        before = c.copy()
        product, total = made(a, b, c)
        close(product, a @ b + c)
        close(total, a + abs(a))
        np.testing.assert_array_equal(c, before)
    with pytest.raises(ExecutionError, match="dimension 1 of operand 0 is 16, dimension 0 of argument 1 'b' is 9"):
        made(some(0), np.ones((9, 6), np.float32), np.ones((ROWS, 6), np.float32))


def test_of_two_sparse_ones_a_third() -> None:
    right, result = sparse("16x8"), sparse("8x8", "both")
    made = devscope.compile(f"""
func.func private @product(%s: {CSR}, %t: {right}) -> {result} {{
  %e = tensor.empty() : {result}
  %0 = linalg.matmul ins(%s, %t : {CSR}, {right}) outs(%e : {result}) -> {result}
  return %0 : {result}
}}
func.func @main(%a: {DENSE}, %b: tensor<16x8xf32>, %twice: i1) -> tensor<8x8xf32> {{
  %s = sparse_tensor.convert %a : {DENSE} to {CSR}
  %t = sparse_tensor.convert %b : tensor<16x8xf32> to {right}
  %0 = call @product(%s, %t) : ({CSR}, {right}) -> {result}
  %1 = scf.if %twice -> ({result}) {{
    %e = tensor.empty() : {result}
    %2 = linalg.add ins(%0, %0 : {result}, {result}) outs(%e : {result}) -> {result}
    scf.yield %2 : {result}
  }} else {{
    scf.yield %0 : {result}
  }}
  %d = sparse_tensor.convert %1 : {result} to tensor<8x8xf32>
  return %d : tensor<8x8xf32>
}}
""")
    a, b = some(0), some(1, 16, 8)
    close(made(a, b, False), a @ b)
    close(made(a, b, True), 2 * (a @ b))


def test_the_arrays_that_one_is_stored_in() -> None:
    type_ = sparse(f"{ROWS}x{COLUMNS}", widths=", posWidth = 32, crdWidth = 32")
    made = devscope.compile(f"""
func.func @from(%at: tensor<?xi32>, %columns: tensor<?xi32>, %v: tensor<?xf32>, %x: tensor<16xf32>)
    -> tensor<8xf32> {{
  %s = sparse_tensor.assemble (%at, %columns), %v : (tensor<?xi32>, tensor<?xi32>), tensor<?xf32> to {type_}
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %0 = linalg.matvec ins(%s, %x : {type_}, tensor<16xf32>) outs(%z : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}
func.func @to(%a: {DENSE}) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xf32>, f32) {{
  %s = sparse_tensor.convert %a : {DENSE} to {type_}
  %0 = sparse_tensor.positions %s {{ level = 1 : index }} : {type_} to memref<?xi32>
  %1 = sparse_tensor.coordinates %s {{ level = 1 : index }} : {type_} to memref<?xi32>
  %2 = sparse_tensor.values %s : {type_} to memref<?xf32>
  %at = bufferization.to_tensor %0 restrict : memref<?xi32> to tensor<?xi32>
  %columns = bufferization.to_tensor %1 restrict : memref<?xi32> to tensor<?xi32>
  %v = bufferization.to_tensor %2 restrict : memref<?xf32> to tensor<?xf32>
  %none = arith.constant 0.0 : f32
  %sum = sparse_tensor.foreach in %s init(%none) : {type_}, f32 -> f32 do {{
  ^bb0(%i: index, %j: index, %x: f32, %before: f32):
    %next = arith.addf %before, %x : f32
    sparse_tensor.yield %next : f32
  }}
  return %at, %columns, %v, %sum : tensor<?xi32>, tensor<?xi32>, tensor<?xf32>, f32
}}
""")
    a, x = some(3), np.random.default_rng(4).random(COLUMNS, np.float32)
    at, columns, values, total = made.run("to", a)
    np.testing.assert_array_equal(at, np.append(0, np.cumsum((a != 0).sum(1))))
    np.testing.assert_array_equal(columns, np.nonzero(a)[1])
    np.testing.assert_array_equal(values, a[a != 0])
    close(total, a.sum())
    close(made.run("from", at, columns, values, x), a @ x)
    with pytest.raises(ExecutionError, match="out of range"):
        made.run("from", at[:4], columns, values, x)


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_beside_a_device(default: str) -> None:
    """What is dense runs where it is said; matrices of one value are written to, twice."""
    made = devscope.compile(
        f"""
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: {DENSE}, %b: tensor<16x16xf32>) -> ({DENSE}, {DENSE}) {{
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %one = arith.constant dense<1.0> : {DENSE}
  %bb = linalg.matmul {{device.scope = #dev}} ins(%b, %b : tensor<16x16xf32>, tensor<16x16xf32>)
                                              outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  %s = sparse_tensor.convert %a : {DENSE} to {CSR}
  %0 = linalg.matmul ins(%s, %bb : {CSR}, tensor<16x16xf32>) outs(%one : {DENSE}) -> {DENSE}
  %1 = linalg.matmul ins(%s, %b : {CSR}, tensor<16x16xf32>) outs(%one : {DENSE}) -> {DENSE}
  %2 = math.exp %0 {{device.scope = #dev}} : {DENSE}
  return %2, %1 : {DENSE}, {DENSE}
}}
""",
        default=default,
    )
    a, b = some(5), np.random.default_rng(6).standard_normal((16, 16)).astype(np.float32) / 8
    first, second = made(a, b)
    close(first, np.exp(a @ (b @ b) + 1))
    close(second, a @ b + 1)


_ON_A_DEVICE = '{device.scope = #device.scope<"opencl", 0 : i64, "", "">} '
_PAIRS = (
    f"tensor<{ROWS}x{COLUMNS}xf32, #sparse_tensor.encoding<{{ map = (i, j) -> "
    "(i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4]) }>>"
)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (f"%s = sparse_tensor.convert %a {_ON_A_DEVICE}: {DENSE} to {CSR}", "of sparse tensors is on a device"),
        (f"%s = sparse_tensor.convert %a : {DENSE} to {_PAIRS}", "to a structured level"),
        (f"%s = sparse_tensor.convert %a : {DENSE} to {CSR}\n sparse_tensor.print %s : {CSR}", "writes files"),
    ],
)
def test_refused(operation: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        devscope.compile(f"func.func @main(%a: {DENSE}) -> {DENSE} {{\n {operation}\n return %a : {DENSE}\n}}")


def test_signatures_are_dense() -> None:
    with pytest.raises(LoweringError, match="'main' takes or returns a sparse tensor"):
        devscope.compile(f"""
func.func @main(%s: {CSR}) -> index {{
  %n = sparse_tensor.number_of_entries %s : {CSR}
  return %n : index
}}
""")
