"""What C sees of a program: its functions, their declarations in a header, and a package for CMake."""

import re
from collections.abc import Iterable

from devscope.errors import OptionError
from devscope.runtime.dtypes import ENTRY_DTYPES
from devscope.runtime.program import Entry, Program, TensorSpec

_C_TYPES = {
    "i1": "bool",
    "index": "int64_t",
    "f32": "float",
    "f64": "double",
    "complex<f32>": "float",
    "complex<f64>": "double",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}
"""Of elements; of other dtypes the bits. A complex number is two."""

_RESERVED = """
    alignas alignof and asm auto bool break case catch char class const continue default delete do double else
    enum explicit export extern false float for friend goto if inline int long mutable namespace new not nullptr
    operator or private protected public register restrict return short signed sizeof static struct switch template
    this throw true try typedef typeid typename union unsigned using virtual void volatile while xor
"""
KEYWORDS = frozenset(_RESERVED.split())


def c_list(parts: Iterable[object]) -> str:
    """An initialiser in C."""
    return "{" + ", ".join(map(str, parts)) + "}"


def c_string(text: str) -> str:
    """A C string; anything but plain characters as octal numbers."""
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def entry_lines(library: str, number: int, name: str, entry: Entry) -> list[str]:
    """Tables of an entry, and the function that calls it."""
    prefix = f"entry_{number}"
    symbol = c_string(f'"{entry.symbol}"')
    lines = [f"extern Entry {prefix} __asm__({symbol});"]
    for kind, specs in (("argument", entry.inputs), ("result", entry.outputs)):
        tensors: list[str] = []
        for index, spec in enumerate(specs):
            shape = [-1 if size is None else size for size in spec.shape]
            lines.append(f"static const int64_t {prefix}_{kind}_{index}[] = {c_list([*shape, 0])};")
            item = ENTRY_DTYPES[spec.dtype].itemsize
            tensors.append(f"{{{c_string(spec.name)}, {len(shape)}, {item}, {prefix}_{kind}_{index}}}")
        lines.append(f"static const LibraryTensor {prefix}_{kind}s[] = {c_list([*tensors, '{0}'])};")
    counts = f"{len(entry.inputs)}, {prefix}_arguments, {len(entry.outputs)}, {prefix}_results"
    lines.append(f"static const LibraryEntry {prefix}_table = {{{c_string(name)}, {prefix}, {counts}}};")
    inputs, outputs = _names(entry)
    given = [f"&{at}" if _by_value(spec) else at for spec, at in zip(entry.inputs, inputs, strict=True)]
    sizes = [f"{at}_sizes" if _is_dynamic(spec) else "NULL" for spec, at in zip(entry.inputs, inputs, strict=True)]
    places = [f"*{at}" if _is_dynamic(spec) else at for spec, at in zip(entry.outputs, outputs, strict=True)]
    made = [
        f"{at}_sizes" if _is_dynamic(spec) else "NULL" for spec, at in zip(entry.outputs, outputs, strict=True)
    ]
    lines += [
        f"EXPORT {_prototype(library, name, entry)} {{",
        f"  const void *arguments_[] = {c_list([*given, 'NULL'])};",
        f"  const int64_t *argument_sizes_[] = {c_list([*sizes, 'NULL'])};",
        f"  void *results_[] = {c_list([*places, 'NULL'])};",
        f"  int64_t *result_sizes_[] = {c_list([*made, 'NULL'])};",
        "  const int failed_ =",
        f"      library_call(&{prefix}_table, arguments_, argument_sizes_, results_, result_sizes_);",
        *(
            f"  *{at} = failed_ ? NULL : results_[{index}];"
            for index, (spec, at) in enumerate(zip(entry.outputs, outputs, strict=True))
            if _is_dynamic(spec)
        ),
        "  return failed_;",
        "}",
    ]
    return lines


def _is_dynamic(spec: TensorSpec) -> bool:
    return None in spec.shape


def _by_value(spec: TensorSpec) -> bool:
    return spec.scalar and not spec.dtype.startswith("complex")


def _c_type(spec: TensorSpec) -> str:
    return _C_TYPES.get(spec.dtype) or f"uint{ENTRY_DTYPES[spec.dtype].itemsize * 8}_t"


def _names(entry: Entry) -> tuple[list[str], list[str]]:
    """Of the parameters for arguments and results: those of the source as far as C takes them."""
    taken: set[str] = set(KEYWORDS)
    found: list[list[str]] = []
    for prefix, specs in (("arg", entry.inputs), ("result", entry.outputs)):
        names: list[str] = []
        for index, spec in enumerate(specs):
            name = re.sub(r"\W+", "_", spec.name, flags=re.ASCII).strip("_")
            if not re.match(r"[A-Za-z]", name) or name in taken or f"{name}_sizes" in taken:
                name = f"{prefix}_{index}_"
            taken |= {name, f"{name}_sizes"}
            names.append(name)
        found.append(names)
    return found[0], found[1]


def _prototype(library: str, name: str, entry: Entry) -> str:
    inputs, outputs = _names(entry)
    parameters: list[str] = []
    for spec, at in zip(entry.inputs, inputs, strict=True):
        by_value = _by_value(spec)
        parameters.append(f"{_c_type(spec)} {at}" if by_value else f"const {_c_type(spec)} *{at}")
        if _is_dynamic(spec):
            parameters.append(f"const int64_t {at}_sizes[{len(spec.shape)}]")
    for spec, at in zip(entry.outputs, outputs, strict=True):
        if _is_dynamic(spec):
            parameters += [f"{_c_type(spec)} **{at}", f"int64_t {at}_sizes[{len(spec.shape)}]"]
        else:
            parameters.append(f"{_c_type(spec)} *{at}")
    function = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"int {library}_{function}({', '.join(parameters) or 'void'})"


def header_text(program: Program, name: str) -> str:
    guard = f"DEVSCOPE_{name.upper()}_H"
    functions: list[str] = []
    used: dict[str, str] = {}
    for entry_name, entry in program.entries.items():
        function = re.sub(r"\W", "_", entry_name, flags=re.ASCII)
        if function in ("open", "close", "free", "error") or used.setdefault(function, entry_name) != entry_name:
            raise OptionError(f"the library has no name for function '{entry_name}': '{name}_{function}' is taken")
        signature = str(entry).replace("*/", "* /")
        functions.append(
            f"/* {entry_name.replace('*/', '* /')}{signature} */\n{_prototype(name, entry_name, entry)};\n"
        )
    return _HEADER.format(name=name, guard=guard, functions="\n".join(functions))


_HEADER = """\
/* Made by devscope build --shared. Functions give 0, or 1 where {name}_error() says what went wrong.
 *
 * Arrays are dense, in C order: ?x3xf32 is an array of any number of rows of 3 floats. An argument with a "?" is
 * followed by its sizes. A result without one is written to memory of the caller, also where an argument is; one
 * with is new memory, which the caller gives back with {name}_free, and its sizes are written behind it. A complex
 * number is two numbers; of floats that C lacks (f16, bf16, those of 8 bits and less) there are the bits; an
 * integer of 4 bits or 2 is the low bits of a byte.
 *
 * Calls of several threads run one after the other. */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{functions}
/* Opens the devices and loads the program on them, which the first call does otherwise. */
int {name}_open(void);

/* Releases what is on the devices; the next call opens them again. */
void {name}_close(void);

/* Gives back a result. */
void {name}_free(void *memory);

/* The last error in this thread. */
const char *{name}_error(void);

#ifdef __cplusplus
}}
#endif

#endif
"""

CMAKE = """\
# find_package({name} CONFIG) finds this file where CMAKE_PREFIX_PATH or {name}_DIR names its folder.
if(NOT TARGET {name})
  add_library({name} SHARED IMPORTED GLOBAL)
  set_target_properties({name} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{file}"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
"""
