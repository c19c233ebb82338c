"""A helper process that turns LLVM IR into code of devices, one forked child per module.

LLVM's SPIR-V backend keeps state between modules: from the second module of a process on it may emit invalid
bytes, which crash OpenCL drivers, and it aborts the process on IR that it cannot handle. Here each module
meets a fresh backend, and an abort becomes an error message. Runs as a script and imports llvmlite only.

Requests on stdin and replies on stdout are pickled: a `device_emitter.Machine` as a dictionary, and LLVM IR text;
code, and a message if there is none.
"""

import os
import pickle
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any, BinaryIO

Reply = tuple[bytes, str]

_LLVM_OPTIONS = (
    # f32 atomics need it; drivers that lack it refuse only modules that use it.
    "--spirv-ext=+SPV_EXT_shader_atomic_float_add",
    # Closed forms of loops' sums, and tables of switches in one integer, are of odd widths: `_check_integers`.
    "--replexitval=never",
    "--switch-to-lookup=false",
    # Translators to SPIR cannot read what becomes of memset.
    "--disable-loop-idiom-all",
)

_SPIRV_OPTIONS = (
    # Made counters of 16 bits, indices of loops lose truncations in the SPIR-V backend. Drivers do it anyway.
    "--disable-lsr",
    # Of a vector whose first 6 elements are used, 6 are loaded: SPIR-V has no vectors of so many.
    "--disable-vector-combine",
)

_PTX_OPTIONS = (
    # Sums without a loop go behind the conditions of their stores, and keep all of their factors in registers.
    "--disable-machine-sink",
)

#: An integer type that the SPIR-V backend makes wider, keeping what overflows; it refuses those above 64 bits.
_ODD_INTEGER = re.compile(r'(?<![\w%@."$-])i(?!(?:1|8|16|32|64)\b)\d\d?\b')

#: What GVN makes of a load of a part of a vector that was stored: shifts of one integer of all of its bits.
_WIDE_INTEGER = re.compile(r'(?<![\w%@."$-])i\d{3,}\b')

#: The SPIR-V backend makes 1.0 of i1 as a signed number, and so does NVPTX's in bf16. LLVM also makes these of
#: wider integers that were an i1.
_SIGNED_BIT = re.compile(r"= sitofp (i1|<\d+ x i1>) (\S+) to (<\d+ x (\w+)>|\w+)")

#: A store of the low bits of a register of 32 bits. Where that is the result of arithmetic on floats, ptxas 13.0
#: converts the number to an integer of so many bits instead.
_NARROW_STORE = re.compile(r"(?P<store>st\S*\.b(?P<bits>8|16)) (?P<place>\t\[[^]]*\]), (?P<value>%r\d+);")


def optimise(llvm: Any, machine: Mapping[str, Any], text: str, level: int = 2) -> tuple[Any, Any]:
    """LLVM's target machine, and a module made of LLVM IR as code is made of; raises RuntimeError.

    ``level``: of LLVM's passes; GVN is among those of level 2, not of level 1.
    """
    target = llvm.Target.from_triple(machine["triple"]).create_target_machine(
        cpu=machine["cpu"], features=machine["features"], opt=2
    )
    module = llvm.parse_assembly(text)
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = False  # work-items are what is vectorised
    tuning.slp_vectorization = False
    passes = llvm.create_pass_builder(target, tuning)
    passes.getModulePassManager().run(module, passes)
    return target, module


def emit(llvm: Any, machine: Mapping[str, Any], text: str) -> bytes:
    """The code of one LLVM IR module; raises RuntimeError with LLVM's message."""
    is_spirv = machine["triple"].startswith("spirv")
    for option in _SPIRV_OPTIONS if is_spirv else _PTX_OPTIONS:
        llvm.set_option("devscope", option)
    target, module = optimise(llvm, machine, text)
    if is_spirv:
        if _WIDE_INTEGER.search(str(module)):
            target, module = optimise(llvm, machine, text, level=1)
        _check_integers(module)
    optimised = str(module)
    exact = _SIGNED_BIT.sub(_select, optimised)
    module = module if exact == optimised else llvm.parse_assembly(exact)
    if not machine["assembly"]:
        return target.emit_object(module)
    return _NARROW_STORE.sub(_store_low_bits, target.emit_assembly(module)).encode()


def _check_integers(module: Any) -> None:
    for function in module.functions:
        if odd := _ODD_INTEGER.search(str(function)):
            raise RuntimeError(f"LLVM made an integer of type {odd[0]} (in function: {function.name})")


def _select(conversion: re.Match[str]) -> str:
    condition, value, type_, element = conversion.groups()
    minus = f"splat ({element} -1.0)" if element else "-1.0"
    return f"= select {condition} {value}, {type_} {minus}, {type_} {'zeroinitializer' if element else '0.0'}"


def _store_low_bits(store: re.Match[str]) -> str:
    register = f"{{ .reg .b16 %low; cvt.u16.u32 %low, {store['value']};"
    return f"{register} {store['store']} {store['place']}, %low; }}"


def _answer(llvm: Any, machine: Mapping[str, Any], text: str) -> Reply:
    with TemporaryFile() as output, TemporaryFile() as errors:
        pid = os.fork()
        if pid == 0:
            os.dup2(errors.fileno(), 2)  # "LLVM ERROR: ..." goes to stderr before an abort
            try:
                reply = emit(llvm, machine, text), ""
            except Exception as error:
                reply = b"", str(error) or type(error).__name__
            pickle.dump(reply, output)
            output.flush()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        for stream in (output, errors):
            stream.seek(0)
        if status == 0:
            return pickle.load(output)
        return b"", errors.read().decode(errors="replace").strip() or f"LLVM died with wait status {status}"


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _LLVM_OPTIONS:
        llvm.set_option("devscope", option)
    with suppress(EOFError):
        while True:
            machine, text = pickle.load(requests)
            pickle.dump(_answer(llvm, machine, text), replies)
            replies.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
