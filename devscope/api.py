"""The Python API: compile a program, run it, load a saved one.

```python
import devscope

exe = devscope.compile("model.mlir", default="cpu:0", devices={"cuda:0": "opencl:0"})
logits = exe(images)
exe.save("model.dsx")
```
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from devscope.compile_options import CompileOptions, checked_limits, require_use_of_machine
from devscope.dataclass_code import dataclass_code_kept
from devscope.errors import ArgumentError, DevscopeWarning, InputError, Note, OptionError, option_note
from devscope.frontends import Examples, ImportedSource, given_back, imported, is_function, is_onnx_model
from devscope.gc_pause import gc_paused
from devscope.offered_kinds import find_offered_kinds
from devscope.runtime.threads import short_turns, thread_count
from devscope.source import read_once, source_digest

if TYPE_CHECKING:
    from devscope.passes.device_plan import Plan
    from devscope.pipeline import Admission
    from devscope.runtime.drivers import Device
    from devscope.runtime.executable import Executable
    from devscope.runtime.program import Entry, Program

find_offered_kinds()

HOST = "cpu:0"
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:[0-9]+")
_PHYSICAL = re.compile(_DEVICE.pattern + r"(\.[0-9]+)?")

Check = Callable[[Mapping[str, "Entry"], Collection[str]], object]

Source = str | bytes | os.PathLike[str]


def compile(
    source: Source | Any,
    example_arguments: Examples | None = None,
    *,
    dynamic_shapes: Any = None,
    default: str = "cpu:0",
    arguments: str = "host",
    devices: Mapping[str, str] | None = None,
    completion: str = "default",
    machine: str | os.PathLike[str] | None = None,
    memory_limits: Mapping[str, str | int] | None = None,
    storage: str = "planned",
    chunks: int = 1,
    checks: str = "off",
    schedules: str | os.PathLike[str] | None = None,
    backends: Sequence[str] = (),
    partition: str = "eager",
    costs: str | os.PathLike[str] | None = None,
    search_limit: float = 10.0,
    place: Any = None,
    threads: int | None = None,
    cache: bool = True,
) -> Executable:
    """Compile a program for the devices of this machine and load it.

    ``source`` is a path; MLIR or StableHLO in text, bytecode or as a portable artifact; a module of MLIR's Python
    bindings or of xDSL; an ONNX model (bytes, ``onnx.ModelProto``); a ``.pt2`` file or a
    ``torch.export.ExportedProgram``; or a JAX function, a ``torch.nn.Module`` or a function on tensors, traced
    with ``example_arguments``: a tuple of arrays, of pytrees of them, or of ``jax.ShapeDtypeStruct``, or a
    dictionary by name (docs/ways-in.md). An ONNX model that cannot be imported otherwise is compiled for their
    shapes. ``dynamic_shapes`` says for PyTorch which dimensions vary, as for ``torch.export.export``
    (docs/torch.md).

    ``devices`` maps virtual devices to physical ones (``{"cuda:0": "opencl:0"}``), ``memory_limits`` virtual
    devices to bytes, or to text such as ``"64MiB"``. ``threads`` is the most that a call uses on the host;
    ``None``: what the environment variable ``DEVSCOPE_THREADS`` says, else the cores of this process.
    Compiled programs are kept on disk and reused. All else is explained at `CompileOptions`.

    Raises a `DevscopeError`: InputError (no such file), ParseError, VerifyError, PlanError, LoweringError,
    DeviceNotFoundError, OptionError.
    """
    plain = {"default": default, "arguments": arguments, "completion": completion, "machine": machine}
    plain |= {"storage": storage, "checks": checks, "schedules": schedules}
    source = _imported(source, example_arguments, dynamic_shapes)
    plain |= {"backends": backends, "partition": partition, "costs": costs, "search_limit": search_limit}
    plain["place"] = place
    executable = executable_for(source, *_settings(devices, memory_limits, threads, cache, chunks=chunks, **plain))
    for text in executable.program.report["plan"]["placing"]:
        warnings.warn(DevscopeWarning(text), stacklevel=2)
    return executable


def _settings(
    devices: Mapping[str, str] | None = None,
    memory_limits: Mapping[str, str | int] | None = None,
    threads: int | None = None,
    cache: bool = True,
    **plain: Any,
) -> tuple[CompileOptions, dict[str, str], bool, int | None]:
    """What `executable_for` takes, of what `compile` takes."""
    mapping = checked_mapping(devices)
    limits = checked_limits(_as_mapping("memory_limits", memory_limits, {"opencl:0": "64MiB"}))
    thread_count(threads)
    options = CompileOptions(targets=target_overrides(mapping), memory_limits=limits, **plain)
    return options, mapping, _checked_cache(cache), threads


def _checked_cache(cache: bool) -> bool:
    if not isinstance(cache, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(
            f"'cache' is {cache!r}, and not True or False",
            notes=["another folder for the cache is named by the environment variable DEVSCOPE_CACHE_DIR"],
        )
    return cache


@contextmanager
def _compiling() -> Generator[None]:
    """Imports alone make so many objects that collections take a tenth of the time."""
    with gc_paused(), dataclass_code_kept():
        yield


@_compiling()
def _imported(source: Any, examples: Any = None, dynamic_shapes: Any = None) -> Any:
    return imported(source, examples, dynamic_shapes)


@_compiling()
def executable_for(
    source: Source | Any,
    options: CompileOptions,
    mapping: Mapping[str, str],
    cache: bool,
    threads: int | None = None,
    check: Check | None = None,
) -> Executable:
    """`compile` with options that are complete: those of the targets that ``mapping`` implies included.

    ``check`` gets the program's entries and the public functions that are none before the program is lowered, and
    raises an error if they will not do.
    """
    from devscope.runtime.cache import open_cache
    from devscope.runtime.devices import find_device, require_devices
    from devscope.runtime.executable import Executable
    from devscope.runtime.state import seen_entries, states_of

    def admit(
        entries: Mapping[str, Entry], closed: Collection[str], devices: Mapping[str, str]
    ) -> dict[str, Mapping[str, str | int]]:
        if check is not None:
            check(entries, closed)
        found = require_devices({name: kind for name, kind in devices.items() if name not in mapping})
        mapped = ((name, find_device(mapping[name])) for name in devices if name in mapping)
        found.update((name, device) for name, device in mapped if device is not None)
        return {name: device.target_options for name, device in found.items()}

    source = read_once(imported(source))
    store = open_cache() if cache and options.is_cacheable else None
    if store is None:
        program = _build(source, options, admit)
    else:
        key = cache_key(source_digest(source), options)
        program = store.load_program(key)
        if program is None:
            program = _build(source, options, admit)
            if options.names_backends_of(program):
                store.store_program(key, program)
        elif check is not None:
            check(seen_entries(program.entries, states_of(program)), program.report.get("closed", ()))
    store_of_drivers = "default" if cache else None
    return Executable(program, runtime_mapping(program, mapping), store_of_drivers, threads=threads)


def build(
    source: Source | Any, options: CompileOptions | None = None, example_arguments: Examples | None = None
) -> Program:
    """Compile a program without loading it: no device is needed. Raises as `compile` does."""
    if options is not None and not isinstance(options, CompileOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(
            f"options of type {type(options).__name__} are none", notes=["give devscope.CompileOptions"]
        )
    return _build(_imported(source, example_arguments), options or CompileOptions())


def _build(source: Source | Any, options: CompileOptions, admit: Admission | None = None) -> Program:
    from devscope.lowering.interop.package import load_libraries_ahead

    load_libraries_ahead()
    with _compiling(), short_turns():
        # Parsed before the rest of the compiler is loaded: memory use peaks while MLIR copies constants out of the
        # file, which it has mapped.
        from devscope.parsed_source import parse_source

        parsed = parse_source(source, detach=True)
        from devscope.pipeline import compile_source

        return compile_source(parsed, options, admit=admit)


def plan(
    source: Source | Any,
    example_arguments: Examples | None = None,
    *,
    dynamic_shapes: Any = None,
    default: str = "cpu:0",
    arguments: str = "host",
    completion: str = "default",
    machine: str | os.PathLike[str] | None = None,
    backends: Sequence[str] = (),
    partition: str = "eager",
    costs: str | os.PathLike[str] | None = None,
    place: Any = None,
) -> Plan:
    """Plan a program: which scope every operation and value gets, and which copies that takes.

    ``plan(...).module`` is the planned module, of the kind of ``source``: in the context of a module of MLIR's
    bindings, an xDSL module, or text. ``source`` stays as it is.

    Raises as `compile` does, and OptionError for a ``machine`` that is not looked at.
    """
    from devscope.planning import plan_source

    if place is None:
        require_use_of_machine(machine, completion, partition)
    options = CompileOptions(
        default,
        arguments,
        {},
        completion,
        machine,
        backends=backends,
        partition=partition,
        costs=costs,
        place=place,
    )
    require_use_of_machine(machine, options.completion, partition)
    planned = plan_source(_imported(source, example_arguments, dynamic_shapes), options)
    planned.plan.write = lambda: given_back(source, planned.session.to_mlir(planned.module))
    return planned.plan


def load(
    path: str | os.PathLike[str],
    *,
    devices: Mapping[str, str] | None = None,
    cache: bool = True,
    trusted_keys: Sequence[str | os.PathLike[str]] | None = None,
    threads: int | None = None,
) -> Executable:
    """Load a saved executable. Needs neither MLIR nor xDSL. What drivers make of it is kept on disk.

    ``path`` is that of a regular file: what comes through a pipe has to be written to one first.
    A saved executable is machine code: call only what you trust. With ``trusted_keys``, paths of public keys,
    files are refused that none of them signed. docs/trust.md says what loading checks. ``threads``: as `compile`.

    Raises ExecutableFormatError for a damaged or foreign file, or one that no trusted key signed,
    DeviceNotFoundError for a missing device, OptionError for what is no key, InputError for what is no path.
    """
    from devscope.runtime.executable import Executable

    store = "default" if _checked_cache(cache) else None
    return Executable.load(path, checked_mapping(devices), store, trusted_keys=trusted_keys, threads=threads)


def run(source: Source | Any, *inputs: Any, entry: str | None = None, **named: Any) -> Any:
    """Compile ``source`` and call one of its functions, with arguments by position or ``named`` as in the source.

    They are the examples that a JAX function is traced with, and that an ONNX model is compiled for where it
    cannot be for dimensions of any size.

    A keyword that `compile` has is that option: an argument of such a name is given by position. Raises as
    `compile` and `Executable.run` do.
    """
    from devscope.runtime.arguments import ArgumentList

    legal = compile.__kwdefaults__ or {}
    options = {name: named.pop(name) for name in legal if name in named}
    shapes = options.pop("dynamic_shapes", None)
    has_examples = is_function(source) or (is_onnx_model(source) and (named or inputs))
    source = _imported(source, named or inputs, shapes) if has_examples else _imported(source)
    structures = source.structures if isinstance(source, ImportedSource) else {}

    # Wrong arguments are refused before the program is compiled.
    def check(entries: Mapping[str, Entry], closed: Collection[str]) -> None:
        name = chosen_entry(entries, entry, closed)
        try:
            if name in structures:
                ArgumentList(name, entries[name])(structures[name].arrays(name, inputs, named))
            else:
                ArgumentList(name, entries[name])(inputs, named)
        except ArgumentError as error:
            if named or options:
                keywords = f"other keywords of run() are options: entry, {', '.join(legal)}"
                error.notes = (*error.notes, Note(f"{keywords}; arguments of these names are given by position"))
            raise

    with executable_for(source, *_settings(**options), check) as executable:
        return executable.run(chosen_entry(executable.entries, entry), *inputs, **named)


def list_devices() -> list[Device]:
    """The physical devices of this machine, ``cpu:0`` first; those that installed backends bring come last."""
    from devscope.runtime import devices

    return [*devices.list_devices(), *devices.backend_devices()[0]]


def chosen_entry(entries: Mapping[str, Entry], name: str | None, closed: Collection[str] = ()) -> str:
    """The entry to call: that of this name; without one, ``main`` or the only one. Raises InputError."""
    from devscope.runtime.program import find_entry

    names = list(entries)
    if not names:
        raise InputError("the program has no public function")
    if name is None and "main" not in names and len(names) > 1:
        raise InputError(
            "the program has several public functions and none is called 'main'",
            notes=[f"they are: {', '.join(names)}", option_note("say which to call:", "entry", names[0])],
        )
    chosen = name if name is not None else "main" if "main" in names else names[0]
    find_entry(entries, chosen, closed)
    return chosen


def checked_mapping(devices: Mapping[str, str] | None) -> dict[str, str]:
    """A device mapping as a dictionary. Raises OptionError for names that no device can have."""
    from devscope.dialects.target import device_types

    mapping = _as_mapping("devices", devices, {"cuda:0": "opencl:0"})
    for virtual, physical in mapping.items():
        for name, legal in ((virtual, _DEVICE), (physical, _PHYSICAL)):
            if not isinstance(name, str) or legal.fullmatch(name) is None:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise OptionError(f"{name!r} is not a device", notes=["write TYPE:NUMBER, such as opencl:0"])
            if (type_ := name.partition(":")[0]) not in device_types():
                _check_device_type(type_)
        if virtual == HOST and physical != HOST:
            raise OptionError(f"'{HOST}' is the host and cannot be mapped to '{physical}'")
        if physical.startswith("cpu:") and physical != HOST:
            raise OptionError(f"no machine has a device '{physical}'", notes=[f"the host is '{HOST}'"])
    return mapping


def _check_device_type(name: str) -> None:
    """Of an installed runtime of a backend, or of a backend; compiled programs need the former alone."""
    from devscope.dialects.target import check_device_type
    from devscope.runtime.plugins import runtime_names

    if name not in runtime_names():
        check_device_type(name)


def _as_mapping(option: str, given: Any, example: dict[str, str]) -> dict[Any, Any]:
    if given is None or isinstance(given, Mapping):
        return dict(given or {})  # pyright: ignore[reportUnknownVariableType]
    raise OptionError(
        f"'{option}' is {given!r}, which is no mapping", notes=[option_note("such as", option, example)]
    )


def target_overrides(devices: Mapping[str, str]) -> dict[str, str]:
    """Target kinds that a device mapping implies: a virtual device is built for the kind it runs on."""
    kinds = {virtual: physical.partition(":")[0] for virtual, physical in devices.items()}
    return {virtual: kind for virtual, kind in kinds.items() if kind != virtual.partition(":")[0]}


def runtime_mapping(program: Program, devices: Mapping[str, str]) -> dict[str, str]:
    """The part of a device mapping that is left at run time: devices built for the host are gone."""
    used = {device.name for device in program.devices}
    return {v: p for v, p in devices.items() if v in used or p != HOST}


def cache_key(source: str, options: CompileOptions) -> str:
    """Digest of everything that a compiled program depends on: source (its digest), options, versions, machine."""
    from devscope.fingerprint import compiler_fingerprint
    from devscope.runtime.cache import environment_key

    parts = source, compiler_fingerprint(), options.key(), environment_key()
    return hashlib.sha256("".join(parts).encode()).hexdigest()


__all__ = ["CompileOptions", "build", "compile", "list_devices", "load", "plan", "run"]
