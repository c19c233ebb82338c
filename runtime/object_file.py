"""The host object of a program as a file of a stranger: its sections, its symbols, and what it may call.

Nothing here loads the object. `check_object` is asked before LLVM sees it.
"""

import re
import struct
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from devscope.errors import ExecutableFormatError
from devscope.runtime.native import runtime_object
from devscope.runtime.program import Program

_MACHINES = {62: "x86_64", 183: "aarch64"}
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_ET_REL = 1
_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 2, 4, 8
# What compilers write for plain code and data: no arrays of functions that run when an object is loaded.
_SECTION_TYPES = {
    0: "NULL",
    1: "PROGBITS",
    _SHT_SYMTAB: "SYMTAB",
    3: "STRTAB",
    _SHT_RELA: "RELA",
    7: "NOTE",
    _SHT_NOBITS: "NOBITS",
    17: "GROUP",
    0x6FFF4C03: "LLVM_ADDRSIG",
    0x70000001: "X86_64_UNWIND",
}
_INITIALISERS = re.compile(r"\.(?:ctors|dtors|init|fini)\b")
_SYMBOL_TYPES = {
    0: "NOTYPE",
    1: "OBJECT",
    2: "FUNC",
    3: "SECTION",
    4: "FILE",
}  # neither TLS nor indirect functions
_SHN_UNDEF, _SHN_ABS, _SHN_COMMON = 0, 0xFFF1, 0xFFF2
_STB_LOCAL = 0
_MOST_BYTES = 1 << 30
_MOST_ALIGNMENT = 1 << 16

_MATH = """
    " acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim
    floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint
    lround modf nearbyint nextafter pow remainder rint round roundeven scalbln scalbn sin sincos sinh sqrt tan
    tanh tgamma trunc cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow
    cproj creal csin csinh csqrt ctan ctanh
"""
_MEMORY = "bcmp memchr memcmp memcpy memmove memset strlen"
_MODES = "[hbsdxtkq]"
_ARITHMETIC = re.compile(
    rf"__(?:(?:extend|trunc){_MODES}f{_MODES}f2|(?:float|floatun){_MODES}i{_MODES}f|(?:fix|fixuns){_MODES}f{_MODES}i"
    rf"|u?(?:div|mod|divmod|mul)[sdt]i[34]|(?:ash|lsh)[lr][dt]i3|(?:c[lt]z|popcount|parity|ffs|bswap|cmp|ucmp)[sdt]i2"
    rf"|(?:add|sub|mul|div|neg|cmp|eq|ne|lt|le|gt|ge|unord){_MODES}f[23]|(?:mul|div){_MODES}c3|powi{_MODES}f2)"
)
ALLOWED = frozenset([*_MEMORY.split(), *_MATH.split(), *(f"{name}f" for name in _MATH.split())])
"""Functions of the C library that host code may call; besides the runtime's, and the compiler's own arithmetic."""


def is_allowed(name: str) -> bool:
    """Whether a program may call this function, which is not its own."""
    return name in ALLOWED or _ARITHMETIC.fullmatch(name) is not None or runtime_symbols().get(name, False)


class HostSymbols(NamedTuple):
    """The global symbols of an object: those that it defines, and those that it expects of others.

    ``places``: where the data of those begins that the object has data of, in bytes from its own beginning.
    """

    defined: frozenset[str]
    imported: frozenset[str]
    places: Mapping[str, int]


@lru_cache(maxsize=1)
def runtime_symbols() -> dict[str, bool]:
    """The global symbols of the native runtime, and whether it defines them."""
    symbols = read_symbols(runtime_object())
    return {**dict.fromkeys(symbols.imported, False), **dict.fromkeys(symbols.defined, True)}


def check_object(data: bytes, used: Collection[str] = ()) -> HostSymbols:
    """The symbols of host code that may be loaded; ``used``: functions of backends, which it may call, too.

    Raises :class:`ExecutableFormatError` when the object is damaged, has code that would run when it is loaded,
    has a symbol that the runtime has, or calls functions that are not among those that programs may call.
    """
    symbols = read_symbols(data)
    if denied := sorted(name for name in symbols.imported if not is_allowed(name) and name not in used):
        raise ExecutableFormatError(
            f"the host code calls functions that programs may not call: {', '.join(denied)}",
            notes=["programs may call C's functions on numbers and memory: docs/trust.md"],
        )
    if double := sorted(symbols.defined & runtime_symbols().keys()):
        raise ExecutableFormatError(f"the host code defines what belongs to the runtime: {', '.join(double)}")
    return symbols


def check_objects(program: Program) -> tuple[HostSymbols, list[HostSymbols]]:
    """The symbols of a program's host code, and of the objects that backends gave, which may call each other and
    the functions that the program says it uses. Raises as `check_object`.
    """
    others = [read_symbols(data) for data in program.objects]
    used = {name for names in program.uses.values() for name in names}.union(*(one.defined for one in others))
    own = check_object(program.host_object, used)
    for data in program.objects:
        check_object(data, used)
    return own, others


@lru_cache(maxsize=16)
def read_symbols(data: bytes) -> HostSymbols:
    """The global symbols of a relocatable 64-bit little-endian ELF object, all of whose tables are looked over.

    Raises :class:`ExecutableFormatError`.
    """
    try:
        return _Object(data).symbols()
    except (struct.error, ValueError, IndexError) as error:
        raise _damaged(str(error)) from None


def machine_of(data: bytes) -> str:
    """The type of machine that an ELF object is for, for people."""
    number = int.from_bytes(data[18:20], "little")
    return _MACHINES.get(number, f"machine type {number}")


def _damaged(what: str) -> ExecutableFormatError:
    return ExecutableFormatError(f"the host code could not be loaded: it is no object file, or damaged: {what}")


class _Object:
    def __init__(self, data: bytes) -> None:
        self._data = data
        ident, kind, _, _, _, _, table, _, _, _, _, size, count, names = _HEADER.unpack_from(data)
        if ident[:6] != b"\x7fELF\x02\x01" or kind != _ET_REL or size != _SECTION.size:
            raise ValueError("its header is not that of a relocatable 64-bit object")
        if table + count * size > len(data) or names >= count:
            raise ValueError("its section table is outside of the file")
        self._sections = [_SECTION.unpack_from(data, table + index * size) for index in range(count)]
        self._names = names
        for index, section in enumerate(self._sections):
            self._check_section(index, section)

    def _check_section(self, index: int, section: tuple[int, ...]) -> None:
        name, kind, _, _, offset, size, link, _, alignment, _ = section
        if kind not in _SECTION_TYPES or _INITIALISERS.match(self._text(self._names, name)):
            raise ValueError(f"section {index} is of a kind that programs do not have (type {kind:#x})")
        if size > _MOST_BYTES or (kind != _SHT_NOBITS and offset + size > len(self._data)):
            raise ValueError(f"section {index} is outside of the file")
        if alignment & (alignment - 1) or alignment > _MOST_ALIGNMENT or link >= len(self._sections):
            raise ValueError(f"the header of section {index} makes no sense")

    def symbols(self) -> HostSymbols:
        tables = [index for index, section in enumerate(self._sections) if section[1] == _SHT_SYMTAB]
        if len(tables) != 1:
            raise ValueError(f"it has {len(tables)} symbol tables")
        symbols = self._entries(tables[0], _SYMBOL)
        found: dict[bool, set[str]] = {True: set(), False: set()}
        places: dict[str, int] = {}
        for name, info, _, section, value, size in symbols:
            self._check_symbol(info, section, value, size)
            if info >> 4 != _STB_LOCAL:
                text = self._text(self._sections[tables[0]][6], name)
                if text in found[True] or not text:
                    raise ValueError(f"symbol '{text}' is defined twice")
                found[section != _SHN_UNDEF].add(text)
                if 0 < section < len(self._sections) and self._sections[section][1] != _SHT_NOBITS:
                    places[text] = self._sections[section][4] + value
        for index, section in enumerate(self._sections):
            if section[1] == _SHT_RELA:
                self._check_relocations(index, len(symbols))
        return HostSymbols(frozenset(found[True]), frozenset(found[False]), places)

    def _entries(self, index: int, entry: struct.Struct) -> list[tuple[int, ...]]:
        _, _, _, _, offset, size, _, _, _, entry_size = self._sections[index]
        if entry_size != entry.size or size % entry.size:
            raise ValueError(f"section {index} has entries of {entry_size} bytes")
        return list(entry.iter_unpack(memoryview(self._data)[offset : offset + size]))

    def _check_symbol(self, info: int, section: int, value: int, size: int) -> None:
        if info & 15 not in _SYMBOL_TYPES:
            raise ValueError(f"it has a symbol of type {info & 15}, which programs do not have")
        if section in (_SHN_UNDEF, _SHN_ABS, _SHN_COMMON):
            if size > _MOST_BYTES:
                raise ValueError("a symbol is too large")
        elif section >= len(self._sections) or value + size > self._sections[section][5]:
            raise ValueError("a symbol is outside of its section")

    def _check_relocations(self, index: int, symbols: int) -> None:
        target = self._sections[index][7]
        if target >= len(self._sections):
            raise ValueError(f"section {index} has no target")
        room = self._sections[target][5]
        for at, info, _ in self._entries(index, _RELOCATION):
            if at >= room or info >> 32 >= symbols:
                raise ValueError(f"a relocation in section {index} is outside of what it refers to")

    def _text(self, table: int, at: int) -> str:
        _, _, _, _, offset, size, *_ = self._sections[table]
        start = offset + at
        end = self._data.find(b"\0", start, offset + size)
        if at >= size or end < 0:
            raise ValueError("a name is outside of its table")
        return self._data[start:end].decode()
