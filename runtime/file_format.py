"""Saved executables: reading and writing ``.dsx`` files.

A ``.dsx`` file is a zip archive without compression::

    host.o          the host object
    device1.bin     the first binary of the virtual device in slot 1, if it has one
    device1_1.bin   its second one: a device has a binary per target that its code was compiled for
    constants.bin   all constants, each at a multiple of 64 bytes
    manifest.json   everything else, and length and SHA-256 of every other member

``constants.bin`` starts at a multiple of 64 bytes of the file, so that the file can be mapped into memory
and the constants used where they are. Equal programs give equal files.
"""

import hashlib
import json
import mmap
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from devscope.errors import ExecutableFormatError
from devscope.runtime.native.abi import ABI_VERSION
from devscope.runtime.program import Program, memory_of

FORMAT = "devscope-executable"
FORMAT_VERSION = 3
ALIGNMENT = 64

_MANIFEST = "manifest.json"
_HOST = "host.o"
_CONSTANTS = "constants.bin"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ZIP64_EXTRA_BYTES = 20
# An extra field that readers skip; Android's zipalign pads with the same one.
_PADDING_FIELD = 0xD935
_REBUILD = "compile and save the program again"


def devscope_version() -> str:
    """The version, as saved executables record it.

    Asked of the package that this one is part of, which is therefore loaded: an import statement would make
    the compiler, which that package can load, a dependency of the runtime.
    """
    return str(getattr(sys.modules["devscope"], "__version__", "unknown"))


def save_program(program: Program, path: str | os.PathLike[str]) -> None:
    """Writes a program to ``path``; a file that is there is replaced in one step or not at all.

    Raises :class:`ExecutableFormatError` when the file cannot be written or when the parts of the program
    contradict each other.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise ExecutableFormatError(f"'{target}' cannot be written: it is not a regular file")
    temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    try:
        write_archive(program, temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise ExecutableFormatError(
            f"'{target}' cannot be written: {error.strerror or error}",
            notes=["choose a directory that exists, with room and the right to write"],
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_archive(program: Program, path: Path) -> None:
    """As :func:`save_program`, straight into the file and with :class:`OSError` left as it is."""
    program.check()
    members: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        members[_HOST] = _write_member(archive, _HOST, [program.host_object])
        for device in program.devices:
            for number, binary in enumerate(device.binaries):
                name = _binary_name(device.slot, number)
                members[name] = _write_member(archive, name, [binary])
        members[_CONSTANTS] = _write_member(archive, _CONSTANTS, _constant_chunks(program))
        text = json.dumps(_manifest(program, members), indent=1)
        _write_member(archive, _MANIFEST, [text.encode()])


def read_program(path: str | os.PathLike[str], verify: bool = True) -> Program:
    """Reads a program; its constants stay in the file, mapped into memory.

    ``verify=False`` skips the check sums, which have to read all constants. Raises
    :class:`ExecutableFormatError` when the file is missing, foreign, damaged, or of another version.
    """
    where = os.fspath(path)
    try:
        return _read(where, verify)
    except OSError as error:
        raise ExecutableFormatError(f"'{where}' cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, struct.error):
        raise ExecutableFormatError(
            f"'{where}' is not a devscope executable, or it is damaged",
            notes=["devscope executables are written by Executable.save() and 'devscope build'"],
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise _damaged(where, f"its manifest is wrong ({type(error).__name__}: {error})") from None


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
        "entries": {name: asdict(entry) for name, entry in program.entries.items()},
        "devices": [{**asdict(device), "binaries": len(device.binaries)} for device in program.devices],
        "constants": [{**asdict(spec), "offset": offset} for spec, offset in constants],
        "arenas": [asdict(arena) for arena in program.arenas],
        "shared": program.shared,
        "report": program.report,
        "members": members,
    }


def _binary_name(slot: int, number: int) -> str:
    return f"device{slot}_{number}.bin" if number else f"device{slot}.bin"


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


def _read(where: str, verify: bool) -> Program:
    with zipfile.ZipFile(where) as archive, open(where, "rb") as file:
        image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if _MANIFEST not in archive.namelist():
            raise ExecutableFormatError(f"'{where}' is a zip archive but not a devscope executable")
        members = {info.filename: _member(info, image) for info in archive.infolist()}
        if zlib.crc32(members[_MANIFEST]) != archive.getinfo(_MANIFEST).CRC:
            raise _damaged(where, f"the contents of '{_MANIFEST}' are not what was written")
    manifest = json.loads(bytes(members[_MANIFEST]))
    _check_versions(where, manifest)
    for name, record in manifest["members"].items():
        data = members.get(name)
        if data is None:
            raise _damaged(where, f"it has no '{name}'")
        if len(data) != record["bytes"] or (verify and hashlib.sha256(data).hexdigest() != record["sha256"]):
            raise _damaged(where, f"the contents of '{name}' are not what was written")
    program = _program(manifest, members)
    program.check()
    return program


def _member(info: zipfile.ZipInfo, image: mmap.mmap) -> memoryview:
    """The bytes of a stored member, in place."""
    fields = _LOCAL_HEADER.unpack_from(image, info.header_offset)
    start = info.header_offset + _LOCAL_HEADER.size + fields[-2] + fields[-1]
    end = start + info.file_size
    if fields[0] != b"PK\3\4" or info.compress_type != zipfile.ZIP_STORED or end > len(image):
        raise zipfile.BadZipFile
    return memoryview(image)[start:end]


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


def _damaged(where: str, what: str) -> ExecutableFormatError:
    return ExecutableFormatError(f"'{where}' is damaged: {what}", notes=[_REBUILD])


def _program(manifest: dict[str, Any], members: dict[str, memoryview]) -> Program:
    """Parts that contradict each other are left to :meth:`Program.check`, as wrong lengths of constants are."""
    for device in manifest["devices"]:
        names = [_binary_name(device["slot"], number) for number in range(device["binaries"])]
        device["binaries"] = [bytes(members[name]) for name in names]
    starts = [record.pop("offset") for record in manifest["constants"]]
    host = _decode(dict[str, str], manifest["host"])
    parts = {name: _decode(type_, manifest[name]) for name, type_ in _types(Program).items() if name in manifest}
    program = Program(
        host_object=bytes(members[_HOST]), **{f"host_{name}": text for name, text in host.items()}, **parts
    )
    data = members[_CONSTANTS]
    program.constant_data = [
        data[start : start + spec.nbytes] for start, spec in zip(starts, program.constants, strict=True)
    ]
    return program


_types = cache(get_type_hints)


def _decode(type_: Any, value: Any) -> Any:
    """What JSON made of a value of this type, which may be a dataclass. Raises :class:`TypeError` for others."""
    if type(value) is type_:  # most of them: numbers and text
        return value
    if hasattr(type_, "__dataclass_fields__"):
        return type_(**{name: _decode(_types(type_)[name], item) for name, item in value.items()})
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is list:
        return [_decode(arguments[0], item) for item in value]
    if origin is tuple:
        return tuple(_decode(part, item) for part, item in zip(arguments, value, strict=True))
    if origin is dict:
        return {key: _decode(arguments[1], item) for key, item in value.items()}
    if type_ is not Any and not isinstance(value, type_):
        raise TypeError(f"{value!r} is not of type {type_}")
    return value
