"""Programs as shared libraries, which run without Python: the library, a header, and a package for CMake.

The code of the program, the native runtime, constants and device binaries are linked with ``library.c``, which
opens devices and calls entries. A C compiler of the machine does that.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from devscope.errors import DevscopeError, OptionError, option_note
from devscope.runtime.drivers import device_types
from devscope.runtime.library.interface import CMAKE, KEYWORDS, c_list, c_string, entry_lines, header_text
from devscope.runtime.native import compile_native, runtime_object
from devscope.runtime.plugins import find_runtime
from devscope.runtime.program import ArenaSpec, DeviceSpec, Program, memory_of
from devscope.runtime.replaced_file import saved_file
from devscope.runtime.state import count_on_devices, states_of

_HERE = Path(__file__).parent
_FLAGS = ["-std=gnu11", "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]
_LIBRARIES = ["-lm", "-ldl", "-lpthread"]


def write_library(program: Program, path: Path, devices: Mapping[str, str] | None = None) -> list[Path]:
    """Write ``libNAME.so``, ``NAME.h`` and ``NAMEConfig.cmake`` beside each other; returns their paths.

    ``devices``: the device, such as ``opencl:1``, that a virtual one runs on where it is not that of its number.

    Raises OptionError for a name that no C function can have and for programs that a library cannot run, and
    DevscopeError where there is no C compiler.
    """
    name = _library_name(path)
    _check(program)
    libraries = [_library_of(backend, functions) for backend, functions in program.uses.items()]
    numbers = {virtual: _number(physical) for virtual, physical in (devices or {}).items()}
    header = path.with_name(f"{name}.h")
    config = path.with_name(f"{name}Config.cmake")
    beside = {header: header_text(program, name), config: CMAKE.format(name=name, file=path.name)}
    for file, text in beside.items():
        _require_own(file, text)
    with tempfile.TemporaryDirectory(prefix="devscope-") as folder:
        (Path(folder) / header.name).write_text(beside[header])
        library = _linked(program, name, path, Path(folder), numbers, libraries)
    # Nothing of the three takes its place unless all can be written.
    with ExitStack() as written:
        for file, data in {path: library, **{file: text.encode() for file, text in beside.items()}}.items():
            written.enter_context(saved_file(file)).write(data)
    return [path, *beside]


def _library_name(path: Path) -> str:
    name = path.name.removeprefix("lib").partition(".")[0]
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or name in KEYWORDS:
        raise OptionError(
            f"a library cannot be called '{path.name}': its functions would begin with '{name}_'",
            notes=["name it libNAME.so, where NAME is that of a C function"],
        )
    return name


def _require_own(file: Path, text: str) -> None:
    """Raise OptionError when ``file``, which nobody named, is there and does not begin as ``text`` does."""
    first = text.partition("\n")[0].encode()
    if file.is_file() and not file.read_bytes().startswith(first):
        raise OptionError(
            f"the library's '{file.name}' would overwrite '{file}', which 'devscope build --shared' did not write",
            notes=["write the library to another folder, or call it by another name"],
        )


def _number(device: str) -> int:
    number = device.partition(":")[2]
    if not number.isdecimal():
        raise OptionError(f"a shared library cannot run on '{device}'", notes=["give a whole device: opencl:0"])
    return int(number)


def _check(program: Program) -> None:
    others = [device.name for device in program.slots()[1:] if device.compiled_for != "opencl"]
    if others:
        is_ours = others[0].partition(":")[0] in device_types()
        another = option_note("build it for another target:", "devices", {others[0]: "opencl:0"})
        raise OptionError(
            f"a shared library runs on the host and on OpenCL devices, the program on '{others[0]}'",
            notes=[another if is_ours else "build it without the backend that has this device"],
        )
    if count_on_devices(states_of(program)):
        raise OptionError(
            "a shared library cannot keep state on devices",
            notes=["place what reads and writes the state on cpu:0"],
        )
    if program.shared:
        raise OptionError(
            "a shared library cannot promise that devices share memory", notes=["drop 'shared' links"]
        )


def _library_of(backend: str, functions: Sequence[str]) -> Path:
    """The C library with the functions of a backend that a program calls."""
    runtime = find_runtime(backend)
    if runtime is None:
        raise OptionError(f"the program needs backend '{backend}', which is not installed")
    try:
        library = runtime.library()
    except OSError as error:
        raise OptionError(
            f"backend '{backend}': {error}", notes=[runtime.advice] if runtime.advice else []
        ) from None
    if not library or any(not isinstance(runtime.function(name), int) for name in functions):
        raise OptionError(
            f"a shared library cannot call backend '{backend}', whose functions are not those of a C library",
            notes=["build a .dsx file, which runs in Python, or leave the backend out"],
        )
    return Path(library)


def _linked(
    program: Program, name: str, path: Path, folder: Path, devices: dict[str, int], libraries: Sequence[Path]
) -> bytes:
    try:
        compiler = compile_native.machine_compiler()
    except compile_native.CompileError as error:
        raise DevscopeError(str(error)) from None
    if compiler is None:
        raise DevscopeError(
            "a shared library is linked by a C compiler, and there is none",
            notes=["install cc, gcc or clang with the headers of a C library, or name one in $CC"],
        )
    (folder / "host.o").write_bytes(program.host_object)
    (folder / "runtime.o").write_bytes(runtime_object())
    objects = ["program.c", "host.o", "runtime.o"]
    for number, data in enumerate(program.objects):
        objects.append(f"backend_{number}.o")
        (folder / objects[-1]).write_bytes(data)
    linked = [text for library in libraries for text in (str(library), f"-Wl,-rpath,{library.parent}")]
    (folder / "exports").write_text(f"{{ global: {name}_*; local: *; }};\n")
    (folder / "program.c").write_text(_program(program, name, folder, devices))
    command = [
        *[*compiler, *_FLAGS, "-I", str(_HERE), "-I", str(compile_native.FOLDER), "-I", str(folder)],
        *[str(folder / file) for file in objects],
        *linked,
        *[f"-Wl,--version-script={folder / 'exports'}", f"-Wl,-soname,{path.name}", "-Wl,-z,noexecstack"],
        *["-o", str(folder / "library.so"), *_LIBRARIES],
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise DevscopeError(f"the C compiler '{shlex.join(compiler)}' cannot link it:\n{process.stderr}")
    return (folder / "library.so").read_bytes()


# ---------------------------------------------------------------------------------------------------- tables


def _program(program: Program, name: str, folder: Path, devices: dict[str, int]) -> str:
    """The C file that is linked with the program's code."""
    slots = program.slots()
    lines = ["#define _GNU_SOURCE", '#include "library.h"']
    if len(slots) > 1:
        lines += [_cl_structs(), "#define DEVSCOPE_OPENCL"]
    arenas = {arena.slot: arena for arena in program.arenas}
    for index, data in enumerate(program.constant_data):
        lines += _embedded(f"constant_{index}", memory_of(data).tobytes(), folder)
    constants = [_data(f"constant_{index}") for index in range(len(program.constant_data))]
    tables = [_device_tables(slot, devices.get(slot.name, slot.id), folder) for slot in slots]
    for slot in slots:
        lines += [*tables[slot.slot][0], *_places(slot.slot, arenas.get(slot.slot))]
    storage = [_arena(slot.slot, arenas.get(slot.slot)) for slot in slots]
    lines += [
        f"static const LibraryDevice devices[] = {c_list(text for _, text in tables)};",
        f"static const LibraryArena arenas[] = {c_list(storage)};",
        f"static const LibraryData constants[] = {c_list([*constants, '{0}'])};",
        "const LibraryProgram library_program = "
        f"{{{len(slots)}, devices, arenas, {len(program.constant_data)}, constants}};",
        '#include "library.c"',
        f'#include "{name}.h"',
    ]
    for number, (entry, found) in enumerate(program.entries.items()):
        lines += entry_lines(name, number, entry, found)
    lines += [
        f"EXPORT int {name}_open(void) {{ return library_open(); }}",
        f"EXPORT void {name}_close(void) {{ library_close(); }}",
        f"EXPORT void {name}_free(void *memory) {{ free(memory); }}",
        f"EXPORT const char *{name}_error(void) {{ return library_message; }}",
    ]
    return "\n".join(lines) + "\n"


def _embedded(symbol: str, data: bytes, folder: Path) -> list[str]:
    """Bytes that the assembler takes from a file: no C compiler takes so much text."""
    file = folder / f"{symbol}.bin"
    file.write_bytes(data)
    words = ".pushsection .rodata", ".balign 64", f"{symbol}_begin:", f'.incbin "{file}"'
    lines = "\n".join([*words, f"{symbol}_end:", ".byte 0", ".popsection\n"])
    return [
        f"__asm__({c_string(lines)});",
        f"extern const unsigned char {symbol}_begin[], {symbol}_end[];",
    ]


def _data(symbol: str) -> str:
    return f"{{{symbol}_begin, {symbol}_end}}"


def _cl_structs() -> str:
    """The structs that the OpenCL driver of the runtime reads: see opencl_device.py, which fills them in, too."""
    from devscope.runtime.drivers.opencl_device import ClQueue, OpenCL

    functions = [name for name, *_ in OpenCL._fields_]
    pointers = " ".join(f"void *{function};" for function in functions)
    cells: list[str] = []
    for name, kind, *_ in ClQueue._fields_:
        count = getattr(kind, "_length_", None)
        cells.append(f"int64_t {name};" if count is None else f"int64_t {name}[{count}];")
    return "\n".join(
        [
            f"typedef struct {{ {pointers} }} ClOpenCL;",
            f"typedef struct {{ {' '.join(cells)} }} ClQueue;",
            f"#define DEVSCOPE_CL_FUNCTIONS {', '.join(map(c_string, functions))}",
        ]
    )


def _device_tables(device: DeviceSpec, number: int, folder: Path) -> tuple[list[str], str]:
    prefix = f"device_{device.slot}"
    lines: list[str] = []
    for index, binary in enumerate(device.binaries):
        lines += _embedded(f"{prefix}_binary_{index}", binary, folder)
    for index, kernel in enumerate(device.kernels):
        sizes = ["INT64_MIN" if size == -(1 << 63) else size for size in kernel.arg_sizes]
        lines.append(f"static const int64_t {prefix}_sizes_{index}[] = {c_list([*sizes, 0])};")
    kernels = [
        f"{{{c_string(kernel.name)}, {kernel.binary}, {len(kernel.arg_sizes)}, {prefix}_sizes_{index}}}"
        for index, kernel in enumerate(device.kernels)
    ]
    binaries = [_data(f"{prefix}_binary_{index}") for index in range(len(device.binaries))]
    lines += [
        f"static const LibraryKernel {prefix}_kernels[] = {c_list([*kernels, '{0}'])};",
        f"static const LibraryData {prefix}_binaries[] = {c_list([*binaries, '{0}'])};",
    ]
    cells = c_string(device.name), number, len(kernels), f"{prefix}_kernels", len(binaries), f"{prefix}_binaries"
    return lines, c_list(cells)


def _places(slot: int, arena: ArenaSpec | None) -> list[str]:
    places = [c_list(place) for place in (arena.places if arena is not None else [])]
    return [f"static const int64_t places_{slot}[][2] = {c_list([*places, '{0}'])};"]


def _arena(slot: int, arena: ArenaSpec | None) -> str:
    if arena is None:
        return f"{{0, 1, 0, places_{slot}}}"
    needed = max(arena.needed.values(), default=0)
    return f"{{{needed}, {arena.alignment}, {len(arena.places)}, places_{slot}}}"
