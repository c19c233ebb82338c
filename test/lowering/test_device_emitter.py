"""The helper process that emits code of devices."""

from __future__ import annotations

import pytest

from devscope.errors import LoweringError
from devscope.lowering.codegen.device_emitter import DeviceEmitter, shared_emitter

KERNEL = """
declare spir_func i64 @_Z13get_global_idj(i32)
define spir_kernel void @scale(ptr addrspace(1) %data, float %factor) {{
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %p = getelementptr float, ptr addrspace(1) %data, i64 %i
  %x = load float, ptr addrspace(1) %p
  %y = fmul float %x, {factor}
  store float %y, ptr addrspace(1) %p
  ret void
}}
"""
MAGIC = 0x07230203


def test_the_same_text_gives_the_same_bytes_every_time() -> None:
    emitter = shared_emitter()
    binaries = {emitter.emit(KERNEL.format(factor="%factor")) for _ in range(5)}
    assert len(binaries) == 1
    assert int.from_bytes(binaries.pop()[:4], "little") == MAGIC


def test_bad_ir_is_an_error_and_the_helper_lives_on() -> None:
    emitter = shared_emitter()
    with pytest.raises(LoweringError, match="refused") as caught:
        emitter.emit("define spir_kernel void @f() { nonsense }")
    assert caught.value.notes
    assert emitter.emit(KERNEL.format(factor="%factor"))


@pytest.mark.parametrize("bits", ["i1", "<4 x i1>"])
def test_a_bit_as_a_signed_number_is_minus_one(bits: str) -> None:
    """Also where it is only LLVM that sees that it is one."""
    floats, wide = bits.replace("i1", "float"), bits.replace("i1", "i64")
    minus = "splat (float -1.0)" if "x" in bits else "-1.0"
    kernel = f"""
        define spir_kernel void @f({bits} %c, ptr addrspace(1) %p) {{
          BODY
          store {floats} %x, ptr addrspace(1) %p
          ret void
        }}
    """
    emit = shared_emitter().emit
    exact = emit(kernel.replace("BODY", f"%x = select {bits} %c, {floats} {minus}, {floats} zeroinitializer"))
    assert emit(kernel.replace("BODY", f"%x = sitofp {bits} %c to {floats}")) == exact
    extended = f"%s = sext {bits} %c to {wide}\n %x = sitofp {wide} %s to {floats}"
    assert emit(kernel.replace("BODY", extended)) == exact


LOOP = """
define spir_kernel void @f(ptr addrspace(1) %p, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]
  %more = add i32 %sum, %i
  %next = add i32 %i, 1
  %goes_on = icmp slt i32 %next, %n
  br i1 %goes_on, label %loop, label %done
done:
  store i32 %more, ptr addrspace(1) %p
  ret void
}
"""
SWITCH = """
define spir_kernel void @f(ptr addrspace(1) %p, i32 %n) {
entry:
  switch i32 %n, label %d [i32 0, label %a i32 1, label %b i32 2, label %c]
a:
  br label %d
b:
  br label %d
c:
  br label %d
d:
  %x = phi i8 [3, %a], [71, %b], [5, %c], [1, %entry]
  store i8 %x, ptr addrspace(1) %p
  ret void
}
"""


PART = """
define spir_kernel void @f(ptr addrspace(1) %p, ptr addrspace(1) %q, <16 x i32> %x) {
  store <16 x i32> %x, ptr addrspace(1) %p, align 4
  %half = getelementptr i32, ptr addrspace(1) %p, i64 8
  %part = load <8 x i32>, ptr addrspace(1) %half, align 4
  %wide = zext <8 x i32> %part to <8 x i64>
  store <8 x i64> %wide, ptr addrspace(1) %q, align 8
  ret void
}
"""


@pytest.mark.parametrize("kernel", [LOOP, SWITCH, PART], ids=["sum", "table", "part of a vector"])
def test_llvm_makes_no_integers_of_odd_widths(kernel: str) -> None:
    """The backend gets them wrong: i33 of a sum in closed form, i24 of a table of three bytes."""
    assert shared_emitter().emit(kernel)


def test_an_abort_of_the_backend_is_an_error() -> None:
    """LLVM aborts on bfloat arithmetic without the SPIR-V extension; only the child process dies."""
    emitter = DeviceEmitter()
    try:
        with pytest.raises(LoweringError):
            emitter.emit(
                "define spir_kernel void @f(ptr addrspace(1) %p) {\n"
                "  %a = load bfloat, ptr addrspace(1) %p\n  %b = fadd bfloat %a, %a\n"
                "  store bfloat %b, ptr addrspace(1) %p\n  ret void\n}\n"
            )
        assert emitter.emit(KERNEL.format(factor="%factor"))
    finally:
        emitter.close()
