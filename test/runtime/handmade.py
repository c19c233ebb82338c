"""Programs made by hand, for tests of the runtime without the compiler.

Host code is LLVM IR text that calls the native runtime; kernels are LLVM IR text that becomes SPIR-V.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from devscope.lowering.codegen.host_object import packed_entries
from devscope.runtime.native import ENTRY_PREFIX, call_symbol
from devscope.runtime.program import (
    ConstantSpec,
    DeviceSpec,
    Entry,
    KernelSpec,
    Program,
    TensorSpec,
)
from devscope.runtime.seal import SEAL_IR, seal

GROUP = 64

KERNELS = """
declare spir_func i64 @_Z13get_global_idj(i32)
declare spir_func i64 @_Z12get_local_idj(i32)
declare spir_func void @_Z7barrierj(i32)

define spir_kernel void @add(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %z, i64 %n) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %body, label %exit
body:
  %px = getelementptr float, ptr addrspace(1) %x, i64 %i
  %py = getelementptr float, ptr addrspace(1) %y, i64 %i
  %pz = getelementptr float, ptr addrspace(1) %z, i64 %i
  %a = load float, ptr addrspace(1) %px
  %b = load float, ptr addrspace(1) %py
  %sum = fadd float %a, %b
  store float %sum, ptr addrspace(1) %pz
  br label %exit
exit:
  ret void
}

; out[0] = flag ? value : -1
define spir_kernel void @pick(ptr addrspace(1) %out, i8 %flag, i32 %value) {
  %set = trunc i8 %flag to i1
  %result = select i1 %set, i32 %value, i32 -1
  store i32 %result, ptr addrspace(1) %out
  ret void
}

; out[group] is in[group] back to front, by way of workgroup-local memory
define spir_kernel void @reverse(ptr addrspace(1) %in, ptr addrspace(1) %out, ptr addrspace(3) %shared) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %l = call spir_func i64 @_Z12get_local_idj(i32 0)
  %pin = getelementptr float, ptr addrspace(1) %in, i64 %i
  %value = load float, ptr addrspace(1) %pin
  %ps = getelementptr float, ptr addrspace(3) %shared, i64 %l
  store float %value, ptr addrspace(3) %ps
  call spir_func void @_Z7barrierj(i32 1)
  %opposite = sub i64 63, %l
  %pr = getelementptr float, ptr addrspace(3) %shared, i64 %opposite
  %other = load float, ptr addrspace(3) %pr
  %pout = getelementptr float, ptr addrspace(1) %out, i64 %i
  store float %other, ptr addrspace(1) %pout
  ret void
}

; out[x, y, z] = 100 z + 10 y + x over a grid of 4 x 3 x 2 work items
define spir_kernel void @position(ptr addrspace(1) %out) {
  %x = call spir_func i64 @_Z13get_global_idj(i32 0)
  %y = call spir_func i64 @_Z13get_global_idj(i32 1)
  %z = call spir_func i64 @_Z13get_global_idj(i32 2)
  %zy = mul i64 %z, 3
  %row = add i64 %zy, %y
  %rows = mul i64 %row, 4
  %at = add i64 %rows, %x
  %y10 = mul i64 %y, 10
  %z100 = mul i64 %z, 100
  %xy = add i64 %x, %y10
  %value = add i64 %xy, %z100
  %p = getelementptr i64, ptr addrspace(1) %out, i64 %at
  store i64 %value, ptr addrspace(1) %p
  ret void
}
"""

KERNEL_SPECS = [
    KernelSpec("add", [0, 0, 0, 8]),
    KernelSpec("pick", [0, 1, 4]),
    KernelSpec("reverse", [0, 0, -4 * GROUP]),
    KernelSpec("position", [0]),
]
KERNEL = {spec.name: index for index, spec in enumerate(KERNEL_SPECS)}

HOST_API = """
declare ptr @devscope_host_alloc(i64)
declare void @_mlir_memref_to_llvm_free(ptr)
declare void @devscope_fail_assertion(ptr, i64, i64) noreturn

define internal void @devscope_assert(i1 %holds, ptr %message) {
  br i1 %holds, label %done, label %stop
stop:
  call void @devscope_fail_assertion(ptr %message, i64 0, i64 0)
  unreachable
done:
  ret void
}
"""

HELPERS = """
define internal ptr @data(ptr %descriptor) {
  %p = getelementptr i64, ptr %descriptor, i64 1
  %data = load ptr, ptr %p
  ret ptr %data
}

define internal i64 @scalar(ptr %descriptor) {
  %data = call ptr @data(ptr %descriptor)
  %value = load i64, ptr %data
  ret i64 %value
}

define internal i64 @size(ptr %descriptor) {
  %p = getelementptr i64, ptr %descriptor, i64 3
  %size = load i64, ptr %p
  ret i64 %size
}

define internal void @give(ptr %result, ptr %memory) {
  %aligned = getelementptr i64, ptr %result, i64 1
  %offset = getelementptr i64, ptr %result, i64 2
  store ptr %memory, ptr %result
  store ptr %memory, ptr %aligned
  store i64 0, ptr %offset
  ret void
}

define internal void @give_vector(ptr %result, ptr %memory, i64 %size) {
  call void @give(ptr %result, ptr %memory)
  %size.p = getelementptr i64, ptr %result, i64 3
  %stride.p = getelementptr i64, ptr %result, i64 4
  store i64 %size, ptr %size.p
  store i64 1, ptr %stride.p
  ret void
}

define internal void @give_scalar(ptr %result, i64 %value) {
  %memory = call ptr @devscope_host_alloc(i64 8)
  store i64 %value, ptr %memory
  call void @give(ptr %result, ptr %memory)
  ret void
}
"""

# Runtime function: types of its parameters, type of its result.
_CALLS = {
    "alloc": ("i64 i64", "ptr"),
    "free": ("i64 ptr", "void"),
    "copy": ("i64 ptr i64 i64 ptr i64 i64", "void"),
    "constant": ("i64 i64", "ptr"),
    "launch": ("i64 i64 i64 i64 i64 i64 i64 i64 ptr i64", "void"),
}


def _call_entry(name: str, parameters: Sequence[str], result: str) -> str:
    """An entry that calls one runtime function with scalar arguments; pointers travel as i64."""
    names = [f"ptr %a{index}" for index in range(len(parameters))]
    lines = [
        f"define void @_mlir_ciface_devscope_entry_{name}"
        f"({', '.join((['ptr %result'] if result != 'void' else []) + names)}) {{"
    ]
    values: list[str] = []
    for index, kind in enumerate(parameters):
        lines.append(f"  %s{index} = call i64 @scalar(ptr %a{index})")
        if kind == "ptr":
            lines.append(f"  %p{index} = inttoptr i64 %s{index} to ptr")
        values.append(f"{kind} %{'p' if kind == 'ptr' else 's'}{index}")
    call = f"call {result} @devscope_{name}({', '.join(values)})"
    if result == "void":
        lines.append(f"  {call}")
    else:
        lines += [
            f"  %r = {call}",
            "  %i = ptrtoint ptr %r to i64",
            "  call void @give_scalar(ptr %result, i64 %i)",
        ]
    return "\n".join([*lines, "  ret void", "}"])


CALLS = "\n".join(_call_entry(name, kinds.split(), result) for name, (kinds, result) in _CALLS.items())

# add(x: ?xf32, y: ?xf32) -> ?xf32: x + y on one device, as the compiler would do it.
ADD = """
define void @_mlir_ciface_devscope_entry_add(ptr %result, ptr %x, ptr %y) {{
  %n = call i64 @size(ptr %x)
  %bytes = mul i64 %n, 4
  %x.data = call ptr @data(ptr %x)
  %y.data = call ptr @data(ptr %y)
  %x.device = call ptr @devscope_alloc(i64 {slot}, i64 %bytes)
  %y.device = call ptr @devscope_alloc(i64 {slot}, i64 %bytes)
  %z.device = call ptr @devscope_alloc(i64 {slot}, i64 %bytes)
  call void @devscope_copy(i64 0, ptr %x.data, i64 0, i64 {slot}, ptr %x.device, i64 0, i64 %bytes)
  call void @devscope_copy(i64 0, ptr %y.data, i64 0, i64 {slot}, ptr %y.device, i64 0, i64 %bytes)
  %cells = alloca [4 x i64]
  %cell1 = getelementptr i64, ptr %cells, i64 1
  %cell2 = getelementptr i64, ptr %cells, i64 2
  %cell3 = getelementptr i64, ptr %cells, i64 3
  store ptr %x.device, ptr %cells
  store ptr %y.device, ptr %cell1
  store ptr %z.device, ptr %cell2
  store i64 %n, ptr %cell3
  %up = add i64 %n, 63
  %groups = udiv i64 %up, 64
  call void @devscope_launch(i64 {slot}, i64 {kernel}, i64 %groups, i64 1, i64 1, i64 64, i64 1, i64 1,
                             ptr %cells, i64 4)
  %memory = call ptr @devscope_host_alloc(i64 %bytes)
  call void @devscope_copy(i64 {slot}, ptr %z.device, i64 0, i64 0, ptr %memory, i64 0, i64 %bytes)
  call void @devscope_free(i64 {slot}, ptr %x.device)
  call void @devscope_free(i64 {slot}, ptr %y.device)
  call void @devscope_free(i64 {slot}, ptr %z.device)
  call void @give_vector(ptr %result, ptr %memory, i64 %n)
  ret void
}}
"""


def _scalar(name: str = "") -> TensorSpec:
    return TensorSpec("i64", [], True, name)


def symbol(name: str) -> str:
    """What the loader calls for ``@_mlir_ciface_devscope_entry_<name>``."""
    return call_symbol(f"{ENTRY_PREFIX}{name}")


CALL_ENTRIES = {
    name: Entry(symbol(name), [_scalar() for _ in kinds.split()], [_scalar()] if result != "void" else [])
    for name, (kinds, result) in _CALLS.items()
}


def vector(dtype: str = "f32", size: int | None = None, name: str = "") -> TensorSpec:
    return TensorSpec(dtype, [size], False, name)


ADD_ENTRY = Entry(symbol("add"), [vector(name="x"), vector(name="y")], [vector()])


@cache
def spirv(ir: str = KERNELS) -> bytes:
    """SPIR-V of kernels given as LLVM IR."""
    emitter = Path(__file__).with_name("spirv_emitter.py")
    process = subprocess.run([sys.executable, str(emitter)], input=ir.encode(), capture_output=True, check=False)
    assert process.returncode == 0, process.stderr.decode()
    return process.stdout


@cache
def host_object(ir: str) -> bytes:
    """Object code of LLVM IR text, with the helpers above."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1, reloc="pic", codemodel="default")
    declarations = "\n".join(
        f"declare {result} @devscope_{name}({', '.join(kinds.split())})"
        for name, (kinds, result) in _CALLS.items()
    )
    module = llvm.parse_assembly(f"{HOST_API}\n{declarations}\n{HELPERS}\n{ir}\n{SEAL_IR}")
    counts = {f.name: len(list(f.arguments)) for f in module.functions if f.name.startswith(ENTRY_PREFIX)}
    module.link_in(llvm.parse_assembly(packed_entries(counts)))
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_object(module)


def opencl(slot: int, number: int = 0, kernels: bool = True) -> DeviceSpec:
    """The virtual device ``opencl:<number>`` with all kernels."""
    return DeviceSpec(
        slot, "opencl", number, "opencl", [spirv()] if kernels else [], KERNEL_SPECS if kernels else []
    )


def program(
    ir: str,
    entries: dict[str, Entry],
    devices: Sequence[DeviceSpec] = (),
    constants: Sequence[tuple[ConstantSpec, Any]] = (),
) -> Program:
    """A program for this machine."""
    return seal(
        Program(
            entries=entries,
            host_object=host_object(ir),
            host_triple=llvm.get_process_triple(),
            devices=list(devices),
            constants=[spec for spec, _ in constants],
            constant_data=[data for _, data in constants],
        )
    )


def add_program(slot_devices: Sequence[DeviceSpec] | None = None) -> Program:
    """``add`` on ``opencl:0``."""
    devices = slot_devices if slot_devices is not None else [opencl(1)]
    return program(ADD.format(slot=1, kernel=KERNEL["add"]), {"add": ADD_ENTRY}, devices)


def calls_program(
    devices: Sequence[DeviceSpec] = (), constants: Sequence[tuple[ConstantSpec, Any]] = ()
) -> Program:
    """Every function of the native runtime as an entry, so that tests can call them one by one."""
    return program(CALLS, CALL_ENTRIES, devices, constants)
