"""What a program with several targets is made of: a device is one slot, with a binary for each of its targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import devscope
from devscope.runtime.executable import Executable

PROGRAM = Path(__file__).parent / "programs" / "targets.mlir"


def compiled() -> Executable:
    return devscope.compile(PROGRAM, devices={"opencl:1": "opencl:0"}, cache=False)


@pytest.mark.not_emulated
@pytest.mark.long
def test_one_slot_and_several_binaries(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 37, dtype=np.float32)
    with compiled() as executable:
        devices = executable.program.devices
        assert [(device.slot, device.name) for device in devices] == [(1, "opencl:0"), (2, "opencl:1")]
        # opencl:0: workgroups of 128, 32 and 64, and what no target is given for; opencl:1: default and 64.
        assert len(devices[0].binaries) >= 3
        assert len(devices[1].binaries) == 2
        for device in devices:
            assert {kernel.binary for kernel in device.kernels} == set(range(len(device.binaries)))
        first = executable.run("exposed", x, x)
        executable.save(tmp_path / "targets.dsx")
    with Executable.load(tmp_path / "targets.dsx", devices={"opencl:1": "opencl:0"}) as loaded:
        for one, other in zip(first, loaded.run("exposed", x, x), strict=True):
            np.testing.assert_array_equal(one, other)


def test_targets_of_one_device_share_its_memory() -> None:
    """No data moves between code for two targets on one device."""
    source = """
        #wide = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 128 : i64}>, "">
        #slim = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 32 : i64}>, "">
        func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
          %0 = math.tanh %x {device.scope = #wide} : tensor<64xf32>
          %1 = math.exp %0 {device.scope = #slim} : tensor<64xf32>
          return %1 : tensor<64xf32>
        }
    """
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    with devscope.compile(source, cache=False) as executable:
        np.testing.assert_allclose(executable(x), np.exp(np.tanh(x)), rtol=1e-5)
        counters = executable.counters()
    assert counters.launches["opencl:0"] == 2
    assert (counters.h2d.copies, counters.d2h.copies, counters.d2d.copies) == (1, 1, 0)
