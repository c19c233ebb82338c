"""MLIR's Python bindings, whichever package carries them."""

import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from devscope.lowering.interop.package import select_package

_P = ParamSpec("_P")
_T = TypeVar("_T")

PACKAGE = select_package()


def load(module: str) -> ModuleType:
    """Import ``module`` of the bindings, such as ``"dialects.transform.interpreter"``."""
    return importlib.import_module(f"{PACKAGE}.{module}")


def load_optional(module: str) -> ModuleType | None:
    """As `load`, or None where this build of the bindings lacks ``module``."""
    try:
        return load(module)
    except ImportError:
        return None


class _Search:
    """Where the bindings look for a dialect's Python module, and how many have asked them not to."""

    lock = Lock()
    users = 0
    places: list[str]


@contextmanager
def without_dialect_modules() -> Generator[None]:
    """Keep the bindings from importing a dialect's Python module as soon as they show something of that dialect.

    They do so for ``value.owner``, ``use.owner``, an item of ``block.operations`` and for attributes and types:
    10 to 150 ms of CPU time per dialect, for Python classes that nobody asks for here. In here such an operation
    is an ``ir.OpView``, and an attribute or a type has the most special class that MLIR itself has. Modules that
    are imported already are used. Acts on the whole process, until the last one who asked for it leaves.
    """
    bindings = load("_mlir_libs._mlir").globals
    with _Search.lock:
        if _Search.users == 0:
            _Search.places = bindings.dialect_search_modules
            bindings.dialect_search_modules = []
        _Search.users += 1
    try:
        yield
    finally:
        with _Search.lock:
            _Search.users -= 1
            if _Search.users == 0:
                bindings.dialect_search_modules = _Search.places


ir: Any = load("ir")
passmanager: Any = load("passmanager")


def register_stablehlo(context: Any) -> bool:
    """Make StableHLO known to ``context``; False where this build of the bindings lacks it."""
    for name in ("_mlir_libs._stablehlo", "dialects.stablehlo"):
        extension = load_optional(name)
        if extension is not None:
            extension.register_dialect(context, True)
            _load_chlo(context)
            return True
    return False


def _load_chlo(context: Any) -> None:
    """The bindings register no CHLO; it is loaded with a pass that can make some."""
    if register_stablehlo_passes():
        with context, ir.Location.unknown():
            manager = passmanager.PassManager.parse("builtin.module(func.func(stablehlo-legalize-quant-to-math))")
            manager.run(ir.Module.create().operation)


def register_tm_tensor(context: Any) -> None:
    """Make torch-mlir's ``tm_tensor`` known to ``context``, where this build of the bindings has it.

    The bindings register it for nobody; it is loaded with a pass that can make some.
    """
    if load_optional("_mlir_libs._torchMlir") is not None:
        with context, ir.Location.unknown():
            manager = passmanager.PassManager.parse("builtin.module(func.func(convert-torch-to-tmtensor))")
            manager.run(ir.Module.create().operation)


@cache
def register_stablehlo_passes() -> bool:
    """Make StableHLO's passes known to pipelines; False where this build of the bindings lacks them."""
    extension = load_optional("_mlir_libs._stablehlo")
    if extension is not None:
        extension.register_stablehlo_passes()
    return extension is not None


def children(op: Any) -> list[Any]:
    """The operations directly in the regions of ``op``, an ``ir.Operation``, in order.

    A walk gives plain ``ir.Operation`` objects, and gives them faster than iterating over a block, which makes an
    instance of a Python class for every operation (see `without_dialect_modules`).
    """
    found: list[Any] = []

    def visit(inner: Any) -> Any:
        found.append(inner)
        return advance if len(found) == 1 else skip  # the first one is ``op``

    advance, skip = ir.WalkResult.ADVANCE, ir.WalkResult.SKIP
    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def first_child(op: Any) -> Any:
    """The first of `children`, without the others. Raises IndexError where there is none."""
    found: list[Any] = []

    def visit(inner: Any) -> Any:
        found.append(inner)
        return more if len(found) == 1 else enough

    more, enough = ir.WalkResult.ADVANCE, ir.WalkResult.INTERRUPT
    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1]


def walk(op: Any) -> list[Any]:
    """All operations under ``op``, itself first, in pre-order, made as `children` makes them."""
    found: list[Any] = []
    append, advance = found.append, ir.WalkResult.ADVANCE

    def visit(inner: Any) -> Any:
        append(inner)
        return advance

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def dictionary_items(dictionary: Any) -> dict[str, Any]:
    """What an ``ir.DictAttr`` holds. Raises RuntimeError for a name that is not UTF-8 (`not_text`).

    `NamedAttribute.attr` ends the process where this raises TypeError, and `NamedAttribute.name` ends it for such
    a name; to print the attribute raises an exception.
    """
    items = list(dictionary)
    for item in items:
        repr(item)
    return {item.name: dictionary[item.name] for item in items}


def not_text(error: RuntimeError) -> bool:
    """Whether the bindings had to make Python text of bytes that are not UTF-8; names in MLIR can have any."""
    return "conversion error" in str(error)


def repair_casters(context: Any) -> None:
    """Let the bindings return three kinds of attributes on which they raise TypeError.

    They know no Python class for dense elements of complex type, nor for arrays of most types, and take a location
    in attribute position for an ``ir.Location``. The casters that this installs are the bindings' own, extended by
    the missing case; they act on the whole process, so they are installed only when a module needs them.
    """
    dense = ir.Attribute.parse("dense<0> : tensor<1xi1>", context)
    ir.register_type_caster(dense.typeid, replace=True)(_cast_dense)
    array = ir.Attribute.parse("array<i1: true>", context)
    ir.register_type_caster(array.typeid, replace=True)(_cast_array)
    for location in (ir.FileLineColLoc, ir.NameLoc, ir.CallSiteLoc, ir.FusedLoc, ir.UnknownLoc):
        ir.register_type_caster(location.static_typeid, replace=True)(_location_caster(location))


def with_repaired_casters(context: Any, read: Callable[_P, _T], *args: _P.args, **settings: _P.kwargs) -> _T:
    """What ``read`` returns; after `repair_casters`, when it raises the bindings' TypeError."""
    try:
        return read(*args, **settings)
    except TypeError:
        repair_casters(context)
        return read(*args, **settings)


def _cast_dense(attribute: Any) -> Any:
    element = ir.ShapedType(attribute.type).element_type
    if isinstance(element, ir.FloatType):
        return ir.DenseFPElementsAttr(attribute)
    if isinstance(element, ir.IntegerType | ir.IndexType):
        return ir.DenseIntElementsAttr(attribute)
    return ir.DenseElementsAttr(attribute)


_ARRAYS = {"i1": "Bool", **{name: name.upper() for name in ("i8", "i16", "i32", "i64", "f32", "f64")}}
"""How the bindings call arrays of a type: ``DenseBoolArrayAttr``."""


def _cast_array(attribute: Any) -> Any:
    element, _, _ = str(attribute).removeprefix("array<").rstrip(">").partition(":")
    return getattr(ir, f"Dense{_ARRAYS[element]}ArrayAttr")(attribute) if element in _ARRAYS else attribute


def _location_caster(kind: Any) -> Any:
    def cast(value: Any) -> Any:
        return kind(value) if isinstance(value, ir.Location) else value

    return cast
