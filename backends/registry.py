"""Which backends there are: those that were registered, and those that installed packages offer.

A package offers one as an entry point of the group ``devscope.backends``, whose name is the backend's: a
`Backend`, or a subclass, made without arguments. It is imported when a compilation names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from xdsl.passes import ModulePass

from devscope.analysis.patterns.language import (
    Broadcast,
    Custom,
    Either,
    Elementwise,
    Op,
    Pattern,
    of_the_same_value,
)
from devscope.analysis.symbols import Symbols, is_public
from devscope.backends.backend import Backend, Options, Phase, Selected
from devscope.dialects.target import (
    OptionSpec,
    OptionValue,
    TargetKind,
    device_types,
    get_target_kind,
    register_target_kind,
    target_kinds,
)
from devscope.errors import LoweringError, OptionError, raised_as
from devscope.fingerprint import package_fingerprint, package_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from xdsl.dialects.builtin import ModuleOp

GROUP = "devscope.backends"

_RESERVED = {"device", "merge", "name", "fallback"}
"""What no option may be called: text such as ``NAME:device=vanilla:1`` says these of a backend itself."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_WORD = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_WORDS = "names are letters, digits, '_', '-' and '.', and begin with a letter"
_registered: dict[str, Backend] = {}


def register_backend(backend: Backend | type[Backend]) -> Backend:
    """Make a backend known, and its target kind. Raises OptionError for what is wrong with it.

    The same one again changes nothing; another one of its name is refused.
    """
    shown = getattr(backend, "name", backend)
    with raised_as(OptionError, f"backend '{shown}' cannot be made"):
        made: Any = backend() if isinstance(backend, type) else backend
    if not isinstance(made, Backend):
        raise OptionError(f"{made!r} is no devscope.Backend")
    with raised_as(OptionError, f"backend '{shown}' cannot be looked at"):
        _check(made)
    known = _registered.get(made.name)
    if known is not None and type(known) is type(made):
        return known
    if known is None and _is_offered_by_another(made):
        raise OptionError(
            f"backend '{made.name}' exists already: an installed package offers it",
            notes=[f"installed: {', '.join(backend_names())}"],
        )
    if made.name in target_kinds():
        raise OptionError(
            f"target '{made.name}' exists already: a backend's name is that of a target kind of its own",
            notes=[f"registered: {', '.join(sorted(target_kinds()))}"],
        )
    generated = made.device_type != made.name
    register_target_kind(TargetKind(made.name, made.device_type, dict(made.options), generated=generated))
    _registered[made.name] = made
    return made


def is_registered(name: str) -> bool:
    """Whether a backend of this name is known, and imported."""
    return name in _registered


def is_offered(backend: Backend) -> bool:
    """Whether it is of the installed package that offers a backend of its name, from whichever module."""
    point = _offered().get(backend.name)
    return point is not None and package_of(type(backend).__module__) == package_of(point.module)


def _is_offered_by_another(backend: Backend) -> bool:
    """Whether an installed package has another backend of this name, which may not be imported yet."""
    return backend.name in _offered() and not is_offered(backend)


_KINDS: Sequence[tuple[str, type | tuple[type, ...], str]] = (
    ("options", Mapping, "a dict of OptionSpec"),
    ("device_type", str, "a text, such as 'cpu'"),
    ("patterns", (list, tuple), "a list of Row"),
    ("passes", Mapping, "a dict of lists, by phase"),
    ("lowering", (list, tuple), "a list of texts"),
    ("merge", bool, "True or False"),
    ("programs", (list, tuple), "a list of texts"),
)
"""What attributes of a backend are."""


def _check_kinds(backend: Backend) -> None:
    found = [(name, getattr(backend, name), kind, legal) for name, kind, legal in _KINDS]
    for phase, passes in backend.passes.items() if isinstance(backend.passes, Mapping) else ():  # pyright: ignore[reportUnnecessaryIsInstance]
        found.append((f"passes[{phase!r}]", passes, (list, tuple), "a list of passes"))
    for name in ("lowering", "programs"):
        texts: Any = getattr(backend, name)
        found += [
            (f"{name}[...]", one, str, "a text") for one in (texts if isinstance(texts, list | tuple) else ())
        ]
    for name, value, kind, legal in found:
        if not isinstance(value, kind):
            raise OptionError(f"backend '{backend.name}': '{name}' is {value!r}", notes=[f"it is {legal}"])


def _check(backend: Backend) -> None:
    name = getattr(backend, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OptionError(
            f"{name!r} cannot be the name of a backend",
            notes=["names are lower-case letters, digits and '_', and begin with a letter"],
        )
    _check_kinds(backend)
    for option, spec in backend.options.items():
        if not isinstance(option, str) or not _WORD.fullmatch(option):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"backend '{name}': {option!r} cannot be the name of an option", notes=[_WORDS])
        if option in _RESERVED:
            raise OptionError(
                f"backend '{name}': an option cannot be called '{option}'",
                notes=[f"reserved: {', '.join(sorted(_RESERVED))}"],
            )
        if not isinstance(spec, OptionSpec) or spec.type not in (str, int, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            given = spec.type.__name__ if isinstance(spec, OptionSpec) else repr(spec)  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(
                f"backend '{name}': option '{option}' has type {given}",
                notes=["legal: OptionSpec(str), OptionSpec(int), OptionSpec(bool)"],
            )
    if backend.device_type not in (name, *device_types()):
        raise OptionError(
            f"backend '{name}' has devices of type '{backend.device_type}'",
            notes=[f"'cpu' is the host's memory; devices of its own are of type '{name}'"],
        )
    _check_passes(backend)
    _check_patterns(backend)


def _check_passes(backend: Backend) -> None:
    name = backend.name
    legal = [phase.value for phase in Phase]
    for phase in backend.passes:
        if (phase.value if isinstance(phase, Phase) else phase) not in legal:
            raise OptionError(f"backend '{name}': unknown phase '{phase}'", notes=[f"legal: {', '.join(legal)}"])
        for one in backend.passes[phase]:
            if not (isinstance(one, ModulePass) or (isinstance(one, type) and issubclass(one, ModulePass))):
                raise OptionError(f"backend '{name}': {one!r} is no xdsl.passes.ModulePass")


def _check_patterns(backend: Backend) -> None:
    name = backend.name
    seen: set[str] = set()
    for row in backend.patterns:
        if not (isinstance(row, tuple) and len(row) == 3 and isinstance(row[0], str)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(
                f"backend '{name}': {row!r} is no row of patterns", notes=["write Row(NAME, PATTERN)"]
            )
        if not _WORD.fullmatch(row[0]):
            raise OptionError(f"backend '{name}': {row[0]!r} cannot be the name of a pattern", notes=[_WORDS])
        if row[2] is not None and not callable(row[2]):
            raise OptionError(f"backend '{name}': the predicate of pattern '{row[0]}' is {row[2]!r}, no function")
        if row[0] in seen:
            raise OptionError(f"backend '{name}' has two patterns '{row[0]}'")
        seen.add(row[0])
    for row in backend.patterns:
        _check_pattern(name, row[0], row[1])


def _check_pattern(backend: str, name: str, pattern: Any) -> None:
    if not isinstance(pattern, Pattern):
        raise OptionError(f"backend '{backend}': pattern '{name}' is {pattern!r}, not of devscope.patterns")
    if not any(isinstance(one, Op | Elementwise | Broadcast | Custom) for one in of_the_same_value(pattern)):
        raise OptionError(
            f"backend '{backend}': pattern '{name}' cannot match: it takes no operation",
            notes=["a wildcard and a constant are what operations take"],
        )


def check_operations(backends: Iterable[Selected], exists: Callable[[str], bool]) -> None:
    """Raises OptionError for a pattern that cannot match since none of the operations that it names ``exists``.

    One name of several that exists is enough: patterns may be written for several versions of a dialect, and for
    programs before and after they become linalg.
    """

    def missing(pattern: Pattern) -> str | None:
        if isinstance(pattern, Either):
            found = [missing(one) for one in pattern.alternatives]
            return found[0] if None not in found else None
        names = pattern.names if isinstance(pattern, Op) else pattern.roots if isinstance(pattern, Custom) else ()
        if names and not any("*" in name.partition(".")[0] or exists(name) for name in names):
            return pattern.text()
        return next(filter(None, map(missing, pattern.parts())), None)

    for selected in backends:
        for name, pattern, _ in selected.backend.patterns:
            if (operation := missing(pattern)) is not None:
                raise OptionError(
                    f"backend '{selected.name}': pattern '{name}' cannot match: there is no operation {operation}",
                    notes=["names are DIALECT.NAME as MLIR writes them"],
                )


@cache
def _offered() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def backend_names() -> list[str]:
    """All that can be named; none is imported."""
    return sorted({*_registered, *_offered()})


def get_backend(name: str) -> Backend:
    """The backend of this name. Raises OptionError if there is none, or if it cannot be imported."""
    if name in _registered:
        return _registered[name]
    point = _offered().get(name)
    if point is None:
        raise OptionError(
            f"unknown backend '{name}'", notes=[f"installed: {', '.join(backend_names()) or 'none'}"]
        )
    note = f"it is '{point.value}' of {point.dist.name if point.dist else 'a package'}"
    with raised_as(OptionError, f"backend '{name}' cannot be loaded", notes=[note]):
        loaded = point.load()
    is_class = isinstance(loaded, type) and issubclass(loaded, Backend)
    if not is_class and not isinstance(loaded, Backend):
        raise OptionError(f"backend '{name}': '{point.value}' is no devscope.Backend")
    made = register_backend(loaded)
    if made.name != name:
        raise OptionError(f"the backend that '{point.value}' offers as '{name}' calls itself '{made.name}'")
    return made


def find_backends(chosen: Iterable[str]) -> list[Selected]:
    """Backends as users name them, in this order, each once: ``blas``, ``vanilla:device=vanilla:1,banks=4``.

    Raises OptionError for a backend or an option that does not exist.
    """
    found: dict[str, Selected] = {}
    for text in chosen:
        one = _select(text)
        if one.name in found:
            raise OptionError(f"backend '{one.name}' is named twice")
        found[one.name] = one
    return list(found.values())


def _select(text: str) -> Selected:
    name, _, rest = text.partition(":")
    backend = get_backend(name.strip())
    kind = get_target_kind(backend.name)
    options: dict[str, OptionValue] = {}
    given: set[str] = set()
    device, fallback = f"{backend.device_type}:0", False
    for item in filter(None, (item.strip() for item in rest.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise OptionError(f"'{item}' is not an option of a backend", notes=["write NAME:OPTION=VALUE,..."])
        if key in given:
            raise OptionError(f"option '{key}' of backend '{name}' is given twice")
        given.add(key)
        if key == "device":
            if not re.fullmatch(re.escape(backend.device_type) + r":[0-9]+", value):
                raise OptionError(f"backend '{name}' runs on devices such as {device}, not on '{value}'")
            device = value
        elif key == "fallback":
            if value not in ("true", "false"):
                raise OptionError(f"'fallback' of backend '{name}' is true or false, not '{value}'")
            fallback = value == "true"
        else:
            options[key] = _parsed(kind.options.get(key), value)
    kind.check_options(options)
    with raised_as(OptionError, f"backend '{name}' cannot check its options"):
        backend.check_options(options)
    return Selected(backend, options, device, fallback)


def _parsed(spec: OptionSpec | None, text: str) -> OptionValue:
    if spec is not None and spec.type is int and re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    if spec is not None and spec.type is bool and text in ("true", "false"):
        return text == "true"
    return text


def run_passes_of(backend: Backend, phase: Phase, module: ModuleOp) -> None:
    """Run the passes of one phase, in the order in which the backend has them, and verify what they leave."""
    passes = [*backend.passes.get(phase, ()), *backend.passes.get(phase.value, ())]
    if not passes:
        return
    from devscope.dialects.context import make_planning_context

    context = make_planning_context()
    entries = _entries(module)
    for one in passes:
        with raised_as(LoweringError, f"backend '{backend.name}': its pass '{one.name}' failed {phase.value}"):
            (one() if isinstance(one, type) else one).apply(context, module)
            module.verify()
        if phase is Phase.AFTER_PARTITIONING_1 and _entries(module) != entries:
            raise LoweringError(
                f"backend '{backend.name}': its pass '{one.name}' changes what the program offers",
                notes=["public functions that were planned keep their names and types"],
            )


def _entries(module: ModuleOp) -> dict[str, object]:
    """The types of public functions."""
    functions = Symbols(module).functions
    return {name: op.function_type for name, op in functions.items() if op.body.blocks and is_public(op)}


def version_of(backend: Backend) -> str | None:
    """What changes when its code does; None if nothing tells."""
    with raised_as(OptionError, f"backend '{backend.name}' cannot say its version"):
        said: Any = backend.version()
        if not isinstance(said, str | None):
            raise TypeError(f"{said!r} is no text")
    if said is None and is_offered(backend):
        return package_fingerprint(type(backend).__module__)
    return said


def describe(backends: Sequence[Selected]) -> str:
    """What compiled programs depend on, of backends: for the key under which they are kept."""
    return repr(
        [
            (one.name, sorted(one.options.items()), one.device, one.fallback, version_of(one.backend))
            for one in backends
        ]
    )


__all__ = ["Options", "backend_names", "describe", "find_backends", "get_backend", "register_backend"]
