"""Programs of strangers: what is looked at before anything is loaded, signatures, and `devscope inspect`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handmade import HOST_API, host_object, opencl, program, spirv

import devscope
from devscope.cli.main import main
from devscope.errors import DeviceError, ExecutableFormatError, InputError, OptionError
from devscope.runtime import file_format
from devscope.runtime.binary_check import problem_of_binary
from devscope.runtime.drivers.build_apart import build_apart
from devscope.runtime.executable import Executable
from devscope.runtime.file_format import read_program, save_program
from devscope.runtime.object_file import check_object, is_allowed, read_symbols
from devscope.runtime.program import ArenaSpec, Program
from devscope.runtime.seal import SEAL_IR, seal

SOURCE = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x16xf32>) -> (tensor<?x8xf32>, tensor<4xf64>) {{
  %w = arith.constant dense<[{numbers}]> : tensor<16x8xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = linalg.matmul {{device.scope = #dev}} ins(%x, %w : tensor<?x16xf32>, tensor<16x8xf32>)
                                           outs(%i : tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = arith.remf %0, %0 : tensor<?x8xf32>
  %2 = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
  %3 = math.exp %2 {{device.scope = #dev}} : tensor<4xf64>
  return %1, %3 : tensor<?x8xf32>, tensor<4xf64>
}}
"""
NUMBERS = ", ".join(f"[{', '.join(f'{8 * row + column}.0e-3' for column in range(8))}]" for row in range(16))


@pytest.fixture(scope="module")
def built(device: Any) -> Program:
    return devscope.build(SOURCE.format(numbers=NUMBERS))


@pytest.fixture
def saved(built: Program, tmp_path: Path) -> Path:
    path = tmp_path / "good.dsx"
    save_program(built, path)
    return path


@pytest.mark.parametrize(
    "text",
    [
        '{"format":"devscope-executable","x":' + "[" * 200_000 + "]" * 200_000 + "}",
        '{"format":"devscope-executable","format_version":' + "9" * 10_000 + "}",
        '{"format":"devscope-executable","format":"devscope-executable"}',
        '{"format":"devscope-executable","x":NaN}',
        *("{", "[]", "null", "\ufeff{}", "\0", ""),
    ],
    ids=range(10),
)
def test_odd_manifests(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.dsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", text)
    with pytest.raises(ExecutableFormatError):
        read_program(path)


def test_only_regular_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path) -> None:
    pipe = tmp_path / "pipe.dsx"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(ExecutableFormatError, match="cannot be read: it is not a regular file"):
            devscope.load(path)
    assert main(["run", str(pipe)]) == main(["inspect", str(pipe)]) == 1
    with pytest.raises(InputError, match="no path"):
        devscope.load("a\0b.dsx")
    monkeypatch.setattr(file_format, "MOST_FILE_BYTES", 1000)
    with pytest.raises(ExecutableFormatError, match=r"programs have at most 1000 bytes"):
        devscope.load(saved)


# The object of the host.


@pytest.mark.parametrize("name", ["system", "execve", "dlopen", "mmap", "malloc", "printf", "PyRun_SimpleString"])
def test_programs_cannot_call_what_they_like(name: str) -> None:
    ir = f"declare void @{name}()\ndefine void @_mlir_ciface_devscope_entry_f() {{ call void @{name}() ret void }}"
    with pytest.raises(ExecutableFormatError, match=f"functions that programs may not call: {name}\n"):
        check_object(host_object(ir))


def test_what_programs_may_call() -> None:
    names = "memcpy memmove bcmp tanhf fmod roundeven __divti3 __extendhfsf2 __truncdfhf2 __muldc3 devscope_launch"
    assert [name for name in names.split() if not is_allowed(name)] == []


@pytest.mark.parametrize("symbol", ["system", "devscope_close", "devscope_call_gone", "free", ""])
def test_entries_are_functions_of_the_program(built: Program, symbol: str) -> None:
    broken = Program(**{**vars(built), "entries": {"main": devscope.runtime.program.Entry(symbol, [], [])}})
    with pytest.raises(ExecutableFormatError, match=r"which is that of no entry|does not define"):
        Executable(broken)


@pytest.mark.parametrize(
    ("ir", "message"),
    [
        (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } "
            "{ i32 1, ptr @f, ptr null }]\ndefine internal void @f() { ret void }",
            "of a kind that programs do not have",
        ),
        (
            "@i = ifunc i32 (), ptr @r\ndefine internal ptr @r() { ret ptr null }",
            "a symbol of type 10, which programs do not have",
        ),
        ("@t = thread_local global i32 1", "programs do not have|which programs"),
        ("define void @devscope_free(i64 %s, ptr %p) { ret void }", "what belongs to the runtime: devscope_free"),
        ("define ptr @malloc(i64 %s) { ret ptr null }", "what belongs to the runtime: malloc"),
    ],
    ids=["constructor", "ifunc", "thread-local", "runtime", "C library"],
)
def test_nothing_runs_when_a_program_is_loaded(ir: str, message: str) -> None:
    api = "" if "devscope_free" in ir else HOST_API
    with pytest.raises(ExecutableFormatError, match=message):
        check_object(plain_object(api + ir))


def plain_object(ir: str) -> bytes:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
    return machine.emit_object(llvm.parse_assembly(ir))


def test_damaged_objects_are_errors(built: Program) -> None:
    data = built.host_object
    for at in range(0, len(data), 7):
        for value in (0, 0xFF, data[at] ^ 1):
            try:
                check_object(data[:at] + bytes([value]) + data[at + 1 :])
            except ExecutableFormatError:
                continue


# Tables.


def test_tables_that_the_code_was_not_compiled_for(built: Program, tmp_path: Path) -> None:
    for changed in (
        {"constants": built.constants[:0], "constant_data": []},
        {"arenas": [ArenaSpec(0, 64, [[0, 64]], {"main": 64})]},
        {"host_triple": built.host_triple + "-other"},
    ):
        with pytest.raises(ExecutableFormatError, match="parts do not belong together"):
            save_program(Program(**{**vars(built), **changed}), tmp_path / "x.dsx")


@pytest.mark.parametrize(
    "arena",
    [
        ArenaSpec(0, 0),
        ArenaSpec(0, -1),
        ArenaSpec(0, 48),
        ArenaSpec(0, 2**62),
        ArenaSpec(0, 64, [], {"gone": 64}),
        ArenaSpec(0, 64, [], {"main": 2**62}),
        ArenaSpec(0, 64, [[0, -5]], {"main": 64}),
        ArenaSpec(1, 64, [[-1, 2**62]], {"main": 64}),
        ArenaSpec(9, 64),
    ],
)
def test_arenas_that_make_no_sense(built: Program, arena: ArenaSpec) -> None:
    with pytest.raises(ExecutableFormatError, match="the arena of slot"):
        Executable(Program(**{**vars(built), "arenas": [arena]}))


# Device binaries.


def test_structure_of_binaries() -> None:
    module = spirv()
    assert problem_of_binary("opencl", module, ["add", "pick"]) is None
    assert problem_of_binary("opencl", module, ["gone"]) == "without the kernel 'gone', which the program has"
    assert "no end" in str(problem_of_binary("opencl", module[:-4]))
    assert "cut off" in str(problem_of_binary("opencl", module[:-4] + b"\x38\x00\x09\x00"))
    ptx = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) {\n ret;\n}\n"
    assert problem_of_binary("cuda", f"//\n{ptx}\0".encode(), ["k"]) is None
    assert problem_of_binary("cuda", ptx.encode(), ["l"]) == "without the kernel 'l', which the program has"
    for broken in (ptx[:-2], ptx[3:], f"{ptx}\0x", f"{ptx}ü"):
        assert "not PTX" in str(problem_of_binary("cuda", broken.encode()))


def test_invalid_spirv_reaches_no_driver(device: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The module is whole, but an id in it is used that nothing defines."""
    module = bytearray(spirv())
    at = module.rindex(b"\x3e\x00")  # OpStore: the pointer is the word behind
    module[at + 4 - (at % 4) : at + 8 - (at % 4)] = (2**20 + 5).to_bytes(4, "little")
    module[12:16] = (2**21).to_bytes(4, "little")
    save_program(seal(program("", {}, [opencl(1)])), tmp_path / "good.dsx")
    broken = program("", {}, [opencl(1)])
    broken.devices[0].binaries = [bytes(module)]
    save_program(seal(broken), tmp_path / "broken.dsx")
    with pytest.raises(DeviceError, match="the device binary is not valid SPIR-V: line"):
        Executable.load(tmp_path / "broken.dsx", cache=None)

    def fail(*_: object) -> None:
        raise AssertionError("built in this process")

    with monkeypatch.context() as patch:
        patch.setattr(type(device), "build", fail)
        with pytest.raises(AssertionError, match="built in this process"):  # what it compiled, or trusts
            Executable(read_program(tmp_path / "good.dsx"), cache=None)
        assert build_apart("label", device.name, "opencl", spirv())
    with Executable.load(tmp_path / "good.dsx", cache=None) as exe:
        assert exe.entries == {}


DIES = "import os, sys; sys.stdin.buffer.read(); os.kill(os.getpid(), 11)"


def test_a_driver_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{DIES}"\n')
    fake.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(DeviceError, match=r"^error: label: the driver does not survive .* \(signal 11\)"):
        build_apart("label", "opencl:0", "opencl", spirv())


# Signatures.


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of keys: ``a`` in OpenSSH's format, ``b`` in PEM, ``rsa``, and ``locked`` with a password."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    folder = tmp_path_factory.mktemp("keys")
    ssh, pem = form.PrivateFormat.OpenSSH, form.PrivateFormat.PKCS8
    locked = form.BestAvailableEncryption(b"word")
    for name, key, private, encryption in (
        ("a", ed25519.Ed25519PrivateKey.generate(), ssh, form.NoEncryption()),
        ("b", ed25519.Ed25519PrivateKey.generate(), pem, form.NoEncryption()),
        ("other", ec.generate_private_key(ec.SECP256R1()), ssh, form.NoEncryption()),
        ("locked", ed25519.Ed25519PrivateKey.generate(), pem, locked),
    ):
        (folder / name).write_bytes(key.private_bytes(form.Encoding.PEM, private, encryption))
        is_pem = private is pem
        public = (form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo) if is_pem else SSH_PUBLIC
        (folder / f"{name}.pub").write_bytes(key.public_key().public_bytes(*public))
    return folder


def _ssh_public() -> tuple[Any, Any]:
    from cryptography.hazmat.primitives import serialization as form

    return form.Encoding.OpenSSH, form.PublicFormat.OpenSSH


SSH_PUBLIC = _ssh_public()


@pytest.mark.parametrize("name", ["a", "b"])
def test_signed_programs(built: Program, keys: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "signed.dsx"
    save_program(built, path, keys / name)
    other = {"a": "b", "b": "a"}[name]
    read_program(path)
    read_program(path, trusted_keys=[keys / f"{other}.pub", str(keys / f"{name}.pub")])
    with pytest.raises(ExecutableFormatError, match=r"signed by SHA256:\S+, which is no trusted key"):
        read_program(path, trusted_keys=[keys / f"{other}.pub"])
    with pytest.raises(ExecutableFormatError, match="no trusted key"):
        read_program(path, trusted_keys=[])
    with devscope.load(path, trusted_keys=[keys / f"{name}.pub"]) as exe:
        assert exe(np.ones((2, 16), np.float32))[0].shape == (2, 8)


def test_what_is_not_signed_is_refused(saved: Path, keys: Path, tmp_path: Path) -> None:
    with pytest.raises(ExecutableFormatError, match="is not signed, and only signed programs are trusted"):
        devscope.load(saved, trusted_keys=[keys / "a.pub"])
    signed, forged = tmp_path / "signed.dsx", tmp_path / "forged.dsx"
    save_program(read_program(saved), signed, keys / "a")
    with zipfile.ZipFile(signed) as archive:
        signature = archive.read("manifest.json.sig")
    for text, message in (
        (signature, "the signature is not one of this program"),
        (signature.replace(b"A", b"B", 1), "the signature is"),
        (signature[:80], "the signature is damaged"),
        (b"", "the signature is damaged"),
        (b"\xff" * 100, "the signature is damaged"),
    ):
        changed = read_program(saved)
        changed.report["options"] = {}
        save_program(changed, forged)
        with zipfile.ZipFile(forged, "a") as archive:
            file_format._write_member(archive, "manifest.json.sig", [text])  # pyright: ignore[reportPrivateUsage]
        read_program(forged)
        with pytest.raises(ExecutableFormatError, match=message):
            read_program(forged, trusted_keys=[keys / "a.pub"])


@pytest.mark.parametrize("name", ["other", "locked", "a.pub", "gone", "."])
def test_keys_that_are_none(built: Program, keys: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="key"):
        save_program(built, tmp_path / "x.dsx", keys / name)
    assert not (tmp_path / "x.dsx").exists()
    if name in ("other", "gone", "."):
        public = keys / (f"{name}.pub" if name == "other" else name)
        save_program(built, tmp_path / "x.dsx")
        with pytest.raises(OptionError, match="key"):
            read_program(tmp_path / "x.dsx", trusted_keys=[public])


def test_openssh_agrees(built: Program, keys: Path, tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("this machine has no OpenSSH")
    path = tmp_path / "signed.dsx"
    save_program(built, path, keys / "a")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    command = ["ssh-keygen", "-Y", "check-novalidate", "-n", "devscope-program", "-s", "manifest.json.sig"]
    manifest = (tmp_path / "manifest.json").read_bytes()
    process = subprocess.run(command, input=manifest, cwd=tmp_path, capture_output=True, check=False)
    assert process.returncode == 0, process.stderr
    assert b"Good" in process.stdout


# devscope inspect.


def test_inspect(
    built: Program, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "signed.dsx"
    save_program(built, path, keys / "a")
    monkeypatch.setattr("devscope.runtime.linker.HostLibrary.__init__", None)  # nothing is loaded
    monkeypatch.setattr("devscope.runtime.drivers.driver", None)
    assert main(["inspect", str(path)]) == 0
    text = capsys.readouterr().out
    for part in (
        r"signature +valid, by SHA256:",
        r"host\.o +[\d,]+ +[0-9a-f]{64}",
        r"calls of C +fmodf",
        r"main +argument 0 +\?x16xf32 +x",
        r"main +result 1 +4xf64",
        r"1 +opencl:0 +opencl +SPIR-V 1\.\d, [\d,]+ bytes +\w+kernel\(.*buffer",
        r"0 +4xf64 +32",
        r"1 +1x256xf32 +1,024",  # the matrix, packed for its kernel
        r"storage +planned",
    ):
        assert re.search(part, text), part
    assert main(["inspect", str(path), "--json", "--trusted-key", str(keys / "a.pub")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["entries"][0]["arguments"][0]["shape"] == [None, 16]
    assert {member["name"] for member in found["members"]} == {"host.o", "device1.bin", "constants.bin"}
    assert main(["inspect", str(path), "--trusted-key", str(keys / "b.pub")]) == 1
    assert "no trusted key" in capsys.readouterr().err


def test_inspecting_opens_no_driver(saved: Path) -> None:
    code = (
        "import sys; from devscope.cli.main import main; assert main(sys.argv[1:]) == 0; "
        "heavy = {'llvmlite', 'torch_mlir', 'xdsl', 'devscope.runtime.drivers.opencl'} & sys.modules.keys(); "
        "assert not heavy, heavy; assert 'OpenCL' not in open('/proc/self/maps').read()"
    )
    command = [sys.executable, "-c", code, "inspect", str(saved)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_signing_on_the_command_line(keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "m.mlir", tmp_path / "m.dsx"
    source.write_text("func.func @main() -> i32 {\n  %0 = arith.constant 7 : i32\n  return %0 : i32\n}\n")
    assert main(["build", str(source), "-o", str(output), "--sign-with", str(keys / "a")]) == 0
    assert main(["run", str(output), "--trusted-key", str(keys / "a.pub")]) == 0
    assert "7" in capsys.readouterr().out
    assert main(["run", str(output), "--trusted-key", str(keys / "b.pub")]) == 1
    assert main(["run", str(source), "--trusted-key", str(keys / "b.pub")]) == 2
    assert "--trusted-key goes with a .dsx file" in capsys.readouterr().err


def test_data_that_looks_like_the_place_of_the_seal(tmp_path: Path) -> None:
    """The place is that of the symbol: data of a program stays as it is."""
    blank = SEAL_IR.partition("constant ")[2]
    data = f"@before = constant {blank}@after = constant {blank}"
    made = program(f"{data}\ndefine ptr @used() {{ ret ptr @before }}", {})
    places = read_symbols(made.host_object).places
    found = {name: made.host_object[at : at + 40] for name, at in places.items() if name in ("before", "after")}
    assert set(found.values()) == {b"devscope-seal:1\0" + bytes(24)}
    save_program(made, tmp_path / "a.dsx")
    assert read_program(tmp_path / "a.dsx").host_object == made.host_object
