"""PyTorch: modules and functions, which ``torch.export`` traces, exported programs, and ``.pt2`` files.

| file | what it does |
|---|---|
| `__init__` | from what a user gives to an ``ExportedProgram``, and from that to an `ImportedSource` |
| `signature`, `weights` | names, nesting, state and weights of an exported program |
| `graphs` | the graphs of ``torch.compile``, for `devscope.torch_backend` |
| `random_numbers` | what PyTorch draws for these graphs |
| `data_classes` | those that PyTorch was not told of |
| `traced_functions`, `dynamic_functions` | functions that ``torch.export`` cannot trace, by others |
| `decompositions` | what PyTorch's operations are decomposed into; `*_decompositions`: our part |
| `constant_sizes` | which lines make constants of sizes |
| `packed_sequences`, `recurrences` | networks that go along sequences |
| `branches`, `loops`, `lowering_loops` | ``torch.cond``, ``while_loop``, ``scan``, ``map`` |
| `associative_scans` | ``associative_scan`` of sizes that vary |
| `empty_tensors`, `views` | parts of the graph in a form that torch-mlir lowers |
| `fx` | the graph as a module of torch-mlir's dialect, whose weights are names |
| `places` | where in the user's program a node is |
| `lowering`, `lowering_worker` | that module in linalg, made by another process |
| `assertions` | what torch-mlir asserts and the program does not |

Weights stay where PyTorch has them: the module has names for them, and the compiler views their memory.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import os
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import Any

from devscope.errors import InputError, LoweringError
from devscope.frontends import Examples, ImportedSource

_LONGEST = 600
"""Most characters of a message of PyTorch that are shown."""
_DEFERRED = "prefer_deferred_runtime_asserts_over_guards"


def read_function(source: Any, examples: Examples | None, dynamic_shapes: Any = None) -> ImportedSource:
    """The program of a ``torch.nn.Module`` or a function, traced by ``torch.export`` with example arguments.

    ``dynamic_shapes``: as ``torch.export.export`` takes it, by parameter: ``{"x": {0: Dim.DYNAMIC}}``.

    Raises InputError where PyTorch is not installed or cannot trace it, LoweringError for what is not supported.
    """
    torch = _torch()
    is_module = isinstance(source, torch.nn.Module)
    name = type(source).__name__ if is_module else getattr(source, "__name__", type(source).__name__)
    if examples is None:
        raise InputError(
            f"'{name}' is a {'module' if is_module else 'function'} of PyTorch: what it is called with decides "
            "what is compiled",
            notes=["give example_arguments=(x, ...): tensors as they will be given; dynamic_shapes= for others"],
        )
    from devscope.frontends.torch.constant_sizes import noted_constants
    from devscope.frontends.torch.data_classes import data_classes
    from devscope.frontends.torch.derivatives import (
        derivatives,
        export_below_autograd,
        in_operations,
        with_gradients,
    )
    from devscope.frontends.torch.dynamic_shapes import are_constant, check_ranks, complete, larger_examples
    from devscope.frontends.torch.lowering import Lowering
    from devscope.frontends.torch.traced_functions import traced_functions

    module = source if is_module else _as_module(torch, source)
    # The process is started first: it imports torch-mlir while PyTorch traces.
    with Lowering() as lowering, data_classes(module, examples):
        given, named = _arguments(torch, module, examples)
        shapes = complete(module, dynamic_shapes, given, named)

        def export(given: Any, named: Any, shapes: Any) -> Any:
            exported: Any = None
            with torch.no_grad(), traced_functions(), noted_constants() as constants:
                with derivatives() as taken:
                    try:
                        with _tracing(name, constants=constants.notes):
                            exported = _exported(torch, module, given, named, shapes, constants)
                    except InputError:
                        if not taken:
                            raise
                if not taken:
                    return exported
                with _tracing(name, constants=constants.notes):
                    if not shapes:
                        return torch.export.export(in_operations(module, given, named), given, named, strict=False)
                    return _exported(
                        torch, with_gradients(module), given, named, shapes, constants, export_below_autograd
                    )

        def enlarged(auto: bool) -> Any:
            larger = larger_examples(module, shapes, given, named, auto) if shapes else None
            if larger is None:
                return None if auto else export(given, named, shapes)
            exported = export(*larger, shapes)
            check_ranks(exported, export(given, named, None), name)
            return None if auto and are_constant(exported, larger, (given, named)) else exported

        exported = None
        if any(getattr(shape, "type", None) == torch.export.Dim.AUTO.type for shape in _leaves(torch, shapes)):
            with suppress(InputError):  # what PyTorch is asked to find out
                exported = enlarged(True)
        exported = exported or enlarged(False)
        return _program(exported, name, lowering)


def _exported(
    torch: Any, module: Any, given: Any, named: Any, shapes: Any, constants: Any, export: Any = None
) -> Any:
    """What it takes for granted of sizes and PyTorch cannot prove is looked at as the program runs."""
    from devscope.frontends.torch.constant_sizes import is_constraint

    export = functools.partial(export or torch.export.export, module, given, named, strict=False)

    try:
        return export(dynamic_shapes=shapes)
    except torch._dynamo.exc.UserError as error:
        if not is_constraint(error):
            raise
        with constants.as_sizes() as is_another:
            for further in [{}, {_DEFERRED: True}] if is_another else []:
                with suppress(torch._dynamo.exc.UserError):
                    return export(dynamic_shapes=shapes, **further)
        with suppress(torch._dynamo.exc.UserError):
            return export(dynamic_shapes=shapes, **{_DEFERRED: True})
        raise


def read_exported(exported: Any, name: str | None = None) -> ImportedSource:
    """The program of a ``torch.export.ExportedProgram``. Raises LoweringError for what is not supported."""
    from devscope.frontends.torch.lowering import Lowering

    with Lowering() as lowering:
        return _program(exported, name or type(exported).__name__, lowering)


def read_file(path: str | os.PathLike[str]) -> ImportedSource:
    """The program of a file that ``torch.export.save`` has written. Raises InputError for a file that is none."""
    torch = _torch()
    try:
        with _quiet():
            exported = torch.export.load(path)
    except Exception as error:
        raise InputError(f"'{path}' is no program of PyTorch: {_in_short(error)}") from error
    return read_exported(exported, os.fspath(path))


def _program(exported: Any, name: str, lowering: Any) -> ImportedSource:
    from devscope.frontends.torch import fx
    from devscope.frontends.torch.decompositions import decomposed, more
    from devscope.frontends.torch.dynamic_shapes import check_dynamic, look_at_squeezed
    from devscope.frontends.torch.lowering import UnsupportedOperationError
    from devscope.frontends.torch.signature import signature_of

    further: set[Any] = set()
    while True:
        with _tracing(name, "decompose"):
            program = decomposed(exported, further)
        check_dynamic(exported, program, name)
        look_at_squeezed(exported, program)
        signature = signature_of(program)
        module = fx.import_graph(program.graph, signature)
        try:
            text = lowering.linalg(module)
        except UnsupportedOperationError as error:
            found = more(program, error.operation, further)
            if not found:
                raise
            further |= found
            continue
        return ImportedSource(
            f"<PyTorch program {name}>",
            text,
            signature.names,
            signature.structures,
            literals=signature.literals,
            dtypes=signature.dtypes,
            state=signature.state,
        )


def _arguments(torch: Any, module: Any, examples: Examples) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Examples by position and by name, with tensors for numpy's arrays. Raises InputError."""
    numpy = importlib.import_module("numpy")

    seen: set[int] = set()

    def tensor(leaf: Any) -> Any:
        leaf = torch.from_numpy(leaf) if isinstance(leaf, numpy.ndarray) else leaf
        if isinstance(leaf, torch.Tensor):
            if leaf.is_conj() or leaf.is_neg():
                leaf = leaf.resolve_conj().resolve_neg()  # views, which the trace would look through
            if id(leaf) in seen:
                leaf = leaf.clone()  # torch.export takes two arguments that are one tensor in the example for one
        seen.add(id(leaf))
        return leaf

    examples = torch.utils._pytree.tree_map(tensor, examples)
    if not isinstance(examples, Mapping):
        return tuple(examples), {}
    try:
        bound = inspect.signature(module.forward).bind(**examples)
    except TypeError as error:
        raise InputError(f"the example arguments do not fit '{type(module).__name__}': {error}") from None
    return bound.args, bound.kwargs


def _leaves(torch: Any, shapes: Any) -> list[Any]:
    return torch.utils._pytree.tree_leaves(shapes)


def _as_module(torch: Any, function: Any) -> Any:
    """A module whose forward is ``function``: only modules are exported."""
    module = torch.nn.Module()

    def without_names(*arguments: Any) -> Any:
        return function(*arguments)

    try:
        inspect.signature(function)
        module.forward = function
    except ValueError:  # a function that is not Python's
        module.forward = without_names
    return module


@contextmanager
def _tracing(name: str, doing: str = "trace", constants: Sequence[str] = ()) -> Generator[None]:
    from devscope.frontends.torch.constant_sizes import is_constraint

    try:
        with _quiet():
            yield
    except Exception as error:
        notes = constants if is_constraint(error) else ()
        raise InputError(f"PyTorch cannot {doing} '{name}': {_in_short(error)}", notes=notes) from error


@contextmanager
def _quiet() -> Generator[None]:
    """Without the warnings that PyTorch has for itself, of which some are in its log: with a traceback, of a file
    that is no program."""
    log = logging.getLogger("torch.export")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _in_short(error: Exception) -> str:
    text = " ".join(str(error).split())
    for end in (" For more information about this error", " The error above occurred"):
        text = text.partition(end)[0]
    return f"{type(error).__name__}: {text[:_LONGEST]}"


def has_tensors(value: Any) -> bool:
    """Whether tensors of PyTorch are among example arguments."""
    if isinstance(value, Mapping):
        return any(map(has_tensors, value.values()))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return any(map(has_tensors, value))  # pyright: ignore[reportUnknownArgumentType]
    if is_dataclass(value):
        return any(has_tensors(getattr(value, part.name)) for part in fields(value))
    return any(kind.__name__ == "Tensor" and kind.__module__ == "torch" for kind in type(value).__mro__)


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise InputError(
            "the program is one of PyTorch, which is not installed",
            notes=["install it: pip install 'devscope[torch]'"],
        ) from None


__all__ = ["LoweringError", "has_tensors", "read_exported", "read_file", "read_function"]
