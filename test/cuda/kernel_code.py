"""LLVM IR of CUDA kernels -> LLVM IR of the host that does the same: see ``emulator.c``.

Intrinsics of NVVM become calls of the emulator's functions, shared memory becomes external variables, and accesses
to memory are announced. Nothing else changes: address spaces are all the same to a host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_AXES = {"x": 0, "y": 1, "z": 2}
_SHUFFLES = ("up", "down", "bfly", "idx")
_VOTES = ("all", "any", "uni", "ballot")
_REDUCTIONS = ("add", "min", "max", "umin", "umax", "and", "or", "xor")
_ELEMENTS = ("f16", "bf16", "tf32", "s8", "u8", "f64", "f32", "s32")
_REGISTERS = ("tid", "ctaid", "ntid", "nctaid", "laneid", "warpid", "nwarpid", "warpsize", "lanemask", "clock")
_LANEMASKS = ("eq", "lt", "le", "gt", "ge")

Constants = tuple[int, ...]


def _register(match: re.Match[str]) -> Constants:
    name, _, part = match[1].partition(".")
    return _REGISTERS.index(name), _AXES.get(part, _LANEMASKS.index(part) if part in _LANEMASKS else 0)


def _product(match: re.Match[str]) -> Constants:
    """The types in a name are those of D, C where A and B are f16; those of A, B where C can only be one."""
    *sizes, first, second = match.groups()
    m, n, k = map(int, sizes)
    integers = first in ("s8", "u8")
    if integers:
        types = (first, second or first, "s32")
    elif first in ("bf16", "tf32"):
        types = (first, first, "f32")
    elif first == "f64":
        types = ("f64", "f64", "f64")
    else:
        if first != second:
            raise NotEmulatedError(match[0])
        types = ("f16", "f16", first)
    return m, n, k, *map(_ELEMENTS.index, types)


def _copy(match: re.Match[str]) -> Constants:
    return int(match[1]), int(match[2] is not None)


#: Intrinsics by their names behind ``llvm.nvvm.``, the emulator's function for them, and what it is told.
_INTRINSICS: tuple[tuple[str, str, Callable[[re.Match[str]], Constants]], ...] = (
    (r"read\.ptx\.sreg\.([\w.]+)", "register", _register),
    (
        r"barrier0|barrier\.cta\.sync\.aligned\.all|barrier\.cta\.sync\.all",
        "barrier",
        lambda m: (0, m[0] == "barrier0"),
    ),
    (r"barrier\.cta\.sync\.(?:aligned\.)?count|barrier", "barrier", lambda _: (1, 0)),
    (r"bar\.warp\.sync", "warp_barrier", lambda _: ()),
    (r"shfl\.sync\.(\w+)\.[if]32(p?)", "shuffle", lambda m: (_SHUFFLES.index(m[1]), bool(m[2]))),
    (r"vote\.(\w+)\.sync", "vote", lambda m: (_VOTES.index(m[1]),)),
    (r"match\.(any|all)\.sync\.i(32|64)p?", "match", lambda m: (int(m[2]) // 8, m[1] == "all")),
    (r"redux\.sync\.(\w+)", "reduce", lambda m: (_REDUCTIONS.index(m[1]),)),
    (r"elect\.sync", "elect", lambda _: ()),
    (
        r"mma\.m(\d+)n(\d+)k(\d+)\.row\.col(?:\.satfinite)?\.(\w+)(?:\.(\w+))?",
        "multiply",
        _product,
    ),
    (
        r"ldmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.b16(?:\.p\d)?",
        "load_matrix",
        lambda m: (int(m[1]), m[2] is not None),
    ),
    (r"cp\.async\.c[ag]\.shared\.global\.(\d+)(\.s)?", "copy_async", _copy),
    (r"cp\.async\.commit\.group", "copy_commit", lambda _: ()),
    (r"cp\.async\.wait\.(group|all)", "copy_wait", lambda m: (m[1] == "all",)),
    (r"f2tf32\.rna(?:\.\w+)*|cvt\.rna\.tf32\.f32", "round_tf32", lambda _: ()),
    (r"membar\.\w+|fence\.[\w.]+|nanosleep|prefetch[\w.]*", "nothing", lambda _: ()),
)

FUNCTIONS = sorted({f"emulated_{name}" for _, name, _ in _INTRINSICS})
"""The functions of ``emulator.c`` that kernels may call, besides those that announce accesses."""
ACCESSES = ("emulated_access", "emulated_access_any")


class NotEmulatedError(Exception):
    """Something in a kernel that the emulator does not know."""


@dataclass
class KernelCode:
    """``text``: LLVM IR for the host, whose functions ``NAME.emulated`` take addresses of the arguments.

    ``shared``: bytes of each variable in shared memory. ``dynamic``: those of the size that a launch gives.
    ``threads``: for how many a kernel was compiled, by its name.
    """

    text: str
    shared: dict[str, int] = field(default_factory=dict[str, int])
    dynamic: list[str] = field(default_factory=list[str])
    threads: dict[str, int] = field(default_factory=dict[str, int])


_SHARED = re.compile(r"^@([\w.$]+) = (.*)addrspace\(3\) global (.*?)(?:, align (\d+))?$")
_KERNEL = re.compile(r"^define (?:\w+ )*ptx_kernel void @([\w.$]+)(\(.*)\{$")
_DECLARED = re.compile(r"^declare (?:[^@{<]* )?(\{.*?\}|<.*?>|\w+) @llvm\.nvvm\.([\w.]+)(\(.*)$")
_THREADS = re.compile(r'^attributes #(\d+) = \{.*"nvvm\.(?:max|req)ntid"="(\d+)(?:,(\d+))?(?:,(\d+))?"')


def to_host(text: str) -> KernelCode:
    """Raises NotEmulatedError."""
    code = KernelCode("")
    limits = {m[1]: _product_of(m.groups()[1:]) for m in map(_THREADS.match, text.splitlines()) if m}
    text = _name_assembly(text)
    lines = [f"declare void @{name}(ptr, i64, i64, i64)" for name in ACCESSES]
    lines += [f"declare void @{name}(ptr, ptr, ptr)" for name in FUNCTIONS]
    for line in text.splitlines():
        if line.startswith(("target ", "source_filename ")):
            continue
        if found := _SHARED.match(line):
            _declare_shared(code, found)
            lines.append(
                f"@{found[1]} = external addrspace(3) global {_type_of(found[3])}, align {found[4] or 16}"
            )
        elif found := _DECLARED.match(line):
            lines.append(_wrapper(*found.groups()))
        else:
            if found := _KERNEL.match(line):
                code.threads[found[1]] = next(
                    (limits[n] for n in re.findall(r"#(\d+)", found[2]) if n in limits), 1024
                )
                lines.append(_entry(found[1], _inside(found[2])))
                line = line.replace("ptx_kernel ", "", 1)
            lines += _announcements(line)
            lines.append(line.replace("@llvm.nvvm.", "@nvvm.") if "@llvm.nvvm." in line else line)
    code.text = "\n".join(lines) + "\n"
    return code


_ASSEMBLY = re.compile(r'call (\S+) asm (?:sideeffect )?"([\w.]+) ([^"]*)", "[^"]*"\(([^)]*)\)(.*)')


def _name_assembly(text: str) -> str:
    """Instructions of PTX in line become intrinsics of their names."""
    declared: dict[str, str] = {}

    def call(found: re.Match[str]) -> str:
        result, name, _, operands, rest = found.groups()
        types = ", ".join(_type_of(operand) for operand in split(operands))
        declared[name] = f"declare {result} @llvm.nvvm.{name}({types})"
        return f"call {result} @llvm.nvvm.{name}({operands}){rest}"

    text = _ASSEMBLY.sub(call, text)
    if " asm " in text:
        raise NotEmulatedError(next(line.strip() for line in text.splitlines() if " asm " in line))
    return "\n".join([text, *declared.values()])


def _product_of(numbers: tuple[str | None, ...]) -> int:
    product = 1
    for number in numbers:
        product *= int(number or 1)
    return product


def _declare_shared(code: KernelCode, found: re.Match[str]) -> None:
    size = size_of(_type_of(found[3]))
    code.shared[found[1]] = size
    if "external" in found[2]:
        code.dynamic.append(found[1])


def _entry(name: str, parameters: str) -> str:
    """A function that reads the arguments of a kernel from where a launch has them."""
    lines = [f"define void @{name}.emulated(ptr %cells) {{"]
    values: list[str] = []
    for number, parameter in enumerate(split(parameters)):
        type_ = _type_of(parameter)
        lines += [
            f"  %a{number} = getelementptr ptr, ptr %cells, i64 {number}",
            f"  %c{number} = load ptr, ptr %a{number}",
            f"  %v{number} = load {type_}, ptr %c{number}, align 1",
        ]
        values.append(f"{type_} %v{number}")
    return "\n".join([*lines, f"  call void @{name}({', '.join(values)})", "  ret void", "}"])


def _emulation_of(name: str) -> tuple[str, Constants]:
    for pattern, function, constants_of in _INTRINSICS:
        if found := re.fullmatch(pattern, name):
            return function, constants_of(found) or (0,)
    raise NotEmulatedError(f"llvm.nvvm.{name}")


def _wrapper(result: str, name: str, parameters: str) -> str:
    """A function in place of an intrinsic, which passes everything through memory."""
    function, constants = _emulation_of(name)
    types = [_type_of(parameter) for parameter in split(_inside(parameters))]
    values = ", ".join(f"i64 {int(number)}" for number in constants)
    typed = ", ".join(f"{type_} %v{number}" for number, type_ in enumerate(types))
    lines = [
        f"@nvvm.{name}.constants = private constant [{len(constants)} x i64] [{values}]",
        f"define internal {result} @nvvm.{name}({typed}) noinline {{",
        f"  %a = alloca [{max(len(types), 1) * 16} x i8], align 16",
        "  %r = alloca [64 x i8], align 16",
    ]
    for number, type_ in enumerate(types):
        lines += [
            f"  %p{number} = getelementptr i8, ptr %a, i64 {16 * number}",
            f"  store {type_} %v{number}, ptr %p{number}, align 16",
        ]
    lines.append(f"  call void @emulated_{function}(ptr %a, ptr %r, ptr @nvvm.{name}.constants)")
    if result == "void":
        return "\n".join([*lines, "  ret void", "}"])
    return "\n".join([*lines, f"  %x = load {result}, ptr %r, align 16", f"  ret {result} %x", "}"])


# --------------------------------------------------------------------------------------------------- accesses

_LOAD = re.compile(r"= load (?:atomic )?(?:volatile )?(.+?), (ptr(?: addrspace\((\d)\))?) ")
_STORE = re.compile(r"^ +store (?:atomic )?(?:volatile )?")
_CHANGE = re.compile(
    r"= (?:atomicrmw (?:volatile )?\w+|cmpxchg (?:weak )?(?:volatile )?) ?(ptr(?: addrspace\((\d)\))?) "
)
_ALIGN = re.compile(r", align (\d+)")
_MEMORY_CALL = re.compile(r"call void @llvm\.(memcpy|memmove|memset)[\w.]*\(")
_MASKED_CALL = re.compile(r"@llvm\.masked\.(load|store)[\w.]*\(")
_READ, _WRITE, _MODIFY = range(3)


def _announcements(line: str) -> Iterator[str]:
    """Calls in front of an instruction that accesses memory."""
    found = re.match(r" +(?:%\S+ = )?(?:tail |musttail |notail )?(load|store|atomicrmw|cmpxchg|call)\b", line)
    if found is None:
        return
    if found[1] == "load" and (load := _LOAD.search(line)):
        yield _announce(load[2], _operand(line[load.end() :]), size_of(load[1]), _align(line), _READ)
    elif found[1] == "store" and (store := _STORE.match(line)):
        value, target, *_ = split(line[store.end() :])
        type_ = _type_of(target)
        yield _announce(type_, _operand(target[len(type_) + 1 :]), size_of(_type_of(value)), _align(line), _WRITE)
    elif found[1] in ("atomicrmw", "cmpxchg") and (change := _CHANGE.search(line)):
        value = split(line[change.end() :])[1]
        yield _announce(change[1], _operand(line[change.end() :]), size_of(_type_of(value)), _align(line), _MODIFY)
    elif call := _MEMORY_CALL.search(line):
        to, source, count, *_ = split(_inside(line[call.end() - 1 :]))
        size = _operand(count.split(" ", 1)[1])
        yield _announce(_type_of(to), _last(to), size, 1, _WRITE)
        if call[1] != "memset":
            yield _announce(_type_of(source), _last(source), size, 1, _READ)
    elif call := _MASKED_CALL.search(line):
        raise NotEmulatedError(call[0])


def _announce(pointer: str, operand: str, size: int | str, alignment: int, kind: int) -> str:
    function = ACCESSES[1] if pointer == "ptr" or "(5)" in pointer else ACCESSES[0]
    return f"  call void @{function}({pointer} {operand}, i64 {size}, i64 {alignment}, i64 {kind})"


def _align(line: str) -> int:
    found = _ALIGN.search(line)
    return int(found[1]) if found else 1


# ----------------------------------------------------------------------------------------------- text of LLVM IR


def split(text: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return [*parts, text[begin:].strip()] if text.strip() else []


def _inside(text: str) -> str:
    """What stands in the parenthesis that ``text`` begins with."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:at]
    return text


def _type_of(text: str) -> str:
    """The type that ``text`` begins with."""
    if text[0] in "[<{":
        depth = 0
        for at, letter in enumerate(text):
            depth += (letter in "[<{(") - (letter in "]>})")
            if depth == 0:
                return text[: at + 1]
    found = re.match(r"ptr addrspace\(\d\)|\w+", text)
    assert found is not None, text
    return found[0]


def _operand(text: str) -> str:
    """The operand that ``text`` begins with: a name, a number or a constant expression."""
    if found := re.match(r'[%@](?:"[^"]*"|[-\w.$]+)|-?\d+|null|undef|poison', text):
        return found[0]
    return text[: text.index("(")] + "(" + _inside(text[text.index("(") :]) + ")"


_ATTRIBUTE = re.compile(r" (?:\w+\([^)]*\)|align \d+|noundef|nonnull|writeonly|readonly|noalias|nofree)(?= )")


def _last(argument: str) -> str:
    """The operand of an argument with attributes."""
    rest = argument[len(_type_of(argument)) :]
    while found := _ATTRIBUTE.match(rest):
        rest = rest[found.end() :]
    return _operand(rest.strip())


_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


def size_of(type_: str) -> int:
    """Bytes that a value of a type takes in memory."""
    if found := re.fullmatch(r"([<\[])(\d+) x (.+)[>\]]", type_):
        bits = _bits(found[3]) if found[1] == "<" else 8 * size_of(found[3])
        return -(-int(found[2]) * bits // 8)
    if type_.startswith("{"):
        raise NotEmulatedError(f"an access of type {type_}")
    return -(-_bits(type_) // 8)


def _bits(type_: str) -> int:
    return int(type_[1:]) if re.fullmatch(r"i\d+", type_) else 8 * _SIZES[type_.split()[0]]
