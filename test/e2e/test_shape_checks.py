"""Shapes that are known at run time only and do not fit: one typed error, before anything is read."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import DevscopeError, ExecutionError, InputError
from devscope.runtime.executable import Executable

PROGRAM = """
func.func @add(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @slices(%x: tensor<?xf32>, %y: tensor<?xf32>, %o: index, %n: index) -> tensor<?xf32> {
  %s = tensor.extract_slice %x[%o] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  %0 = arith.mulf %s, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @insert(%x: tensor<?xf32>, %y: tensor<?xf32>, %o: index, %n: index) -> tensor<?xf32> {
  %s = tensor.insert_slice %y into %x[%o] [%n] [1] : tensor<?xf32> into tensor<?xf32>
  %t = arith.negf %s : tensor<?xf32>
  return %t : tensor<?xf32>
}
func.func @cast(%x: tensor<?xf32>) -> tensor<4xf32> {
  %t = arith.negf %x : tensor<?xf32>
  %s = tensor.cast %t : tensor<?xf32> to tensor<4xf32>
  return %s : tensor<4xf32>
}
func.func @cast_collapsed(%x: tensor<?xf32>) -> tensor<6xf32> {
  %t = arith.negf %x : tensor<?xf32>
  %u = tensor.collapse_shape %t [[0]] : tensor<?xf32> into tensor<?xf32>
  %s = tensor.cast %u : tensor<?xf32> to tensor<6xf32>
  return %s : tensor<6xf32>
}
func.func @expand(%x: tensor<?xf32>, %n: index) -> tensor<?x3xf32> {
  %t = arith.negf %x : tensor<?xf32>
  %s = tensor.expand_shape %t [[0, 1]] output_shape [%n, 3] : tensor<?xf32> into tensor<?x3xf32>
  %u = arith.negf %s : tensor<?x3xf32>
  return %u : tensor<?x3xf32>
}
func.func @concat(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %t = arith.negf %r : tensor<?x?xf32>
  return %t : tensor<?x?xf32>
}
func.func @conv(%x: tensor<1x1x?xf32>, %k: tensor<1x1x?xf32>, %o: tensor<1x1x?xf32>) -> tensor<1x1x?xf32> {
  %r = linalg.conv_1d_ncw_fcw {strides = dense<2> : tensor<1xi64>}
      ins(%x, %k : tensor<1x1x?xf32>, tensor<1x1x?xf32>) outs(%o : tensor<1x1x?xf32>) -> tensor<1x1x?xf32>
  return %r : tensor<1x1x?xf32>
}
func.func @loop(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %0 = arith.addf %x, %y : tensor<?xf32>
    %1 = arith.addf %a, %0 : tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func @unsigned(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: i32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : i32
  %step = arith.constant 1073741824 : i32
  %r = scf.for unsigned %i = %c0 to %n step %step iter_args(%a = %x) -> tensor<?xf32> : i32 {
    %0 = arith.addf %x, %y : tensor<?xf32>
    %1 = arith.addf %a, %0 : tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func private @callee(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @call(%a: tensor<?xf32>, %b: tensor<?xf32>, %c: i1) -> tensor<?xf32> {
  %r = scf.if %c -> tensor<?xf32> {
    %0 = func.call @callee(%a, %b) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %0 : tensor<?xf32>
  } else { scf.yield %a : tensor<?xf32> }
  return %r : tensor<?xf32>
}
func.func @static(%x: tensor<4xf32>, %y: tensor<?xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %y : tensor<4xf32>, tensor<?xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @tiles(%x: tensor<?xf32>, %from: index, %n: index) -> tensor<?xf32> {
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %from to %n step %c4 iter_args(%a = %x) -> tensor<?xf32> {
    %s = tensor.extract_slice %a[%i] [4] [1] : tensor<?xf32> to tensor<4xf32>
    %t = math.absf %s : tensor<4xf32>
    %v = tensor.insert_slice %t into %a[%i] [4] [1] : tensor<4xf32> into tensor<?xf32>
    scf.yield %v : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func @forall(%x: tensor<?x4xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?x4xf32> {
  %r = scf.forall (%i) in (%n) shared_outs(%o = %x) -> tensor<?x4xf32> {
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
    %e = tensor.cast %s : tensor<4xf32> to tensor<?xf32>
    %t = arith.addf %e, %y : tensor<?xf32>
    %u = tensor.cast %t : tensor<?xf32> to tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %u into %o[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
    }
  }
  return %r : tensor<?x4xf32>
}
func.func @inserts(%x: tensor<?xf32>, %y: tensor<1xf32>, %n: index) -> tensor<?xf32> {
  %r = scf.forall (%i) in (%n) shared_outs(%o = %x) -> tensor<?xf32> {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}
func.func @pad(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %z = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[%n] high[1] { ^bb0(%i: index): tensor.yield %z : f32 } : tensor<?xf32> to tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @empty_window(%x: tensor<1x1x?xf32>, %k: tensor<1x1x?xf32>, %o: tensor<?x1x?xf32>)
    -> tensor<?x1x?xf32> {
  %y = tensor.cast %x : tensor<1x1x?xf32> to tensor<?x1x?xf32>
  %r = linalg.conv_1d_ncw_fcw ins(%y, %k : tensor<?x1x?xf32>, tensor<1x1x?xf32>)
      outs(%o : tensor<?x1x?xf32>) -> tensor<?x1x?xf32>
  return %r : tensor<?x1x?xf32>
}
func.func @reshape(%x: tensor<?xf32>, %s: tensor<2xindex>) -> tensor<?x?xf32> {
  %t = arith.negf %x : tensor<?xf32>
  %r = tensor.reshape %t(%s) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @reshape32(%x: tensor<?xf32>, %s: tensor<2xi32>) -> tensor<?x3xf32> {
  %r = tensor.reshape %x(%s) {device.scope = DEFAULT} : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}
func.func @reshape_static(%x: tensor<6xf32>, %s: tensor<2xi64>) -> tensor<2x3xf32> {
  %r = tensor.reshape %x(%s) {device.scope = DEFAULT} : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
func.func @reshape_rest(%x: tensor<4x6xf32>, %n: tensor<1xi64>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c24 = arith.constant 24 : i64
  %m = tensor.extract %n[%c0] : tensor<1xi64>
  %q = arith.divsi %c24, %m : i64
  %a = math.absf %x {device.scope = DEFAULT} : tensor<4x6xf32>
  %s = tensor.from_elements %m, %q : tensor<2xi64>
  %r = tensor.reshape %a(%s) : (tensor<4x6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %b = math.absf %r {device.scope = DEFAULT} : tensor<?x?xf32>
  return %b : tensor<?x?xf32>
}
func.func @reshape_known(%x: tensor<3x2xf32>) -> (tensor<6xf32>, tensor<2x3xf32>) {
  %six = arith.constant 6 : index
  %s = tensor.from_elements %six : tensor<1xindex>
  %r = tensor.reshape %x(%s) {device.scope = DEFAULT} : (tensor<3x2xf32>, tensor<1xindex>) -> tensor<6xf32>
  %t = arith.constant dense<[2, 3]> : tensor<2xi32>
  %q = tensor.reshape %x(%t) {device.scope = DEFAULT} : (tensor<3x2xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  return %r, %q : tensor<6xf32>, tensor<2x3xf32>
}
func.func @concat_static(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<8xf32> {
  %0 = tensor.concat dim(0) %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @pad_static(%x: tensor<?xf32>, %n: index) -> tensor<8xf32> {
  %z = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[%n] high[1] { ^bb0(%i: index): tensor.yield %z : f32 } : tensor<?xf32> to tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @strided(%x: tensor<?xf32>, %n: index, %s: index) -> tensor<?xf32> {
  %0 = tensor.extract_slice %x[1] [%n] [%s] : tensor<?xf32> to tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @backwards(%x: tensor<?xf32>, %o: index, %n: index) -> tensor<?xf32> {
  %0 = tensor.extract_slice %x[%o] [%n] [-2] : tensor<?xf32> to tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @backwards_static(%x: tensor<8xf32>) -> tensor<4xf32> {
  %0 = tensor.extract_slice %x[5] [4] [-2] : tensor<8xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @chosen(%c: i1, %x: tensor<?xf32>, %y: tensor<?xf32>, %z: tensor<?xf32>) -> tensor<?xf32> {
  %0 = scf.if %c -> tensor<?xf32> { scf.yield %x : tensor<?xf32> } else { scf.yield %y : tensor<?xf32> }
  %1 = arith.addf %0, %z : tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func @selected(%c: i1, %x: tensor<?xf32>, %y: tensor<?xf32>, %z: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.select %c, %x, %y : tensor<?xf32>
  %1 = arith.addf %0, %z : tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func @reshape_by_constant(%x: tensor<6xf32>) -> tensor<2x3xf32> {
  %s = arith.constant dense<[3, 2]> : tensor<2xindex>
  %r = tensor.reshape %x(%s) {device.scope = DEFAULT} : (tensor<6xf32>, tensor<2xindex>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
func.func @tosa_concat(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = tosa.concat %x, %y {axis = 1 : i32} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @concatenate(%x: tensor<?x?xf32>, %y: tensor<2x?xf32>) -> tensor<?x?xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<?x?xf32>, tensor<2x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @buffers(%x: tensor<?xf32>, %n: index, %k: index) -> f32 {
  %c0 = arith.constant 0 : index
  %a = bufferization.to_buffer %x : tensor<?xf32> to memref<?xf32>
  %b = memref.alloc(%n) : memref<?xf32>
  memref.copy %a, %b : memref<?xf32> to memref<?xf32>
  %s = memref.subview %b[1] [%k] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: 1>>
  %v = memref.load %s[%c0] : memref<?xf32, strided<[1], offset: 1>>
  return %v : f32
}
func.func @pack(%x: tensor<?x?xf32>, %o: tensor<?x?x2xf32>) -> tensor<?x?x2xf32> {
  %0 = linalg.pack %x outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [2] into %o
    {device.scope = DEFAULT} : tensor<?x?xf32> -> tensor<?x?x2xf32>
  return %0 : tensor<?x?x2xf32>
}
func.func @unpack(%x: tensor<?x?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %x, %c2 : tensor<?x?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %0 = linalg.unpack %x inner_dims_pos = [1] inner_tiles = [%t] into %e {device.scope = DEFAULT}
    : tensor<?x?x?xf32> -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @add_elsewhere(%n: index, %p: tensor<?xf32>, %q: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %p, %q : tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""

# How many rows chunks have is computed from one of the arguments.
CHUNKS = """
#d = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = arith.addf %x, %y {device.scope = #d} : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
"""


def floats(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def both(one: int, size: int, other: int, size2: int, axes: str = "00") -> str:
    names = [f"dimension {axis} of argument {n}( '[a-z]')?" for axis, n in zip(axes, (one, other), strict=True)]
    return rf"arguments do not fit each other: {names[0]} is {size}, {names[1]} is {size2} \("


# Entry, arguments, and what is wrong with them, if anything is.
CASES: list[tuple[str, tuple[Any, ...], type[DevscopeError] | None, str]] = [
    ("add", (floats(3), floats(3)), None, ""),
    ("add", (floats(3), floats(4)), InputError, both(0, 3, 1, 4)),
    ("pack", (floats(3, 4), floats(2, 3, 2)), None, ""),
    ("pack", (floats(3, 4), floats(3, 3, 2)), None, ""),
    (
        "pack",
        (floats(3, 4), floats(1, 3, 2)),
        ExecutionError,
        "dimension 1 of argument 0 'x' is 4, .* room for 2 ",
    ),
    ("pack", (floats(3, 4), floats(2, 2, 2)), InputError, both(1, 2, 0, 3, "10")),
    ("unpack", (floats(3, 2, 4), 3, 7), None, ""),
    ("unpack", (floats(3, 2, 4), 3, 9), ExecutionError, "operand 1 is 9, its tiles have room for 8 "),
    ("unpack", (floats(3, 2, 4), 4, 7), ExecutionError, "dimension 0 of argument 0 'x' is 3, .* is 4 "),
    ("matmul", (floats(2, 3), floats(3, 4)), None, ""),
    ("matmul", (floats(2, 3), floats(4, 4)), InputError, both(0, 3, 1, 4, "10")),
    ("matmul", (floats(0, 3), floats(4, 4)), InputError, both(0, 3, 1, 4, "10")),
    ("tiles", (floats(8), 0, 8), None, ""),
    ("tiles", (floats(8), 0, 5), None, ""),
    ("tiles", (floats(8), 9, 3), None, ""),
    ("tiles", (floats(8), 0, 9), ExecutionError, "takes 4 of dimension 0 of argument 0 'x', where 0 are left"),
    ("tiles", (floats(8), 6, 7), ExecutionError, "takes 4 of dimension 0 of argument 0 'x', where 2 are left"),
    ("tiles", (floats(8), -4, 8), ExecutionError, "begins at -4 of dimension 0 of argument 0 'x', which is 8"),
    ("forall", (floats(3, 4), floats(4), 2), None, ""),
    ("forall", (floats(3, 4), floats(5), 0), None, ""),
    ("forall", (floats(3, 4), floats(5), 3), InputError, "operand 0 is 4, dimension 0 of argument 1 'y' is 5"),
    ("forall", (floats(3, 4), floats(4), 4), ExecutionError, "'tensor.extract_slice' takes 1 of .* 0 are left"),
    ("inserts", (floats(3), floats(1), 3), None, ""),
    ("inserts", (floats(3), floats(1), 4), ExecutionError, "'tensor.parallel_insert_slice' takes 1 of .* 0 are"),
    ("slices", (floats(8), floats(3), 2, 3), None, ""),
    ("slices", (floats(8), floats(3), 2, 4), ExecutionError, "dimension 0 of operand 0 is 4, .* '[a-z]' is 3"),
    ("slices", (floats(8), floats(3), 6, 3), ExecutionError, "takes 3 of .* '[a-z]', where 2 are left"),
    ("slices", (floats(8), floats(3), -1, 3), ExecutionError, "begins at -1 of dimension 0 of argument 0"),
    ("slices", (floats(8), floats(3), 2**63 - 1, 3), ExecutionError, "begins at 9223372036854775807 of"),
    ("slices", (floats(8), floats(1), 0, 2**40), ExecutionError, "takes 1099511627776 of .* where 8 are left"),
    ("insert", (floats(8), floats(3), 2, 3), None, ""),
    ("insert", (floats(8), floats(3), 6, 3), ExecutionError, "takes 3 of .* '[a-z]', where 2 are left"),
    (
        "insert",
        (floats(8), floats(4), 1, 3),
        ExecutionError,
        "argument 1 '[a-z]' is 4, the size .* is 3",
    ),
    ("insert", (floats(8), floats(3), -1, 3), ExecutionError, "begins at -1 of"),
    ("cast", (floats(4),), None, ""),
    ("cast", (floats(3),), InputError, "argument 0 '[a-z]' is 3, dimension 0 of the result is 4"),
    ("cast_collapsed", (floats(6),), None, ""),
    ("cast_collapsed", (floats(4),), InputError, "argument 0 '[a-z]' is 4, dimension 0 of the result is 6"),
    ("expand", (floats(6), 2), None, ""),
    ("expand", (floats(6), 3), ExecutionError, "'[a-z]' is 6, the product of what it becomes is 9"),
    ("expand", (floats(6), -2), ExecutionError, "the product of what it becomes is -6"),
    ("concat", (floats(2, 3), floats(1, 3)), None, ""),
    ("concat", (floats(2, 3), floats(1, 4)), InputError, both(0, 3, 1, 4, "11")),
    ("conv", (floats(1, 1, 7), floats(1, 1, 3), floats(1, 1, 3)), None, ""),
    (
        "conv",
        (floats(1, 1, 7), floats(1, 1, 3), floats(1, 1, 4)),
        ExecutionError,
        "reads index 8 of .* which is 7",
    ),
    ("empty_window", (floats(1, 1, 1), floats(1, 1, 3), floats(1, 1, 0)), None, ""),
    ("loop", (floats(3), floats(3), 2), None, ""),
    ("loop", (floats(3), floats(4), 2), InputError, both(0, 3, 1, 4)),
    ("loop", (floats(3), floats(4), 0), None, ""),
    ("unsigned", (floats(3), floats(3), -(2**30)), None, ""),
    ("unsigned", (floats(3), floats(4), -(2**30)), InputError, both(0, 3, 1, 4)),
    ("call", (floats(3), floats(3), True), None, ""),
    ("call", (floats(3), floats(4), True), InputError, both(0, 3, 1, 4)),
    ("call", (floats(3), floats(4), False), None, ""),
    ("static", (floats(4), floats(4)), None, ""),
    ("static", (floats(4), floats(5)), InputError, "argument 1 '[a-z]' is 5"),
    ("pad", (floats(4), 2), None, ""),
    ("pad", (floats(4), -2), ExecutionError, "would pad by -2"),
    ("reshape", (floats(6), np.array([2, 3])), None, ""),
    ("reshape", (floats(6), np.array([2, 4])), ExecutionError, " is 6, the .* is 8 "),
    ("reshape", (floats(6), np.array([-2, -3])), ExecutionError, "dimension 0 of 'tensor.[a-z_]*' would be -2"),
    ("reshape32", (floats(6), np.array([2, 3], np.int32)), None, ""),
    (
        "reshape32",
        (floats(6), np.array([3, 2], np.int32)),
        ExecutionError,
        "element 1 of the shape is 2, that of the result is 3|'x' is 6, the product of what it becomes is 9",
    ),
    ("reshape_static", (floats(6), np.array([2, 3])), None, ""),
    ("reshape_rest", (floats(4, 6), np.array([0])), ExecutionError, " is 24, the .* is 0 "),
    ("reshape_known", (floats(3, 2),), None, ""),
    (
        "reshape_static",
        (floats(6), np.array([3, 2])),
        ExecutionError,
        "element 0 of the shape is 3, that of the result is 2",
    ),
    ("concat_static", (floats(3), floats(5)), None, ""),
    (
        "concat_static",
        (floats(3), floats(4)),
        ExecutionError,
        "sum of dimension 0 .* is 7, that of the result is 8",
    ),
    ("pad_static", (floats(4), 3), None, ""),
    ("pad_static", (floats(4), 4), ExecutionError, "with its padding is 9, that of the result is 8"),
    ("reshape_by_constant", (floats(6),), ExecutionError, "element 0 of the shape is 3, that of the result is 2"),
    ("tosa_concat", (floats(2, 3), floats(2, 1)), None, ""),
    ("tosa_concat", (floats(3, 3), floats(2, 1)), InputError, both(0, 3, 1, 2)),
    ("concatenate", (floats(2, 3), floats(2, 1)), None, ""),
    ("concatenate", (floats(3, 3), floats(2, 1)), InputError, "'x' is 3, dimension 0 of operand 1 is 2"),
    ("buffers", (floats(5), 5, 3), None, ""),
    ("buffers", (floats(5), 4, 3), ExecutionError, "argument 0 'x' is 5, .* is 4 .in 'memref.copy'"),
    ("buffers", (floats(3), 3, 3), ExecutionError, "'memref.subview' takes 3 of .*, where 2 are left"),
    ("strided", (floats(10), 3, 4), None, ""),
    ("strided", (floats(10), 3, 5), ExecutionError, "takes 11 of dimension 0 of argument 0 'x', where 9 are left"),
    (
        "strided",
        (floats(10), 3, 2**62),
        ExecutionError,
        "the stride of 'tensor.extract_slice' is 4611686018427387904",
    ),
    ("strided", (floats(10), -3, 2), ExecutionError, "the size of 'tensor.extract_slice' is -3"),
    ("backwards", (floats(8), 7, 4), None, ""),
    ("backwards", (floats(8), 0, 0), None, ""),
    ("backwards", (floats(8), 5, 4), ExecutionError, "goes back by 6 from 5 of dimension 0 of argument 0 'x'"),
    ("backwards", (floats(8), 8, 2), ExecutionError, "begins at 8 of dimension 0 of argument 0 'x', which is 8"),
    ("backwards", (floats(8), 7, -1), ExecutionError, "the size of 'tensor.extract_slice' is -1"),
    ("backwards_static", (floats(8),), ExecutionError, "goes back by 6 from 5 of"),
    *[
        (
            entry,
            (first, floats(3), floats(5), floats(size)),
            None if first is (size == 3) else ExecutionError,
            which,
        )
        for entry in ("chosen", "selected")
        for first, size, which in ((True, 3, ""), (True, 5, "is 3,"), (False, 5, ""), (False, 3, "is 5,"))
    ],
    ("add_elsewhere", (1, floats(3), floats(4)), InputError, both(1, 3, 2, 4)),
]


@cache
def executable(default: str) -> Executable:
    scope = f'#device.scope<"{default.partition(":")[0]}", 0 : i64, "", "">'
    return devscope.compile(PROGRAM.replace("DEFAULT", scope), default=default, cache=False)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("default", "case"),
    [(default, case) for default in ("cpu:0", "opencl:0") for case in CASES],
)
def test_shapes(default: str, case: tuple[str, tuple[Any, ...], type[DevscopeError] | None, str]) -> None:
    entry, arguments, error, message = case
    if error is None:
        result = executable(default).run(entry, *arguments)
        if entry in ("chosen", "selected"):
            np.testing.assert_array_equal(result, 2 * arguments[3])
        if entry == "backwards":
            np.testing.assert_array_equal(result, arguments[0][arguments[1] :: -2][: arguments[2]])
    else:
        with pytest.raises(error, match=message) as caught:
            executable(default).run(entry, *arguments)
        assert caught.value.location is not None
    assert not any(executable(default).counters().live.values())


def test_chunks_are_of_both_arguments() -> None:
    with devscope.compile(CHUNKS, chunks=4, cache=False) as executable:
        assert executable(floats(9000, 64), floats(9000, 64)).shape == (9000, 64)
        for sizes in ((9000, 9001), (9001, 9000), (9000, 10)):
            with pytest.raises(InputError, match=both(0, sizes[0], 1, sizes[1])):
                executable(*(floats(size, 64) for size in sizes))
