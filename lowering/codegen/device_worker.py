"""A helper process that turns LLVM IR into code of devices, one forked child per module.

LLVM's SPIR-V backend keeps state between modules: from the second module of a process on it may emit invalid
bytes, which crash OpenCL drivers, and it aborts the process on IR that it cannot handle. Here each module
meets a fresh backend, and an abort becomes an error message. Runs as a script and imports llvmlite only.

Protocol on stdin/stdout, little endian: request = two u64 lengths, a `device_emitter.Machine` as JSON, LLVM IR
text; reply = u64 length, one status byte (0 ok, 1 error), code or a message.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

_REQUEST = struct.Struct("<QQ")
_REPLY = struct.Struct("<Q")
#: f32 atomics need this SPIR-V extension; drivers that lack it refuse only modules that use it.
_LLVM_OPTIONS = ("--spirv-ext=+SPV_EXT_shader_atomic_float_add",)


def emit(llvm: Any, machine: Mapping[str, Any], text: str) -> bytes:
    """The code of one LLVM IR module; raises RuntimeError with LLVM's message."""
    target = llvm.Target.from_triple(machine["triple"]).create_target_machine(
        cpu=machine["cpu"], features=machine["features"], opt=2
    )
    module = llvm.parse_assembly(text)
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = False  # work-items are what is vectorised
    tuning.slp_vectorization = False
    passes = llvm.create_pass_builder(target, tuning)
    passes.getModulePassManager().run(module, passes)
    return target.emit_assembly(module).encode() if machine["assembly"] else target.emit_object(module)


def _child(llvm: Any, machine: Mapping[str, Any], text: str, output: int) -> None:
    try:
        reply = b"\0" + emit(llvm, machine, text)
    except Exception as error:
        reply = b"\1" + str(error).encode()
    with os.fdopen(output, "wb") as stream:
        stream.write(reply)
    os._exit(0)


def _answer(llvm: Any, machine: Mapping[str, Any], text: str) -> bytes:
    read_end, write_end = os.pipe()
    errors_read, errors_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        os.dup2(errors_write, 2)  # "LLVM ERROR: ..." goes to stderr before an abort
        _child(llvm, machine, text, write_end)
    os.close(write_end)
    os.close(errors_write)
    with os.fdopen(read_end, "rb") as stream:
        reply = stream.read()
    with os.fdopen(errors_read, "rb") as stream:
        errors = stream.read().decode(errors="replace").strip()
    _, status = os.waitpid(pid, 0)
    if reply:
        return reply
    return b"\1" + (errors or f"LLVM died with wait status {status}").encode()


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _LLVM_OPTIONS:
        llvm.set_option("devscope", option)
    while len(header := requests.read(_REQUEST.size)) == _REQUEST.size:
        description, text = (requests.read(length) for length in _REQUEST.unpack(header))
        reply = _answer(llvm, json.loads(description), text.decode())
        replies.write(_REPLY.pack(len(reply)) + reply)
        replies.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
