"""What processors have, and that code for more than this one has is not run."""

import llvmlite.binding as llvm
import pytest

import devscope
from devscope.errors import ExecutableFormatError
from devscope.lowering.codegen.instruction_sets import (
    instruction_sets,
    product_instructions,
    vector_instructions,
)

V3 = {"popcnt", "lzcnt", "bmi", "bmi2", "avx", "f16c", "fma", "avx2"}
V4 = V3 | {"avx512f", "avx512bw", "avx512dq", "avx512cd", "avx512vl"}
x86 = pytest.mark.skipif(not llvm.get_default_triple().startswith("x86_64"), reason="names of x86-64")


@x86
@pytest.mark.parametrize(
    ("cpu", "features", "sets", "vectors", "products"),
    [
        ("x86-64", "", set(), "other", []),
        ("x86-64-v3", "", V3, "avx2", []),
        ("x86-64-v3", "-fma", V3 - {"fma"}, "other", []),
        ("x86-64-v4", "", V4, "avx512", []),
        ("cascadelake", "", V4 | {"avx512vnni"}, "avx512", ["avx512_vnni"]),
        (
            "sapphirerapids",
            "",
            V4 | {f"avx512{name}" for name in ("vpopcntdq", "bitalg", "bf16", "vnni", "fp16")} | {"gfni"},
            "avx512",
            ["avx512_bf16", "avx512_vnni"],
        ),
    ],
)
def test_sets(cpu: str, features: str, sets: set[str], vectors: str, products: list[str]) -> None:
    assert instruction_sets(cpu, features) == sets
    assert vector_instructions(cpu, features) == vectors
    assert product_instructions(cpu, features) == products


@x86
def test_this_machine_has_what_its_name_says() -> None:
    here = instruction_sets("", "")
    named = instruction_sets(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    assert named == here


@x86
def test_code_for_another_processor_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    device.target = #device.target<"cpu", {cpu = "x86-64-v3"}>} {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
    here = {**llvm.get_host_cpu_features(), "avx2": False}
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: here)
    with pytest.raises(ExecutableFormatError, match=r"a CPU \(x86-64-v3\) with features .* lacks: avx2\n"):
        devscope.compile(text, cache=False)
