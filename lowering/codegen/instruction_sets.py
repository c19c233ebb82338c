"""Which instructions LLVM uses for a processor.

llvmlite tells the features of this machine alone. Of another one, LLVM's code for small functions says them: each
has what LLVM makes of it only with one set of instructions. What code was compiled for is written down with it, so
that no other machine runs it; the sets are those that the backend for x86-64 selects by itself.
"""

import re
from functools import cache
from typing import Any

_EIGHT, _SIXTEEN, _BYTES = "<8 x float>", "<16 x float>", "<64 x i8>"
_WORDS = "<16 x i32>"
_HALVES = [", ".join(f"i32 {n}" for n in range(first, 32, 2)) for first in range(2)]
_SUM_OF_PRODUCTS = f"""sext <32 x i16> %1 to <32 x i32>
  %x = sext <32 x i16> %2 to <32 x i32>
  %p = mul <32 x i32> %r, %x
  %even = shufflevector <32 x i32> %p, <32 x i32> poison, <16 x i32> <{_HALVES[0]}>
  %odd = shufflevector <32 x i32> %p, <32 x i32> poison, <16 x i32> <{_HALVES[1]}>
  %both = add <16 x i32> %even, %odd
  %s = add <16 x i32> %both, %0"""
#: By LLVM's names: the instruction or register, the type of the result, those of the arguments, and what it is.
_PROBES = {
    "popcnt": ("\tpopcnt", "i64", ["i64"], "call i64 @llvm.ctpop.i64(i64 %0)"),
    "lzcnt": ("\tlzcnt", "i64", ["i64"], "call i64 @llvm.ctlz.i64(i64 %0, i1 true)"),
    "bmi": ("\ttzcnt", "i64", ["i64"], "call i64 @llvm.cttz.i64(i64 %0, i1 true)"),
    "bmi2": ("\tshlx", "i64", ["i64", "i64"], "shl i64 %0, %1"),
    "gfni": (r"\tv?gf2p8", "<16 x i8>", ["<16 x i8>"], "call <16 x i8> @llvm.bitreverse.v16i8(<16 x i8> %0)"),
    "avx": ("%ymm", _EIGHT, [_EIGHT], f"fadd {_EIGHT} %0, %0"),
    "f16c": ("\tvcvtph2ps", _EIGHT, ["<8 x half>"], f"fpext <8 x half> %0 to {_EIGHT}"),
    "fma": ("\tvfmadd", "float", ["float"], "call float @llvm.fma.f32(float %0, float %0, float %0)"),
    "avx2": ("%ymm", "<8 x i32>", ["<8 x i32>"], "add <8 x i32> %0, %0"),
    "avx512f": ("%zmm", _SIXTEEN, [_SIXTEEN], f"fadd {_SIXTEEN} %0, %0"),
    "avx512bw": ("\tvpaddb\t%zmm", _BYTES, [_BYTES], f"add {_BYTES} %0, %0"),
    "avx512dq": ("\tvpmullq", "<8 x i64>", ["<8 x i64>"], "mul <8 x i64> %0, %0"),
    "avx512cd": ("\tvplzcntd", _WORDS, [_WORDS], f"call {_WORDS} @llvm.ctlz.v16i32({_WORDS} %0, i1 false)"),
    "avx512vl": (
        "\tvpmaxsq\t%ymm",
        "<4 x i64>",
        ["<4 x i64>", "<4 x i64>"],
        "call <4 x i64> @llvm.smax.v4i64(<4 x i64> %0, <4 x i64> %1)",
    ),
    "avx512vpopcntdq": ("\tvpopcntd", _WORDS, [_WORDS], f"call {_WORDS} @llvm.ctpop.v16i32({_WORDS} %0)"),
    "avx512bitalg": ("\tvpopcntb", _BYTES, [_BYTES], f"call {_BYTES} @llvm.ctpop.v64i8({_BYTES} %0)"),
    "avx512bf16": ("\tvcvtneps2bf16", "<16 x bfloat>", [_SIXTEEN], f"fptrunc {_SIXTEEN} %0 to <16 x bfloat>"),
    "avx512vnni": ("\tvpdpwssd", _WORDS, [_WORDS, "<32 x i16>", "<32 x i16>"], _SUM_OF_PRODUCTS),
    "avx512fp16": ("\tvaddph", "<32 x half>", ["<32 x half>"], "fadd <32 x half> %0, %0"),
}


#: Without the instructions that convert f32 to bf16: they make subnormal numbers 0.
_EXACT = ",-avx512bf16,-avxneconvert"


def host_machine(cpu: str, features: str, level: int, exact: bool = True) -> tuple[Any, str, str]:
    """LLVM's target machine, and the names of the processor and the features that it is for."""
    import llvmlite.binding as llvm

    _initialize()
    if not cpu:
        # Without the last one, LLVM splits 512-bit vectors on CPUs whose tuning prefers 256 bits.
        features = features or llvm.get_host_cpu_features().flatten() + ",-prefer-256-bit"
        cpu = llvm.get_host_cpu_name()
    if exact and llvm.get_default_triple().startswith("x86_64"):
        features = f"{features}{_EXACT}" if features else _EXACT[1:]
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default"
    )
    return machine, cpu, features


_LONG = 256
"""Accesses of memory without a call between them, from which on LLVM's schedulers ask less about each two."""


@cache
def _initialize() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    # By default 1,000: the arguments of a launch with 100 results take seconds.
    llvm.set_option("devscope", f"-dag-maps-huge-region={_LONG}")


@cache
def instruction_sets(cpu: str, features: str) -> frozenset[str]:
    """What a processor has of `_PROBES`: this one, if ``cpu`` and ``features`` are empty."""
    import llvmlite.binding as llvm

    if not cpu and not features:
        here: dict[str, bool] = llvm.get_host_cpu_features()
        return frozenset(name for name in _PROBES if here.get(name))
    if not llvm.get_default_triple().startswith("x86_64"):
        return frozenset()
    text = ""
    for name, (_, result, arguments, computed) in _PROBES.items():
        last = "%s" if "%s" in computed else "%r"
        text += f"define {result} @has_{name}({', '.join(arguments)}) {{\n"
        text += f"  %r = {computed}\n  ret {result} {last}\n}}\n"
    machine, *_ = host_machine(cpu, features, 1, exact=False)
    assembly = machine.emit_assembly(llvm.parse_assembly(text))
    names_and_code = re.split(r"^has_(\w+):", assembly, flags=re.MULTILINE)[1:]
    return frozenset(
        name
        for name, code in zip(names_and_code[::2], names_and_code[1::2], strict=True)
        if re.search(_PROBES[name][0], code)
    )


def vector_instructions(cpu: str, features: str) -> str:
    """What a processor multiplies and adds vectors with: ``"avx512"``, ``"avx2"`` or ``"other"``."""
    found = instruction_sets(cpu, features)
    if "fma" not in found:
        return "other"
    return "avx512" if "avx512f" in found else "avx2"


def product_instructions(cpu: str, features: str) -> list[str]:
    """Those that add up products of short numbers, of a processor with AVX-512."""
    if vector_instructions(cpu, features) != "avx512":
        return []
    found = instruction_sets(cpu, features)
    return [name for name in ("avx512_bf16", "avx512_vnni") if name.replace("_", "") in found]
