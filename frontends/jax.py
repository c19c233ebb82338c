"""JAX functions: ``jax.export`` traces them and writes StableHLO as a portable artifact.

They are exported for a platform that JAX does not know, for which it has its default rules: operations as
StableHLO defines them (``stablehlo.cholesky``, ``fft``, random bits by threefry), no calls of one platform's
libraries. Where a function has something without a default rule (``eigh``, ``svd``), or for named platforms alone
(what was exported for processors), the rules for processors are taken, whose calls of LAPACK are lowered by name
(`lowering/stablehlo/matrix_calls.py`).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from devscope.errors import InputError, LoweringError
from devscope.frontends import Examples, ImportedSource
from devscope.runtime.structure import CONVERSIONS, LEAF, Structure, Tree, leaf_paths

_PLATFORM, _OTHER_PLATFORM = "devscope", "cpu"
_ENTRY = "main"


def read_function(function: Any, examples: Examples | None) -> ImportedSource:
    """The program of a function, traced with example arguments, of which shapes and dtypes count.

    An example is anything that JAX takes, or a ``jax.ShapeDtypeStruct``, whose dimensions may be symbolic
    (``jax.export.symbolic_shape``): they are dynamic in the program.

    Raises InputError where JAX is not installed or the function cannot be traced.
    """
    jax, export = _jax(), _jax("jax.export")
    name = getattr(function, "__name__", type(function).__name__)
    if examples is None:
        raise InputError(
            f"'{name}' is a function: what it is called with decides what is compiled",
            notes=["give example_arguments=(x, ...): arrays, or jax.ShapeDtypeStruct(shape, dtype)"],
        )
    by_position, by_name = _bound(function, examples)
    staged = jax.jit(function, keep_unused=True)

    def exported_for(platform: str) -> Any:
        trace = export.export(staged, platforms=(platform,), _override_lowering_rules=_rules())
        return trace(*by_position, **by_name)

    try:
        try:
            exported = exported_for(_PLATFORM)
        except Exception:
            exported = exported_for(_OTHER_PLATFORM)
    except Exception as error:
        what = " ".join(str(error).split())
        advice = "jax.debug.print and callbacks call Python, which compiled programs do not: take them out"
        notes = [advice] if "host_callbacks" in what else []
        raise InputError(
            f"JAX cannot trace '{name}': {type(error).__name__}: {what[:_LONGEST]}", notes=notes
        ) from error
    given = jax.tree_util.tree_leaves((tuple(by_position), dict(by_name)))
    conversions = [_conversion(leaf, aval.dtype) for leaf, aval in zip(given, exported.in_avals, strict=True)]
    return read_exported(exported, _parameters(function, len(by_position)), name, conversions)


def _bound(function: Any, examples: Examples) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """What is given by position and what by name: all that may be by position is, as the function has it."""
    if not isinstance(examples, Mapping):
        return examples, {}
    try:
        bound = inspect.signature(function).bind(**examples)
    except (TypeError, ValueError):  # JAX says what is wrong
        return (), examples
    return bound.args, bound.kwargs


@functools.cache
def _rules() -> tuple[tuple[Any, Any], ...]:
    """LU is a call, which has blocks and products: JAX's default rule writes an algorithm out."""
    return ((_jax("jax.lax.linalg").lu_p, _jax("jax.ffi").ffi_lowering("LuDecomposition")),)


def _conversion(example: Any, traced: Any) -> str:
    """What JAX made of an example before it traced: see `Structure`."""
    conversion = f"{getattr(example, 'dtype', type(example).__name__)}:{traced.name}"
    return conversion if conversion in CONVERSIONS else ""


_LONGEST = 600
"""Most characters of a message of JAX that are shown."""


def read_exported(
    exported: Any, parameters: Sequence[str] = (), name: str | None = None, conversions: Sequence[str] = ()
) -> ImportedSource:
    """The program of a ``jax.export.Exported``; ``parameters`` are the names of those given by position.

    ``conversions``: see `Structure`.
    """
    positional, by_name = exported.in_tree.children()
    trees = [_tree(tree, "an argument") for tree in positional.children()]
    names = [*parameters, *(f"arg{number}" for number in range(len(parameters), len(trees)))]
    keywords = _tree(by_name, "an argument")
    for key, tree in keywords["dict"]:
        names.append(key)
        trees.append(tree)
    output = _tree(exported.out_tree, "the result")
    paths = [path for parameter, tree in zip(names, trees, strict=True) for path in leaf_paths(tree, parameter)]
    conversions = list(conversions) if any(conversions) else []
    structure = Structure(names, trees, output, len(positional.children()), conversions)
    results = list(leaf_paths(output, "result"))
    structures = {_ENTRY: structure}
    if not conversions and output == LEAF and all(tree == LEAF for tree in trees):
        structures = {}  # arrays that nest in nothing
    source = f"<JAX function {name or exported.fun_name}>"
    return ImportedSource(source, _module_of(exported), {_ENTRY: (paths, results)}, structures)


def _module_of(exported: Any) -> bytes:
    """The artifact; as text where it has attributes of Shardy, which only JAX reads as bytecode."""
    artifact = bytes(exported.mlir_module_serialized)
    return exported.mlir_module().encode() if b"\0sdy\0" in artifact else artifact


def _tree(definition: Any, what: str) -> Tree:
    """A ``PyTreeDef`` as a `Tree`. Raises LoweringError for containers that only JAX can take apart."""
    node = definition.node_data()
    if node is None:
        return LEAF
    kind, data = node
    children = [_tree(child, what) for child in definition.children()]
    if kind is type(None):
        return None
    if kind in (tuple, list):
        return {kind.__name__: children}
    if issubclass(kind, dict):
        keys = data[1] if issubclass(kind, collections.defaultdict) else data
        return {"dict": [[key, child] for key, child in zip(keys, children, strict=True)]}
    if issubclass(kind, tuple) and (fields := getattr(kind, "_fields", None)) is not None:
        return {"namedtuple": [kind.__name__, list(fields), children]}
    if (attributes := _attributes(definition, data)) is not None:
        fields, constants = attributes
        parts = [*children, *({"constant": [value]} for value in constants.values())]
        return {"namedtuple": [kind.__name__, [*fields, *constants], parts]}
    raise LoweringError(
        f"{what} has a {kind.__name__}, which a compiled program cannot take apart without JAX",
        notes=[
            "what nests may be dictionaries, lists, tuples, named tuples, None, registered data classes, "
            "and classes whose parts are registered with keys and are all there is (jax.tree_util.GetAttrKey)"
        ],
    )


def _attributes(definition: Any, data: Any) -> tuple[list[str], dict[str, Any]] | None:
    """The attributes that a container's parts are, and those that are numbers or texts, which are constants.

    What else a data class has, such as functions, is part of the program. None for what JAX has no names of.
    """
    tree = _jax("jax.tree_util")

    def is_part(node: Any) -> bool:
        return node is not whole

    try:
        whole = tree.tree_unflatten(definition, range(definition.num_leaves))
        parts, _ = tree.tree_flatten_with_path(whole, is_leaf=is_part)
    except Exception:  # of a class that wants arrays
        return None
    names = [path[0].name for path, _ in parts if isinstance(path[0], tree.GetAttrKey)]
    if len(names) < len(parts):
        return None
    if not dataclasses.is_dataclass(whole):
        return None if data else (names, {})
    others = {
        each.name: getattr(whole, each.name, None) for each in dataclasses.fields(whole) if each.name not in names
    }
    return names, {name: value for name, value in others.items() if isinstance(value, str | int | float)}


def _parameters(function: Any, count: int) -> list[str]:
    """The names of the first ``count`` parameters, as far as they have any."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters[:count] if parameter.kind in named]


def _jax(module: str = "jax") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(
            "the program is a Python function, which JAX would trace, and JAX is not installed",
            notes=["install it: pip install 'devscope[jax]'"],
        ) from None
