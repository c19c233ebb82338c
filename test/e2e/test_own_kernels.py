"""Launches of hand-written kernels that a device cannot run: one error with the kernel, the size and the limit."""

from __future__ import annotations

import re

import numpy as np
import pytest
from memory_check import assert_nothing_leaks

import devscope
from devscope.errors import DeviceError, VerifyError
from devscope.runtime.drivers.opencl import opencl_devices
from devscope.runtime.executable import Executable

# All sizes are arguments: a call that fails can be followed by one that does not.
PROGRAM = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
#wg = #gpu.address_space<workgroup>
func.func private @numbers(%x: memref<?xi32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bytes = gpu.dynamic_shared_memory : memref<?xi8, #wg>
  %shared = memref.view %bytes[%c0][%c1] : memref<?xi8, #wg> to memref<?xi32, #wg>
  %n = memref.dim %x, %c0 : memref<?xi32>
  %t = gpu.thread_id x
  %first = arith.cmpi eq, %t, %c0 : index
  %b = gpu.block_id x
  scf.if %first {
    %0 = arith.index_cast %b : index to i32
    memref.store %0, %shared[%c0] : memref<?xi32, #wg>
  }
  gpu.barrier
  %in = arith.cmpi ult, %b, %n : index
  %do = arith.andi %first, %in : i1
  scf.if %do {
    %0 = memref.load %shared[%c0] : memref<?xi32, #wg>
    memref.store %0, %x[%b] : memref<?xi32>
  }
  return
}
func.func @main(%x: tensor<?xi32>, %g: index, %b: index, %z: index, %local: index) -> tensor<?xi32> {
  %c1 = arith.constant 1 : index
  %0 = arith.addi %x, %x {device.scope = #dev} : tensor<?xi32>
  %1 = "device.launch"(%g, %c1, %c1, %b, %c1, %z, %local) ({
    "device.out"(%0) : (tensor<?xi32>) -> ()
  }) {kernel = @numbers, device.scope = #dev} : (index, index, index, index, index, index, index) -> tensor<?xi32>
  %2 = arith.addi %1, %1 {device.scope = #dev} : tensor<?xi32>
  return %2 : tensor<?xi32>
}
"""


@pytest.fixture(scope="module")
def executable() -> Executable:
    return devscope.compile(PROGRAM, cache=False)


def run(executable: Executable, *sizes: int) -> np.ndarray:
    x = np.random.default_rng(60).integers(-9, 9, 7).astype(np.int32)
    result = executable(x, *sizes)
    expected = 4 * x
    expected[: sizes[0]] = 2 * np.arange(min(sizes[0], 7))
    np.testing.assert_array_equal(result, expected)
    return x


def test_limits(executable: Executable) -> None:
    device = opencl_devices()[0][0]
    items, local = device.max_workgroup_size, device.local_memory_bytes
    too_many = f"a workgroup would have {{}} work-items, of which the device allows {items}"
    for sizes, reason in (
        ((7, items + 1, 1, 4), too_many.format(items + 1)),
        ((7, items, 2, 4), too_many.format(2 * items)),
        ((7, 2**62, 4, 4), too_many.format(2**62)),
        ((7, 1, 1, local + 1), "a workgroup would need .* of local memory, the device has "),
        ((7, 1, 1, 2**40), "a workgroup would need .* of local memory, the device has "),
        ((7, 1, 1, -5), "its local memory would have -5 bytes"),
        ((7, 0, 1, 4), "a size of its grid or workgroups is 0"),
        ((7, -3, 1, 4), "a size of its grid or workgroups is -3"),
        ((-2, 1, 1, 4), "a size of its grid or workgroups is -2"),
    ):
        message = f"^error: opencl:0 .*launching kernel 'numbers' failed: {reason}"
        with pytest.raises(DeviceError, match=message) as caught:
            executable(np.zeros(7, np.int32), *sizes)
        assert re.search("note: check the sizes that the launch of the kernel computes", str(caught.value))
        assert executable.counters().live == {"cpu:0": 0, "opencl:0": 0}
        run(executable, 5, 3, 1, 4)


def test_largest_sizes(executable: Executable) -> None:
    device = opencl_devices()[0][0]
    run(executable, 7, device.max_workgroup_size, 1, 4)
    run(executable, 7, 2, 2, device.local_memory_bytes // 2)


def test_nothing_leaks(executable: Executable) -> None:
    x = run(executable, 0, 1, 1, 4)
    sizes = [np.int64(size) for size in (7, 2, 1, 64)]
    assert_nothing_leaks(executable, "main", [x, *sizes], only_host=False)


def test_an_empty_grid_launches_nothing(executable: Executable) -> None:
    executable.reset_counters()
    run(executable, 0, 4, 1, 4)
    assert executable.counters().launches["opencl:0"] == 2


def test_devices_built_for_the_host_run_no_kernels() -> None:
    message = "kernel 'numbers' is launched on opencl:0, whose target 'cpu' has no kernels"
    with pytest.raises(VerifyError, match=message):
        devscope.compile(PROGRAM, devices={"opencl:0": "cpu:0"}, cache=False)


KINDS = ("add", "mul", "and", "or", "xor", "minui", "maxui", "minsi", "maxsi")


def test_reductions_of_vectors_of_bits() -> None:
    stores = "\n".join(
        f"""
          %{kind} = vector.reduction <{kind}>, %v : vector<3xi1> into i1
          %{kind}_one = vector.reduction <{kind}>, %one : vector<1xi1> into i1
          %{kind}_both = arith.select %{kind}_one, %two, %zero : i32
          %{kind}_n = arith.extui %{kind} : i1 to i32
          %{kind}_s = arith.addi %{kind}_both, %{kind}_n : i32
          %{kind}_i = arith.constant {number} : index
          memref.store %{kind}_s, %r[%b, %{kind}_i] : memref<?x{len(KINDS)}xi32>
        """
        for number, kind in enumerate(KINDS)
    )
    text = f"""
        func.func private @bits(%r: memref<?x{len(KINDS)}xi32>) attributes {{device.kernel}} {{
          %zero = arith.constant 0 : i32
          %two = arith.constant 2 : i32
          %b = gpu.block_id x
          %n = arith.index_cast %b : index to i32
          %m = arith.constant dense<[1, 2, 4]> : vector<3xi32>
          %all = vector.broadcast %n : i32 to vector<3xi32>
          %masked = arith.andi %all, %m : vector<3xi32>
          %none = arith.constant dense<0> : vector<3xi32>
          %v = arith.cmpi ne, %masked, %none : vector<3xi32>
          %first = vector.extract %v[0] : i1 from vector<3xi1>
          %one = vector.broadcast %first : i1 to vector<1xi1>
          {stores}
          return
        }}
        func.func @main() -> tensor<8x{len(KINDS)}xi32> {{
          %c1 = arith.constant 1 : index
          %c8 = arith.constant 8 : index
          %e = tensor.empty() : tensor<8x{len(KINDS)}xi32>
          %0 = "device.launch"(%c8, %c1, %c1, %c1, %c1, %c1) ({{
            "device.out"(%e) : (tensor<8x{len(KINDS)}xi32>) -> ()
          }}) {{kernel = @bits, device.scope = #device.scope<"opencl", 0 : i64, "", "">}}
            : (index, index, index, index, index, index) -> tensor<8x{len(KINDS)}xi32>
          return %0 : tensor<8x{len(KINDS)}xi32>
        }}
    """
    bits = np.arange(8)[:, None] >> np.arange(3) & 1
    every, some, odd = bits.min(1), bits.max(1), bits.sum(1) % 2
    columns = {"add": odd, "xor": odd, **dict.fromkeys(("or", "maxui", "minsi"), some)}
    expected = np.stack([columns.get(kind, every) + 2 * bits[:, 0] for kind in KINDS], 1)
    np.testing.assert_array_equal(devscope.run(text), expected)
