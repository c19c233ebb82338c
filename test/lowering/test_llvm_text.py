"""Floating-point literals between LLVM versions, bit for bit."""

from __future__ import annotations

import struct

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devscope.lowering.codegen.llvm_text import literal_bits, to_llvm22, to_llvm_ir
from devscope.lowering.interop.bindings import ir

WIDTHS = {"half": ("f16", 16, np.float16), "float": ("f32", 32, np.float32), "double": ("f64", 64, np.float64)}


@pytest.mark.parametrize("type_name", ["half", "float", "double"])
@given(value=st.floats(min_value=0.0, max_value=60000.0))
def test_decimals_round_like_numpy(type_name: str, value: float) -> None:
    _, width, dtype = WIDTHS[type_name]
    unsigned = {16: np.uint16, 32: np.uint32, 64: np.uint64}[width]
    assert literal_bits(f"{value:.17e}", type_name) == int(np.array(value, dtype).view(unsigned))


@pytest.mark.parametrize(
    ("literal", "type_name", "bits"),
    [
        ("+inf", "float", 0x7F800000),
        ("-inf", "double", 0xFFF0000000000000),
        ("+qnan", "half", 0x7E00),
        ("-qnan", "float", 0xFFC00000),
        ("+nan(0x1)", "float", 0x7FC00001),
        ("-snan(0x1)", "float", 0xFF800001),
        ("f0x3F800000", "float", 0x3F800000),
        ("1.000000e-01", "float", 0x3DCCCCCD),
        ("-0.0", "double", 0x8000000000000000),
        ("1.0e-45", "float", 0x00000001),
        ("3.5e38", "float", 0x7F800000),
        ("65520.0", "half", 0x7C00),
        ("1.0", "bfloat", 0x3F80),
    ],
)
def test_literals(literal: str, type_name: str, bits: int) -> None:
    assert literal_bits(literal, type_name) == bits


def test_names_strings_and_comments_are_left_alone() -> None:
    text = 'define float @f1.0e5(float %1.5) { ; float 1.0e-01\n  %a = call float @"float 1.0"(float %1.5)'
    assert to_llvm22(text) == text


@pytest.mark.parametrize("type_name", ["half", "float", "double"])
@given(data=st.data())
def test_constants_survive_from_mlir_to_llvm(type_name: str, data: st.DataObject) -> None:
    """Any bit pattern, NaNs with payloads and denormals included, arrives in LLVM unchanged."""
    mlir_type, width, _ = WIDTHS[type_name]
    bits = data.draw(st.integers(0, 2**width - 1))
    context = ir.Context()
    module = ir.Module.parse(
        f"llvm.func @f() -> {mlir_type} {{\n"
        f"  %0 = llvm.mlir.constant(0x{bits:0{width // 4}X} : {mlir_type}) : {mlir_type}\n"
        f"  llvm.return %0 : {mlir_type}\n}}",
        context,
    )
    text = to_llvm_ir(module, "cpu")
    line = next(line for line in str(llvm.parse_assembly(text)).splitlines() if "ret " in line)
    assert _bits_in(line.split()[-1], type_name) == bits


def _bits_in(literal: str, type_name: str) -> int:
    """Bits of a literal as LLVM 22 prints it."""
    if literal.startswith("0xH"):
        return int(literal[3:], 16)
    if literal.startswith("0x"):
        bits = int(literal[2:], 16)
        if type_name == "double":
            return bits
        if (bits >> 52) & 0x7FF == 0x7FF:  # infinities and NaNs: keep the payload
            return (bits >> 63) << 31 | 0xFF << 23 | (bits >> 29) & 0x7FFFFF
        value = struct.unpack("<d", struct.pack("<Q", bits))[0]
    else:
        value = float(literal)
    packed = struct.pack({"half": "<e", "float": "<f", "double": "<d"}[type_name], value)
    return int.from_bytes(packed, "little")
