"""Saved executables: reading and writing ``.dsx`` files.

A ``.dsx`` file is a zip archive without compression::

    host.o          the host object
    device1.bin     the first binary of the virtual device in slot 1, if it has one
    device1_1.bin   its second one: a device has a binary per target that its code was compiled for
    backend0.o      an object that a backend compiled, if there are any
    constants.bin   all constants, each at a multiple of 64 bytes
    manifest.json   everything else, and length and SHA-256 of every other member but the last one
    manifest.json.sig   a signature of that, if the program is signed (`signatures`)

``constants.bin`` starts at a multiple of 64 bytes of the file, so that the file can be mapped into memory
and the constants used where they are. Equal programs give equal files.
"""

import errno
import hashlib
import json
import mmap
import os
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from devscope.errors import DevscopeError, ExecutableFormatError
from devscope.runtime.binary_check import problem_of_binary
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.native.abi import ABI_VERSION
from devscope.runtime.paths import checked_path
from devscope.runtime.program import Program, memory_of
from devscope.runtime.program_check import check_program
from devscope.runtime.records import decode, read_json
from devscope.runtime.replaced_file import saved_file
from devscope.runtime.seal import check_seal
from devscope.runtime.signatures import Key, check_signature, sign

FORMAT = "devscope-executable"
FORMAT_VERSION = 5
ALIGNMENT = 64

_MANIFEST = "manifest.json"
_HOST = "host.o"
_SIGNATURE = "manifest.json.sig"
_CONSTANTS = "constants.bin"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ZIP64_EXTRA_BYTES = 20
# An extra field that readers skip; Android's zipalign pads with the same one.
_PADDING_FIELD = 0xD935
_REBUILD = "compile and save the program again"

MOST_FILE_BYTES = 1 << 40
"""Larger files are not read."""

_MOST_MANIFEST_BYTES = 1 << 28
_MOST_MEMBERS = 1 << 14
_HOST_FIELDS = ("triple", "cpu", "features")
PROGRAM_FIELDS = ("entries", "devices", "constants", "arenas", "shared", "report", "objects", "uses")
"""What the manifest says of a program, field by field."""

_OTHER_FIELDS = {"format", "format_version", "native_abi", "devscope_version", "members"}


def devscope_version() -> str:
    """The version, as saved executables record it.

    Asked of the package that this one is part of, which is therefore loaded: an import statement would make
    the compiler, which that package can load, a dependency of the runtime.
    """
    return str(getattr(sys.modules["devscope"], "__version__", "unknown"))


def save_program(program: Program, path: str | os.PathLike[str], sign_with: Key | None = None) -> None:
    """Writes a program to ``path``; a file that is there is replaced in one step or not at all.

    ``sign_with``: the path of a private key. Raises :class:`OptionError` when that is none, :class:`InputError`
    when ``path`` is none, and :class:`ExecutableFormatError` when the file cannot be written or when the parts of
    the program contradict each other.
    """
    with saved_file(Path(checked_path(path, "the file to write"))) as file:
        write_archive(program, file, sign_with)


def write_archive(program: Program, file: BinaryIO, sign_with: Key | None = None) -> None:
    """As :func:`save_program`, into an empty file and with :class:`OSError` left as it is."""
    check_program(program)
    check_seal(program)
    members: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        members[_HOST] = _write_member(archive, _HOST, [program.host_object])
        for number, data in enumerate(program.objects):
            name = _object_name(number)
            members[name] = _write_member(archive, name, [data])
        for device in program.devices:
            for number, binary in enumerate(device.binaries):
                name = _binary_name(device.slot, number)
                members[name] = _write_member(archive, name, [binary])
        members[_CONSTANTS] = _write_member(archive, _CONSTANTS, _constant_chunks(program))
        text = json.dumps(_manifest(program, members), indent=1, default=_plain).encode()
        _write_member(archive, _MANIFEST, [text])
        if sign_with is not None:
            _write_member(archive, _SIGNATURE, [sign(text, sign_with)])


@dataclass
class SavedProgram:
    """A program as it was read, with the text of its manifest, the signature of that, and the size of the file."""

    program: Program
    manifest: bytes
    signature: bytes | None
    bytes: int


def read_program(
    path: str | os.PathLike[str], verify: bool = True, trusted_keys: Sequence[Key] | None = None
) -> Program:
    """Reads a program; its constants stay in the file, mapped into memory.

    ``verify=False`` skips the check sums, which have to read all constants. With ``trusted_keys``, paths of public
    keys, nothing is read but what one of them signed, and check sums are not skipped; :class:`OptionError` for
    what is no key. Raises what `read_saved` does.
    """
    return read_saved(path, verify, trusted_keys).program


def read_saved(
    path: str | os.PathLike[str], verify: bool = True, trusted_keys: Sequence[Key] | None = None
) -> SavedProgram:
    """As :func:`read_program`. Raises :class:`InputError` when ``path`` is none, and
    :class:`ExecutableFormatError` when the file is missing, no regular file, too large, foreign, damaged, of
    another version, or has anything in it that :mod:`.program_check` does not let pass.
    """
    where = checked_path(path, "the file to load")
    try:
        _require_regular(os.stat(where))  # first: to open a pipe would be to wait for its other end
        with open(os.open(where, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return _read_open(file, where, verify, trusted_keys)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        reason = getattr(error, "strerror", None) or str(error)
        raise ExecutableFormatError(f"'{where}' cannot be read: {reason}") from None


def read_open_program(file: BinaryIO) -> Program:
    """As :func:`read_program`, from an open file, with :class:`OSError` left as it is."""
    return _read_open(file, "the file", True, None).program


def _read_open(file: BinaryIO, where: str, verify: bool, trusted_keys: Sequence[Key] | None) -> SavedProgram:
    status = os.fstat(file.fileno())
    _require_regular(status)
    if status.st_size > MOST_FILE_BYTES:
        raise ExecutableFormatError(
            f"'{where}' has {format_bytes(status.st_size)}; programs have at most {format_bytes(MOST_FILE_BYTES)}"
        )
    try:
        return _read(file, where, verify, trusted_keys)
    except (DevscopeError, OSError):
        raise
    except (zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, NotImplementedError, EOFError):
        raise ExecutableFormatError(
            f"'{where}' is not a devscope executable, or it is damaged",
            notes=["devscope executables are written by Executable.save() and 'devscope build'"],
        ) from None
    # Whatever else a stranger's bytes make the readers of zip and JSON raise: RecursionError, OverflowError, ...
    except Exception as error:
        raise _damaged(where, f"its manifest is wrong ({type(error).__name__}: {error})") from None


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


# ------------------------------------------------------------------------------------------------- writing


def _manifest(program: Program, members: dict[str, dict[str, Any]]) -> dict[str, Any]:
    offsets = accumulate((_padded(spec.nbytes) for spec in program.constants), initial=0)
    constants = zip(program.constants, offsets, strict=False)  # the last offset is the end
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "native_abi": ABI_VERSION,
        "devscope_version": devscope_version(),
        "host": {"triple": program.host_triple, "cpu": program.host_cpu, "features": program.host_features},
        "entries": program.entries,
        "devices": [{**vars(device), "binaries": len(device.binaries)} for device in program.devices],
        "constants": [{**vars(spec), "offset": offset} for spec, offset in constants],
        "arenas": program.arenas,
        "shared": program.shared,
        "report": program.report,
        "objects": len(program.objects),
        "uses": program.uses,
        "members": members,
    }


def _plain(part: Any) -> dict[str, Any]:
    """The fields of a dataclass; of nothing else."""
    if not is_dataclass(part):
        raise TypeError(f"{part!r} cannot be saved")
    return vars(part)


def _binary_name(slot: int, number: int) -> str:
    return f"device{slot}_{number}.bin" if number else f"device{slot}.bin"


def _object_name(number: int) -> str:
    return f"backend{number}.o"


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _constant_chunks(program: Program) -> Iterator[bytes | memoryview]:
    for spec, data in zip(program.constants, program.constant_data, strict=True):
        yield memory_of(data).data
        yield bytes(_padded(spec.nbytes) - spec.nbytes)


def _write_member(archive: zipfile.ZipFile, name: str, chunks: Iterable[bytes | memoryview]) -> dict[str, Any]:
    """Adds a member whose data starts at a multiple of 64 bytes; gives its record for the manifest."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    start = archive.start_dir + _LOCAL_HEADER.size + len(name) + _ZIP64_EXTRA_BYTES + 4
    padding = -start % ALIGNMENT
    info.extra = struct.pack("<HH", _PADDING_FIELD, padding) + bytes(padding)
    digest, size = hashlib.sha256(), 0
    # Zip64 always: the length is not known in advance, and the header must not change its size.
    with archive.open(info, "w", force_zip64=True) as member:
        for chunk in chunks:
            member.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return {"sha256": digest.hexdigest(), "bytes": size}


# ------------------------------------------------------------------------------------------------- reading


def _read(file: BinaryIO, where: str, verify: bool, trusted_keys: Sequence[Key] | None) -> SavedProgram:
    members = _members(file, where)
    if _MANIFEST not in members:
        raise ExecutableFormatError(f"'{where}' is a zip archive but not a devscope executable")
    text = bytes(members[_MANIFEST])
    signature = bytes(members.pop(_SIGNATURE)) if _SIGNATURE in members else None
    if trusted_keys is not None:
        check_signature(where, text, signature, trusted_keys)
    manifest = read_json(text)
    _check_versions(where, manifest)
    _check_members(where, manifest, members, verify or trusted_keys is not None)
    program = _program(manifest, members)
    check_program(program)
    check_seal(program)
    _check_binaries(program)
    size = os.fstat(file.fileno()).st_size
    return SavedProgram(program, text, signature, size)


def _check_binaries(program: Program) -> None:
    for device in program.devices:
        for number, binary in enumerate(device.binaries):
            kernels = {kernel.name for kernel in device.kernels if kernel.binary == number}
            if problem := problem_of_binary(device.kind, binary, kernels):
                raise ExecutableFormatError(f"binary {number} of '{device.name}' is {problem}", notes=[_REBUILD])


def _members(file: BinaryIO, where: str) -> dict[str, memoryview]:
    """The members of an archive, in place: stored as they are, under different names, none inside another one."""
    with zipfile.ZipFile(file) as archive:
        infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
        if len(infos) > _MOST_MEMBERS or len({info.filename for info in infos}) < len(infos):
            raise zipfile.BadZipFile
        image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        members: dict[str, memoryview] = {}
        end = 0
        for info in infos:
            start, stop = _extent(info, image)
            if info.header_offset < end or stop > archive.start_dir:
                raise zipfile.BadZipFile
            members[info.filename] = memoryview(image)[start:stop]
            end = stop
    manifest = members.get(_MANIFEST, memoryview(b""))
    if len(manifest) > _MOST_MANIFEST_BYTES:
        raise zipfile.BadZipFile
    if _MANIFEST in members and zlib.crc32(manifest) != archive.getinfo(_MANIFEST).CRC:
        raise _damaged(where, f"the contents of '{_MANIFEST}' are not what was written")
    return members


def _extent(info: zipfile.ZipInfo, image: mmap.mmap) -> tuple[int, int]:
    """Where a stored member begins and ends; what its own header and the directory say of it must agree."""
    fields = _LOCAL_HEADER.unpack_from(image, info.header_offset)
    name_at = info.header_offset + _LOCAL_HEADER.size
    name_end = name_at + fields[-2]
    start = name_end + fields[-1]
    plain = (
        info.compress_type == zipfile.ZIP_STORED
        and info.compress_size == info.file_size
        and not info.flag_bits & 1
    )
    if fields[0] != b"PK\3\4" or not plain or image[name_at:name_end] != info.orig_filename.encode():
        raise zipfile.BadZipFile
    return start, start + info.file_size


def _check_members(where: str, manifest: dict[str, Any], members: dict[str, memoryview], verify: bool) -> None:
    """The archive has the members that the manifest has records of, as they were written, and no others."""
    records: dict[str, Any] = manifest["members"]
    for name, record in records.items():
        data = members.get(name)
        if data is None:
            raise _damaged(where, f"it has no '{name}'")
        if len(data) != record["bytes"] or (verify and hashlib.sha256(data).hexdigest() != record["sha256"]):
            raise _damaged(where, f"the contents of '{name}' are not what was written")
    if unknown := sorted(members.keys() - records.keys() - {_MANIFEST}):
        raise _damaged(where, f"it has the unknown member '{unknown[0]}'")


def _check_versions(where: str, manifest: dict[str, Any]) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ExecutableFormatError(f"'{where}' is a zip archive but not a devscope executable")
    found = manifest.get("format_version"), manifest.get("native_abi")
    if found != (FORMAT_VERSION, ABI_VERSION):
        raise ExecutableFormatError(
            f"'{where}' was written by devscope {manifest.get('devscope_version')} in format {found[0]} "
            f"(native interface {found[1]}); this devscope {devscope_version()} reads format {FORMAT_VERSION} "
            f"(native interface {ABI_VERSION})",
            notes=[_REBUILD],
        )
    if not isinstance(manifest.get("devscope_version"), str):
        raise _damaged(where, "it does not say by which devscope it was written")


def _damaged(where: str, what: str) -> ExecutableFormatError:
    return ExecutableFormatError(f"'{where}' is damaged: {what}", notes=[_REBUILD])


def _program(manifest: dict[str, Any], members: dict[str, memoryview]) -> Program:
    """The program, whose parts are of the right types; what they say is left to :func:`check_program`.

    Raises :class:`TypeError`, :class:`ValueError` or :class:`KeyError`.
    """
    used = {_HOST, _CONSTANTS, _MANIFEST}
    count = manifest["objects"]
    if type(count) is not int or not 0 <= count <= _MOST_MEMBERS:
        raise ValueError(f"it has {count} objects of backends")
    names = [_object_name(number) for number in range(count)]
    manifest["objects"] = [bytes(members[name]) for name in names]
    used.update(names)
    for device in manifest["devices"]:
        count = device["binaries"]
        if type(count) is not int or not 0 <= count <= _MOST_MEMBERS:
            raise ValueError(f"a device has {count} binaries")
        names = [_binary_name(device["slot"], number) for number in range(count)]
        device["binaries"] = [bytes(members[name]) for name in names]
        used.update(names)
    if unused := sorted(members.keys() - used):
        raise ValueError(f"the member '{unused[0]}' belongs to nothing")
    decode(dict[str, dict[str, int]], manifest["report"].get("memory", {}))
    decode(list[str], manifest["report"].get("plan", {}).get("warnings", []))
    decode(list[str], manifest["report"].get("closed", []))
    starts = [record.pop("offset") for record in manifest["constants"]]
    host = decode(dict[str, str], manifest.pop("host"))
    data = members[_CONSTANTS]
    fields = {name: manifest.pop(name) for name in PROGRAM_FIELDS}
    if unknown := sorted(manifest.keys() - _OTHER_FIELDS):
        raise ValueError(f"it has the unknown field '{unknown[0]}'")
    program = decode(
        Program,
        {"host_object": bytes(members[_HOST]), **{f"host_{key}": host.pop(key) for key in _HOST_FIELDS}, **fields},
    )
    if host:
        raise ValueError(f"the unknown fields {sorted(host)}")
    program.constant_data = _constant_data(program, starts, data)
    return program


def _constant_data(program: Program, starts: list[Any], data: memoryview) -> list[memoryview]:
    found: list[memoryview] = []
    end = 0
    for index, (spec, start) in enumerate(zip(program.constants, starts, strict=True)):
        if type(start) is not int or start % ALIGNMENT or start < end:
            raise ValueError(f"constant {index} begins at {start}")
        piece = data[start : start + spec.nbytes]
        if len(piece) and memory_of(piece).ctypes.data % ALIGNMENT:
            raise ValueError(f"constant {index} is not aligned")
        found.append(piece)
        end = start + len(piece)
    return found
