"""The conformance suite for backends: ``devscope check-backend``.

It compiles programs with the backend, runs what it claims beside the same program without it, saves and loads
that, and looks at options and errors.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from devscope.agreement import TOLERANCE, Array, as_numbers, random_array, relative_error
from devscope.analysis.symbols import Symbols, is_claimed
from devscope.api import chosen_entry, load, plan
from devscope.api import compile as compile_program
from devscope.backends.registry import find_backends, get_backend, version_of
from devscope.compile_options import CompileOptions
from devscope.dialects.target import OptionSpec, get_target_kind
from devscope.errors import DeviceNotFoundError, DevscopeError, OptionError
from devscope.guarded_memory import GuardedArray, guarded_device
from devscope.planning import plan_source
from devscope.runtime.child_process import ending, python
from devscope.runtime.drivers import Device, driver
from devscope.runtime.executable import Executable
from devscope.runtime.program import Entry


class Outcome(NamedTuple):
    """``problem`` is empty if all is well."""

    what: str
    problem: str = ""


def _matmul(element: str, sizes: tuple[str, str, str], tail: str = "", result: str = "%r", more: str = "") -> str:
    m, k, n = sizes
    a, b, c = f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>", f"tensor<{m}x{n}x{element}>"
    dynamic = ", ".join(size for size, text in (("%m", m), ("%n", n)) if text == "?")
    text = f"""
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : {element}
      %m = tensor.dim %a, %c0 : {a}
      %n = tensor.dim %b, %c1 : {b}
      %e = tensor.empty({dynamic}) : {c}
      %z = linalg.fill ins(%zero : {element}) outs(%e : {c}) -> {c}
      %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%z : {c}) -> {c}
      {tail}
      return {result} : {c}"""
    tail_type = more.replace("N", n).replace("E", element)
    return f"func.func @main(%a: {a}, %b: {b}{tail_type}) -> {c} {{{text}\n}}".replace("$C", c).replace(
        "$V", f"tensor<{n}x{element}>"
    )


_BIAS = """%bb = linalg.broadcast ins(%v : $V) outs(%e : $C) dimensions = [0]
      %s = arith.addf %r, %bb : $C"""
_RELU = (
    _BIAS
    + """
      %t = linalg.max ins(%s, %z : $C, $C) outs(%e : $C) -> $C"""
)


def _conv(name: str, image: str, filters: str, result: str) -> str:
    return f"""func.func @main(%a: tensor<{image}xf32>, %b: tensor<{filters}xf32>) -> tensor<{result}xf32> {{
      %z = arith.constant dense<0.0> : tensor<{result}xf32>
      %r = linalg.{name} {{strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
        ins(%a, %b : tensor<{image}xf32>, tensor<{filters}xf32>)
        outs(%z : tensor<{result}xf32>) -> tensor<{result}xf32>
      return %r : tensor<{result}xf32>
    }}"""


def _product(name: str, a: str, b: str, c: str) -> str:
    return f"""func.func @main(%a: tensor<{a}xf32>, %b: tensor<{b}xf32>) -> tensor<{c}xf32> {{
      %z = arith.constant dense<0.0> : tensor<{c}xf32>
      %r = linalg.{name} ins(%a, %b : tensor<{a}xf32>, tensor<{b}xf32>)
        outs(%z : tensor<{c}xf32>) -> tensor<{c}xf32>
      return %r : tensor<{c}xf32>
    }}"""


def programs() -> dict[str, str]:
    """Programs that backends may claim parts of."""
    found: dict[str, str] = {}
    for element in ("f32", "f64"):
        for kind, sizes in (("static", ("6", "5", "7")), ("dynamic", ("?", "?", "?"))):
            more = ", %v: tensor<NxE>"
            found[f"matmul {element} {kind}"] = _matmul(element, sizes)
            found[f"matmul + bias {element} {kind}"] = _matmul(element, sizes, _BIAS, "%s", more)
            found[f"matmul + bias + relu {element} {kind}"] = _matmul(element, sizes, _RELU, "%t", more)
    for turned, maps, a, b in (("left", "(k, m)|(k, n)", "5x6", "5x7"), ("right", "(m, k)|(n, k)", "6x5", "7x5")):
        shown = [f"affine_map<(m, n, k) -> {one}>" for one in (*maps.split("|"), "(m, n)")]
        name = f"matmul indexing_maps = [{', '.join(shown)}]"
        found[f"matmul, the {turned} matrix transposed"] = _product(name, a, b, "6x7")
    found["batch matmul"] = _product("batch_matmul", "3x6x5", "3x5x7", "3x6x7")
    found["matvec"] = _product("matvec", "6x5", "5", "6")
    found["vecmat"] = _product("vecmat", "6", "6x5", "5")
    found["conv2d nhwc"] = _conv("conv_2d_nhwc_hwcf", "2x8x9x3", "3x2x3x4", "2x3x8x4")
    found["conv2d nchw"] = _conv("conv_2d_nchw_fchw", "2x3x8x9", "4x3x3x2", "2x4x3x8")
    found["softmax"] = """func.func @main(%a: tensor<6x5xf32>) -> tensor<6x5xf32> {
      %e = tensor.empty() : tensor<6x5xf32>
      %r = linalg.softmax dimension(1) ins(%a : tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
      return %r : tensor<6x5xf32>
    }"""
    found["elementwise"] = """func.func @main(%a: tensor<?x5xf32>, %b: tensor<?x5xf32>) -> tensor<?x5xf32> {
      %0 = arith.addf %a, %b : tensor<?x5xf32>
      %1 = math.tanh %0 : tensor<?x5xf32>
      return %1 : tensor<?x5xf32>
    }"""
    return found


def check_backend(text: str) -> Iterator[Outcome]:
    """What the suite finds, step by step. ``text``: ``NAME`` or ``NAME:OPTION=VALUE``.

    Raises OptionError if there is no such backend, DeviceNotFoundError if this machine has no device for it, or
    lacks what its programs call.
    """
    name = text.partition(":")[0]
    backend = get_backend(name)
    yield Outcome(f"registers: target kind '{name}' for devices of type '{backend.device_type}'")
    for option, spec in backend.options.items():
        yield _option(name, option, spec)
    yield _refused("an unknown option is refused", f"{name}:no_such_option=1")
    version_of(backend)
    device = _found_device(text)
    claimed, refused = set[str](), set[str]()
    own = {f"its own program {n}": program for n, program in enumerate(backend.programs, 1)}
    with tempfile.TemporaryDirectory() as folder:
        saved = _Saved(Path(folder))
        for title, program in {**programs(), **own}.items():
            found, outcomes = _run(text, device, program, claimed, refused, saved, title)
            claimed |= found
            if found:
                yield from (Outcome(f"{title}: {what}", problem) for what, problem in outcomes)
            elif title in own:
                yield Outcome(title, "it claims nothing of it")
        yield from saved.outcomes()
    for row in backend.patterns:
        if row[0] in refused - claimed:
            yield Outcome(f"pattern '{row[0]}': matched, and its predicate says why it is not taken")
        elif row[0] not in claimed:
            yield Outcome(
                f"pattern '{row[0]}'", "it matched in no program: give one that it matches in Backend.programs"
            )


def _option(name: str, option: str, spec: OptionSpec) -> Outcome:
    kind, wrong = get_target_kind(name), {str: 1, int: "text", bool: "text"}[spec.type]
    try:
        kind.check_options({option: wrong})
    except OptionError:
        return Outcome(f"option '{option}' ({spec.type.__name__})")
    return Outcome(f"option '{option}'", f"{wrong!r} was taken for {spec.type.__name__}")


def _found_device(text: str) -> Device:
    (selected,) = find_backends([text])
    kind = driver(selected.backend.device_type)
    found = kind.find(selected.device) if kind is not None else None
    if found is None:
        raise DeviceNotFoundError(
            f"backend '{selected.name}' computes on {selected.device}, which this machine does not have",
            notes=[kind.advice] if kind is not None and kind.advice else [],
        )
    return found


def _refused(what: str, text: str) -> Outcome:
    try:
        find_backends([text])
    except OptionError:
        return Outcome(what)
    return Outcome(what, "it was taken")


def _run(
    backend: str, device: Device, text: str, known: set[str], refused: set[str], saved: _Saved, title: str
) -> tuple[set[str], list[Outcome]]:
    """The patterns that were claimed of a program, and how that went; it is saved if some are not ``known``.

    Those that matched and were not taken are added to ``refused``.
    """
    outcomes: list[Outcome] = []
    patterns: set[str] = set()
    what = "compiles"
    try:
        planned = plan_source(text, CompileOptions(backends=[backend]))
        assert planned.partition is not None
        refused |= {one.pattern for one in planned.partition.refusals if not one.near}
        claimed = [one for one in Symbols(planned.module).functions.values() if is_claimed(one)]
        if not claimed:
            return patterns, []
        reference = compile_program(text)
        with guarded_device(device, max(len(one.function_type.outputs) for one in claimed)) as damage:
            executable = compile_program(text, backends=[backend], cache=False)
            patterns = {taken["pattern"] for taken in executable.program.report.get("backends", [])}
            name = chosen_entry(executable.entries, None)
            for size in (4, 0, 1):
                what = f"runs with dynamic sizes {size}"
                problem = _compare(executable, reference, name, size)
                outcomes.append(Outcome(what, damage[0] if damage else problem))
                if outcomes[-1].problem:
                    return patterns, outcomes  # what writes where it should not would do so without margins, too
                if all(None not in spec.shape for spec in executable.entries[name].inputs):
                    break
        what = "refuses shapes that do not fit"
        outcomes.append(Outcome(what, _errors(executable, reference, name)))
        what = "is searched, with its costs"
        plan(text, backends=[backend], partition="search")
        outcomes.append(Outcome(what))
        if not patterns <= known:
            what = "is saved"
            saved.add(title, executable, reference, name)
    except DeviceNotFoundError:
        raise  # so would all others be
    except DevscopeError as error:
        outcomes.append(Outcome(what, str(error)))
        patterns |= {str(getattr(error, "pattern", "")) or "?"}
    return patterns, outcomes


def _arguments(executable: Executable, name: str, size: int) -> list[Array]:
    inputs = executable.entries[name].inputs
    return [random_array((size, number), spec, size) for number, spec in enumerate(inputs)]


def _difference(entry: Entry, found: Sequence[Any], expected: Sequence[Any]) -> str:
    for number, spec in enumerate(entry.outputs):
        got, want = (as_numbers(results[number], spec.dtype) for results in (found, expected))
        which = f"result {number}" if len(entry.outputs) > 1 else "the result"
        if got.shape != want.shape:
            return f"{which} has shape {got.shape}, not {want.shape}"
        if not (error := relative_error(got, want)) <= TOLERANCE.get(spec.dtype, 0.0):
            return f"{which} differs from the host's (relative error {error:.2e})"
    return ""


def _compare(executable: Executable, reference: Executable, name: str, size: int) -> str:
    """Twice, since neither what a call leaves behind may matter, nor what lies around operands and in results."""
    arguments = _arguments(executable, name, size)
    expected = reference.run_arrays(name, arguments)
    for byte in (0, 0xFF):
        given = [GuardedArray(one, byte) for one in arguments]
        for one, argument in zip(given, arguments, strict=True):
            one.array[...] = argument
        empty = [GuardedArray(one, byte) if isinstance(one, np.ndarray) else None for one in expected]
        found = executable.run_arrays(name, [one.array for one in given], [one and one.array for one in empty])
        if any(one.array.tobytes() != other.tobytes() for one, other in zip(given, arguments, strict=True)):
            return "it writes to its operands"
        for what, each in (("operand", given), ("result", empty)):
            for number, one in enumerate(each):
                if one is not None and (side := one.damage()):
                    return f"it writes {side} {what} {number}"
        if problem := _difference(executable.entries[name], found, expected):
            return f"{problem}, where memory around operands and in results is {byte:#x} before"
    left = {device: count for device, count in executable.counters().live.items() if count}
    return f"buffers are left over: {left}" if left else ""


def _errors(executable: Executable, reference: Executable, name: str) -> str:
    """What is wrong if not all shapes that do not fit are refused, or the program does not go on to work."""
    arguments = _arguments(executable, name, 4)
    if arguments:
        try:
            wrong = np.zeros((3,) * (arguments[0].ndim + 1), arguments[0].dtype)
            executable.run_arrays(name, [wrong, *arguments[1:]])
            return "they were taken"
        except DevscopeError:
            pass
    found, expected = (one.run_arrays(name, arguments) for one in (executable, reference))
    return _difference(executable.entries[name], found, expected)


_LOAD = """
import devscope, numpy as np
for path, name in zip(sys.argv[1::2], sys.argv[2::2]):
    executable = devscope.load(path + ".dsx")
    given = np.load(path + ".npz")
    results = executable.run_arrays(name, [given[argument] for argument in given.files])
    np.savez(path + ".results.npz", *map(np.asarray, results))
    print(" ".join(loaded for loaded in ("xdsl", "mlir", "torch_mlir") if loaded in sys.modules), flush=True)
"""


class _SavedProgram(NamedTuple):
    title: str
    path: str
    """Without the file's ending."""
    name: str
    """Of the function to call."""
    entry: Entry
    expected: Sequence[Any]


class _Saved:
    """Programs that a process of their own loads, which must not need the compiler."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[_SavedProgram] = []

    def add(self, title: str, executable: Executable, reference: Executable, name: str) -> None:
        arguments, path = _arguments(executable, name, 4), str(self._folder / str(len(self._waiting)))
        executable.save(f"{path}.dsx")
        load(f"{path}.dsx").close()
        np.savez(f"{path}.npz", *arguments)
        expected = reference.run_arrays(name, arguments)
        self._waiting.append(_SavedProgram(title, path, name, executable.entries[name], expected))

    def outcomes(self) -> Iterator[Outcome]:
        """Where a program ends the process, another one goes on with those behind it."""
        while self._waiting:
            given = [text for one in self._waiting for text in (one.path, one.name)]
            process = subprocess.run(python(_LOAD, *given), capture_output=True, text=True, check=False)
            said = process.stdout.splitlines()
            for loaded, one in zip(said, self._waiting, strict=False):
                results = np.load(f"{one.path}.results.npz")
                found = [results[result] for result in results.files]
                problem = f"loading it imported {loaded}" if loaded else ""
                yield Outcome(f"{one.title}: {_WHAT}", problem or _difference(one.entry, found, one.expected))
            last, self._waiting = self._waiting[-1], self._waiting[len(said) :]
            if process.returncode:
                lines = process.stderr.strip().splitlines()
                found = next((line for line in lines if "error: " in line), "")
                one = self._waiting.pop(0) if self._waiting else last
                yield Outcome(f"{one.title}: {_WHAT}", found or ending(process.returncode, process.stderr))


_WHAT = "runs when saved and loaded, without the compiler"
