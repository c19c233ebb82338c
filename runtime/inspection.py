"""What a saved program consists of, as plain data. It passes the checks of loading, but nothing is loaded."""

import os
from collections.abc import Sequence
from typing import Any, TypedDict

from devscope.errors import ExecutableFormatError, OptionError
from devscope.runtime.binary_check import spirv_version
from devscope.runtime.file_format import SavedProgram, read_saved
from devscope.runtime.object_file import HostSymbols, check_objects, machine_of, runtime_symbols
from devscope.runtime.program import DYNAMIC_LOCAL_SIZE, DeviceSpec, Program, TensorSpec
from devscope.runtime.records import read_json
from devscope.runtime.signatures import Key, signer


class Inspection(TypedDict):
    """JSON data; sizes in bytes, types as :class:`TensorSpec` prints them."""

    file: dict[str, Any]
    members: list[dict[str, Any]]
    host: dict[str, Any]
    entries: list[dict[str, Any]]
    devices: list[dict[str, Any]]
    constants: list[dict[str, Any]]
    arenas: list[dict[str, Any]]
    shared: list[tuple[str, str]]
    options: dict[str, Any]


def inspect(path: str | os.PathLike[str], trusted_keys: Sequence[Key] | None = None) -> Inspection:
    """All that is in a ``.dsx`` file. Raises what `read_program` does."""
    saved = read_saved(path, trusted_keys=trusted_keys)
    program, manifest = saved.program, read_json(saved.manifest)
    symbols, others = check_objects(program)
    names = {device.slot: device.name for device in program.slots()}
    return {
        "file": {
            "path": os.fspath(path),
            "bytes": saved.bytes,
            "format": manifest["format_version"],
            "native interface": manifest["native_abi"],
            "written by": f"devscope {manifest['devscope_version']}",
            "signature": _signature(saved),
        },
        "members": [{"name": name, **record} for name, record in manifest["members"].items()],
        "host": _host(program, symbols, others),
        "entries": [
            {
                "name": name,
                "symbol": entry.symbol,
                "arguments": [_spec(spec) for spec in entry.inputs],
                "results": [_spec(spec) for spec in entry.outputs],
            }
            for name, entry in program.entries.items()
        ],
        "devices": [_device(device) for device in program.devices],
        "constants": [
            {"type": "x".join([*map(str, spec.shape), spec.dtype]), "bytes": spec.nbytes}
            for spec in program.constants
        ],
        "arenas": [
            {
                "device": names[arena.slot],
                "places": len(arena.places),
                "alignment": arena.alignment,
                "needed": arena.needed,
            }
            for arena in program.arenas
        ],
        "shared": [(names[low], names[high]) for low, high in program.shared],
        "options": program.report.get("options", {}),
    }


def _signature(saved: SavedProgram) -> str:
    if saved.signature is None:
        return "none"
    try:
        return f"valid, by {signer(saved.manifest, saved.signature)}"
    except ExecutableFormatError as error:
        return f"INVALID: {error.message}"
    except OptionError as error:
        return f"not checked: {error.message}"


def _host(program: Program, symbols: HostSymbols, others: Sequence[HostSymbols]) -> dict[str, Any]:
    runtime = runtime_symbols()
    uses = {f"calls of {backend}": sorted(names) for backend, names in program.uses.items()}
    of_backends = {name for names in uses.values() for name in names}.union(*(one.defined for one in others))
    imported = sorted(symbols.imported.union(*(one.imported for one in others)) - of_backends)
    return {
        "object": f"ELF, {machine_of(program.host_object)}",
        "bytes": len(program.host_object),
        "triple": program.host_triple,
        "cpu": program.host_cpu or "any",
        "features": [name[1:] for name in program.host_features.split(",") if name[:1] == "+"],
        "defines": sorted(symbols.defined),
        "calls of the runtime": [name for name in imported if runtime.get(name)],
        "calls of C": [name for name in imported if not runtime.get(name)],
        **uses,
    }


def _spec(spec: TensorSpec) -> dict[str, Any]:
    return {"type": str(spec), "dtype": spec.dtype, "shape": spec.shape, "scalar": spec.scalar, "name": spec.name}


def _device(device: DeviceSpec) -> dict[str, Any]:
    binaries = [
        {
            "format": _format(device.kind, binary),
            "bytes": len(binary),
            "kernels": [
                {"name": kernel.name, "arguments": [_argument(size) for size in kernel.arg_sizes]}
                for kernel in device.kernels
                if kernel.binary == number
            ],
        }
        for number, binary in enumerate(device.binaries)
    ]
    return {"slot": device.slot, "name": device.name, "kind": device.kind, "binaries": binaries}


def _format(kind: str, binary: bytes) -> str:
    """Of binaries that passed `problem_of_binary`."""
    formats = {"opencl": lambda: f"SPIR-V {spirv_version(binary)}", "cuda": lambda: "PTX"}
    return formats.get(kind, lambda: "unknown")()


def _argument(size: int) -> str:
    if size == DYNAMIC_LOCAL_SIZE:
        return "local memory"
    if size < 0:
        return f"{-size} bytes of local memory"
    return f"{size} bytes" if size else "buffer"
