"""CUDA: kernels -> gpu dialect -> NVVM and LLVM dialects -> PTX, which a driver compiles when it loads a program.

Nothing of NVIDIA's toolkit is needed: mathematical functions are devscope's own (`gpu.math_functions`).
"""

import re
from collections.abc import Sequence
from typing import Any

from devscope.dialects.target import get_target_kind
from devscope.errors import OptionError
from devscope.lowering.codegen.device_emitter import Machine, shared_emitter
from devscope.lowering.gpu.kernel_tables import gpu_schedules
from devscope.lowering.gpu.math_functions import call_math_functions
from devscope.lowering.gpu.to_llvm import compile_kernels
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import DeviceBinary, KernelTarget, Lanes, Options
from devscope.runtime.cuda_architectures import PTX_VERSIONS

_DEFAULT = "sm_75"
_VERSIONS = ["6.3", "6.4", "6.5", *(f"7.{n}" for n in range(9)), *(f"8.{n}" for n in range(9)), "9.0"]


def _check_options(options: Options) -> None:
    arch, ptx = _arch_and_ptx(options)
    if arch not in PTX_VERSIONS:
        raise OptionError(
            f"option 'arch' of target kind 'cuda': '{arch}' is not known",
            notes=[f"legal: {', '.join(PTX_VERSIONS)}"],
        )
    legal = _VERSIONS[_VERSIONS.index(PTX_VERSIONS[arch]) :]
    if ptx not in legal:
        raise OptionError(
            f"option 'ptx' of target kind 'cuda': {arch} has no PTX {ptx}", notes=[f"legal: {', '.join(legal)}"]
        )

    if options.get("tf32") and not _has_tensor_cores(arch):
        raise OptionError(f"option 'tf32' of target kind 'cuda': {arch} has no tf32", notes=["from sm_80 on"])


def _has_tensor_cores(arch: str) -> bool:
    """Those of these are used; sm_75's know f16 only."""
    return int(arch.removeprefix("sm_")) >= 80


def _arch_and_ptx(options: Options) -> tuple[str, str]:
    arch = str(options.get("arch", _DEFAULT))
    return arch, str(options.get("ptx", PTX_VERSIONS.get(arch)))


def _compile_kernels(gpu_modules: Any, run_passes: RunPasses, options: Options) -> DeviceBinary:
    machine, gpu_to_llvm = _machine(options), pipeline("cuda/gpu_to_llvm")
    return compile_kernels(
        gpu_modules, run_passes, "cuda", gpu_to_llvm, machine, call_math_functions, _declare_dynamic, _WORD
    )


def _machine(options: Options) -> Machine:
    arch, ptx = _arch_and_ptx(options)
    return Machine("PTX", "nvptx64-nvidia-cuda", arch, f"+ptx{ptx.replace('.', '')}", assembly=True)


_DYNAMIC = re.compile(r"^(@__dynamic_shmem__\d+) = internal (addrspace\(3\) global \[0 x i8\]) \w+", re.MULTILINE)


def _declare_dynamic(text: str) -> str:
    """Memory whose size a launch gives begins behind all other shared memory: PTX has an external array for it.

    convert-gpu-to-nvvm defines one of size 0, which PTX places among the others.
    """
    return _DYNAMIC.sub(r"\1 = external \2", text)


def _choose_kernels(options: Options, rows: Sequence[Row]) -> Schedules:
    arch, _ = _arch_and_ptx(options)
    return gpu_schedules(rows, _has_tensor_cores(arch), bool(options.get("tf32")))


_ALIGNMENT = 256
"""That of cuMemAlloc, and of parts of buffers."""

_WORD = 4
"""Bytes. What kernels are told of the alignment of buffers: copies go by words. Told of more, LLVM joins stores,
with which the largest tiles of contractions take nearly twice as long (f32, 128 x 128, on an H100)."""

_WARP = Lanes(32, ("f32", "i32"))

TARGET = KernelTarget(
    kind=get_target_kind("cuda"),
    compile_kernels=_compile_kernels,
    floats=("f16", "bf16", "f32", "f64"),
    choose_kernels=_choose_kernels,
    lanes=lambda _: _WARP,
    alignment=_ALIGNMENT,
    check_options=_check_options,
    prepare=shared_emitter,
)
