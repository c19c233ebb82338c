"""Parts of a module of LLVM IR, compiled on threads: each becomes assembly, all together one object."""

import ctypes
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from threading import Thread
from typing import Any

from devscope.runtime.threads import thread_count

_PART = 32_000
"""Characters of LLVM IR that a thread is worth."""
_MOST_PARTS = 4
_SHORT = 2_000
"""Characters of a function that every part that calls it has for itself."""

_HEAD = re.compile(r"^define (?:(?:private|internal|(?:linkonce|weak)(?:_odr)?) )?([^\n]*) (?=\{\n)", re.MULTILINE)
_END = "\n}\n"
_NAME = r'@("[^"]*"|[-\w.$]+)'
_USE = re.compile(_NAME)
_CALL = re.compile(rf"\bcall [^\n]*?{_NAME}\(")
_OWN_GLOBAL = re.compile(rf"^{_NAME} = (?!external |private (?:\w+ )*constant )", re.MULTILINE)
_VISIBLE = re.compile(r"^\s*\.globl\s+(.*)\n", re.MULTILINE)
_LABEL = re.compile(r"^\s*\.(?:ascii|asciz|string)\b.*\n|(\.L)", re.MULTILINE)


class _Definition:
    """``before``: the text between the definition in front and this one, which ends at ``end``."""

    def __init__(self, text: str, position: int, found: re.Match[str], has_calls: bool) -> None:
        self.before = text[position : found.start()]
        self.end = text.index(_END, found.end()) + len(_END)
        self.head, self.body = found[1], text[found.end() : self.end]
        name = _USE.search(self.head)
        assert name
        self.name = name[1]
        self.size = self.end - found.start()
        self.uses = set(_USE.findall(self.body))
        self.calls = set(_CALL.findall(self.body)) if has_calls else set[str]()


def _definitions(text: str, has_calls: bool) -> list[_Definition]:
    found: list[_Definition] = []
    for head in _HEAD.finditer(text):
        found.append(_Definition(text, found[-1].end if found else 0, head, has_calls))
    return found


def split(text: str, is_inlined: bool = False, exported: Collection[str] = ()) -> list[str]:
    """LLVM IR of modules that are about as large, and together define the functions that that of ``text`` does.

    ``is_inlined``: LLVM shall put functions into those that call them, and tell them their arguments; so these are
    one part, and short ones are in each. ``exported``: names that the caller needs.
    How many there are says the text alone, so that the same program becomes the same object everywhere.
    """
    if is_inlined and (len(text) < 2 * _PART or _OWN_GLOBAL.search(text)):
        return [text]
    definitions = _definitions(text, is_inlined)
    kept = _as_written(exported)
    copied = {d.name for d in definitions if is_inlined and d.size < _SHORT and d.name not in kept}
    groups = list(_groups([d for d in definitions if d.name not in copied], is_inlined))
    groups.sort(key=_size, reverse=True)
    total = sum(map(_size, groups))
    count = max(1, min(len(text) // _PART, _MOST_PARTS, -(-total // _size(groups[0])) if groups else 1))
    sizes, place = [0] * count, dict[str, int]()
    for group in groups:
        smallest = sizes.index(min(sizes))
        sizes[smallest] += _size(group)
        place.update((one.name, smallest) for one in group)
    users: dict[str, set[int]] = {}
    for one in definitions:
        for used in one.uses & place.keys():
            users.setdefault(used, set()).update([place[one.name]] if one.name in place else range(count))
    rest = text[definitions[-1].end if definitions else 0 :]

    def part(number: int) -> str:
        def written(one: _Definition) -> str:
            if one.name in copied:
                return f"define private {one.head} {one.body}"
            if place[one.name] != number:
                return f"declare dso_local {one.head}\n"
            is_local = one.name not in kept and users.get(one.name, set()) <= {number}
            return f"define {'internal ' if is_inlined and is_local else ''}{one.head} {one.body}"

        return "".join(one.before + written(one) for one in definitions) + rest

    return [part(number) for number in range(count)]


def _as_written(names: Collection[str]) -> set[str]:
    """In IR and in assembly, which have some of them in quotes."""
    return {written for name in names for written in (name, f'"{name}"')}


def _size(group: Sequence[_Definition]) -> int:
    return sum(one.size for one in group)


def _groups(definitions: Sequence[_Definition], is_inlined: bool) -> Iterator[list[_Definition]]:
    """Those that call each other, by any way, if they shall be one part."""
    groups = {one.name: [one] for one in definitions}
    for one in definitions if is_inlined else ():
        for called in one.calls & groups.keys():
            if groups[called] is not (mine := groups[one.name]):
                mine += groups[called]
                groups.update((other.name, mine) for other in groups[called])
    yield from {id(group): group for group in groups.values()}.values()


class Parts:
    """Modules that are compiled while the caller does something else, on all cores but the caller's.

    ``make_machine`` gives LLVM's target machine. ``prefix``: letters of labels that no other assembly of the same
    object has. ``exported``: the functions that other objects may call.
    """

    def __init__(
        self,
        texts: Sequence[str],
        make_machine: Callable[[], Any],
        parser: Callable[[Any, Any], AbstractContextManager[Callable[[str], Any]]],
        optimize: Callable[[Any, Any], None],
        prefix: str = "",
        exported: Collection[str] = (),
    ) -> None:
        self._make_machine, self._parser, self._optimize = make_machine, parser, optimize
        self._exported = _as_written(exported)
        self._results: list[str | RuntimeError] = [RuntimeError("its thread failed") for _ in texts]
        self._waiting = deque((number, text, f".L{prefix}{number}_") for number, text in enumerate(texts))
        self._threads: list[Thread] = []
        for _ in range(min(len(texts), thread_count(taken=1))):
            thread = Thread(target=self._work)
            try:
                thread.start()
            except RuntimeError:  # there can be no more of them
                break
            self._threads.append(thread)

    def _work(self) -> None:
        while True:
            try:
                part = self._waiting.popleft()
            except IndexError:
                return
            self._compile(*part)

    def _compile(self, number: int, text: str, label: str) -> None:
        import llvmlite.binding as llvm

        machine = self._make_machine()
        machine.set_asm_verbosity(False)
        try:
            with self._parser(llvm, machine) as parse:
                module = parse(text)
                self._optimize(module, machine)
                assembly = _assembly(llvm, module, machine)
        except RuntimeError as error:
            self._results[number] = error
            return
        # What begins so is local to an assembly; all of these are parts of one, and what others may not call is
        # seen by nobody else.
        assembly = _LABEL.sub(lambda found: label if found[1] else found[0], assembly)
        self._results[number] = _VISIBLE.sub(lambda found: found[0] * (found[1] in self._exported), assembly)

    def as_module(self) -> str:
        """LLVM IR text of a module that is their assembly. Raises RuntimeError if LLVM refuses them."""
        self._work()  # the caller's core is free now
        for thread in self._threads:
            thread.join()
        text = ""
        for result in self._results:
            if isinstance(result, RuntimeError):
                raise result
            text += result
        for character in '\\"\n':
            text = text.replace(character, f"\\{ord(character):02X}")
        return f'module asm "{text}"\n'


def run_passes(llvm: Any, passes: Any, module: Any, builder: Any) -> None:
    """What ``passes.run`` does, which would let no other thread call LLVM meanwhile.

    LLVM's contexts do not share anything; llvmlite guards them all by one lock.
    """
    run = ctypes.CDLL(llvm.ffi.lib._name).LLVMPY_RunNewModulePassManager
    run.argtypes, run.restype = [ctypes.c_void_p] * 3, None
    run(passes, module, builder)


def _assembly(llvm: Any, module: Any, machine: Any) -> str:
    """What ``machine.emit_assembly`` gives, for the same reason."""
    library = ctypes.CDLL(llvm.ffi.lib._name)
    emit = library.LLVMPY_TargetMachineEmitToMemory
    emit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    emit.restype = library.LLVMPY_GetBufferStart.restype = ctypes.c_void_p
    library.LLVMPY_GetBufferSize.restype = ctypes.c_size_t
    with llvm.ffi.OutputString() as error:
        buffer = ctypes.c_void_p(emit(machine, module, 0, error))
        if not buffer:
            raise RuntimeError(str(error))
    start, size = library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer)
    text = ctypes.string_at(start, size).decode()
    library.LLVMPY_DisposeMemoryBuffer(buffer)
    return text
