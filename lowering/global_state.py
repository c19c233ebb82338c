"""Globals that programs write (``ml_program.global mutable``) become state of the public function that uses them.

Calls find in them what the last one left there: what ``device.state`` says of arguments and results (see
docs/memory.md). So loads and stores are values, planned as others are: functions and control flow take what a
global is before them, and give what it is after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from devscope.dialects.device import STATE_ATTR
from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir, repair_casters
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.located_scopes import scope_of
from devscope.lowering.mlir_util import Builder

GLOBAL = "ml_program.global"
LOADS = frozenset({f"{GLOBAL}_load", f"{GLOBAL}_load_const"})
_STORE = f"{GLOBAL}_store"

_BRANCHES = frozenset({"scf.if", "scf.index_switch", "scf.execute_region"})
"""They give what the region that runs yields."""


def keep_globals(module: Any) -> dict[str, tuple[str, list[str]]]:
    """Rewrite an ``ir.Module`` in place, so that it has no globals left that something writes.

    Returns, by public function, the new one that gives what its state is at first, and the names of the globals,
    which are its last arguments and results. Raises LoweringError, located, for what cannot be state.
    """
    found = {
        mlir_util.symbol_name(op): op
        for op in mlir_util.children(module.operation)
        if op.name == GLOBAL and "is_mutable" in op.attributes
    }
    if not found:
        return {}
    repair_casters(module.context)  # a value may be complex
    written = {_symbol(op, "global") for op in mlir_util.named(module.operation, _STORE)}
    with module.context:
        for name in found.keys() - written:  # a constant, see `input_forms`
            del found[name].attributes["is_mutable"]
            if "value" not in found[name].attributes and _is_kept(_type(found[name])):
                found[name].attributes["value"] = _initial(found[name])
        return _Globals(module, {name: op for name, op in found.items() if name in written}).run()


class _Globals:
    def __init__(self, module: Any, globals_: Mapping[str, Any]) -> None:
        self._module = module
        self._globals = globals_
        self._functions = {mlir_util.symbol_name(op): op for op in mlir_util.functions(module)}
        self._used: dict[str, list[str]] = {}
        """The globals that functions use, by the names of those that use any."""

    def run(self) -> dict[str, tuple[str, list[str]]]:
        self._find_users()
        public = {name: used for name, used in self._used.items() if is_public(self._functions[name])}
        owners: dict[str, str] = {}
        for name, used in public.items():
            for one in used:
                if owners.setdefault(one, name) != name:
                    raise _error(
                        self._globals[one],
                        f"the global '{one}' is used by the public functions @{owners[one]} and @{name}",
                        "what is kept from call to call is the state of one of them: make the others private",
                    )
        kept = {name: (self._give_initial(name, used), used) for name, used in public.items()}
        for name, used in self._used.items():
            self._rewrite(self._functions[name], used)
        for name in {one for used in self._used.values() for one in used}:
            self._globals[name].erase()
        return kept

    def _find_users(self) -> None:
        """Fills `_used`. A function uses what the functions that it calls use."""
        direct: dict[str, set[str]] = {}
        called: dict[str, set[str]] = {}
        for name, function in self._functions.items():
            for op in mlir_util.walk(function):
                if op.name in LOADS or op.name == _STORE:
                    direct.setdefault(name, set()).add(_symbol(op, "global"))
                elif op.name == "func.call":
                    called.setdefault(name, set()).add(_symbol(op, "callee"))
        own = {name: used & self._globals.keys() for name, used in direct.items()}
        while True:
            more = {
                name: own.get(name, set()).union(*(own.get(one, set()) for one in called.get(name, ())))
                for name in self._functions
            }
            if more == own:
                break
            own = more
        self._used = {name: [one for one in self._globals if one in used] for name, used in own.items() if used}
        for one in {one for used in self._used.values() for one in used}:
            self._check(self._globals[one])
        for op in mlir_util.named(self._module.operation, "func.constant"):
            if _symbol(op, "value") in self._used:
                raise _error(
                    op, f"{op.attributes['value']} is a function value and uses globals that the program writes"
                )

    def _check(self, op: Any) -> None:
        """Raise LoweringError for a global that cannot be state."""
        type_ = _type(op)
        if not _is_kept(type_):
            raise _error(
                op,
                f"the global '{mlir_util.symbol_name(op)}' has type {type_}",
                "what a program keeps is a dense tensor of static shape",
            )
        value = op.attributes.get("value", None)
        if value is not None and not isinstance(value, ir.DenseElementsAttr | ir.DenseResourceElementsAttr):
            raise _error(op, f"what the global '{mlir_util.symbol_name(op)}' is at first is not in the program")

    def _give_initial(self, name: str, used: Sequence[str]) -> str:
        """Add the public function that returns what the state of the function ``name`` is at first."""
        function, initial = self._functions[name], f"{name}.at_first"
        if STATE_ATTR in function.attributes:
            raise _error(function, f"@{name} has '{STATE_ATTR}' and uses globals that it writes")
        while initial in self._functions:
            initial += "_"
        context = self._module.context
        types = [_type(self._globals[one]) for one in used]
        new = mlir_util.declare(self._module, initial, ir.FunctionType.get([], types, context), function.location)
        del new.attributes["sym_visibility"]
        end = mlir_util.add_body(new)
        build = Builder(end)
        values = [
            build.value("arith.constant", [], type_, {"value": _initial(self._globals[one])})
            for one, type_ in zip(used, types, strict=True)
        ]
        build.op("func.return", values)
        end.erase()
        function.attributes[STATE_ATTR] = ir.FlatSymbolRefAttr.get(initial, context)
        return initial

    def _rewrite(self, function: Any, used: Sequence[str]) -> None:
        """Make globals the last arguments and results of a function."""
        if not mlir_util.has_body(function) or len(function.regions[0].blocks) != 1:
            raise _error(
                function,
                f"@{mlir_util.symbol_name(function)} uses globals that the program writes, and branches",
                "only control flow of 'scf' is looked through",
            )
        type_, block = mlir_util.function_type(function), mlir_util.entry_block(function)
        globals_ = [self._globals[one] for one in used]
        new = [_type(op) for op in globals_]
        inputs, results = [*type_.inputs, *new], [*type_.results, *new]
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, results, function.context)
        )
        scopes = [scope_of(op) for op in globals_]
        for side, count in (("arg_attrs", len(inputs)), ("res_attrs", len(results))):
            if side in function.attributes or any(scopes):
                old = list(function.attributes[side]) if side in function.attributes else []
                empty = ir.DictAttr.get({}, function.context)
                old += [empty] * (count - len(new) - len(old))
                added = [ir.DictAttr.get(scope, function.context) for scope in scopes]
                function.attributes[side] = ir.ArrayAttr.get([*old, *added], function.context)
        values = {one: block.add_argument(_type(op), op.location) for one, op in zip(used, globals_, strict=True)}
        self._thread(block, values, used)

    def _thread(self, block: Any, values: dict[str, Any], yielded: Sequence[str]) -> None:
        """Replace loads and stores in a block, before which globals have ``values``, which become those behind it.

        Its terminator gives the globals ``yielded``, too.
        """
        ops = [op.operation for op in block.operations]
        for op in ops:
            if op.name in LOADS and _symbol(op, "global") in values:
                mlir_util.replace_op(op, [values[_symbol(op, "global")]])
            elif op.name == _STORE and _symbol(op, "global") in values:
                values[_symbol(op, "global")] = op.operands[0]
                op.erase()
            elif op.name == "func.call" and (used := self._used.get(_symbol(op, "callee"))):
                given = [values[one] for one in used]
                _replace(op, _with_more(op, [*op.operands, *given], given), used, values)
            elif len(op.regions):
                self._thread_regions(op, values)
        if yielded:
            end = ops[-1]
            Builder(end).op(
                end.name, [*end.operands, *(values[one] for one in yielded)], [], dict(end.attributes.items())
            )
            end.erase()

    def _thread_regions(self, op: Any, values: dict[str, Any]) -> None:
        written = self._written(op)
        if not written:
            for block in mlir_util.blocks_of(op):
                self._thread(block, dict(values), ())
            return
        given = [values[one] for one in written]
        if op.name in _BRANCHES:
            new = _with_more(op, op.operands, given)
            for region in new.regions:
                if not len(region.blocks):  # an scf.if without else
                    end = ir.Block.create_at_start(region, [], [])
                    ir.Operation.create("scf.yield", loc=op.location, ip=ir.InsertionPoint(end))
        elif op.name in ("scf.for", "scf.while"):
            new = _with_more(op, [*op.operands, *given], given)
        else:
            raise _error(op, f"'{op.name}' writes the global '{written[0]}'", "store behind it what it computes")
        for region in new.regions:
            if len(region.blocks) != 1:
                raise _error(op, f"'{op.name}' with several blocks writes the global '{written[0]}'")
            (block,) = region.blocks
            inside = dict(values)
            if op.name not in _BRANCHES:
                inside.update((one, block.add_argument(values[one].type, op.location)) for one in written)
            self._thread(block, inside, written)
        _replace(op, new, written, values)

    def _written(self, op: Any) -> list[str]:
        """The globals that may change in ``op``: what it stores to, and what functions use that it calls."""
        found: set[str] = set()
        for inner in mlir_util.walk(op):
            if inner.name == _STORE:
                found.add(_symbol(inner, "global"))
            elif inner.name == "func.call":
                found.update(self._used.get(_symbol(inner, "callee"), ()))
        return [one for one in self._globals if one in found]


def is_public(function: Any) -> bool:
    return "sym_visibility" not in function.attributes or mlir_util.text_of(function, "sym_visibility") == "public"


def _symbol(op: Any, key: str) -> str:
    return str(op.attributes[key]).removeprefix("@").strip('"')


def _type(op: Any) -> Any:
    return ir.TypeAttr(op.attributes["type"]).value


def _is_kept(type_: Any) -> bool:
    """Whether state can be of a type."""
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape and type_.encoding is None


def _initial(op: Any) -> Any:
    """What a global is at first: what it says, or zeros."""
    if "value" in op.attributes:
        return op.attributes["value"]
    type_ = _type(op)
    element = type_.element_type
    if isinstance(element, ir.ComplexType):
        zero = "(0.0, 0.0)" if isinstance(element.element_type, ir.FloatType) else "(0, 0)"
    else:
        zero = "0.0" if isinstance(element, ir.FloatType) else "0"
    return ir.Attribute.parse(f"dense<{zero}> : {type_}", op.context)


def _with_more(op: Any, operands: Sequence[Any], more: Sequence[Any]) -> Any:
    """Another ``op`` in front of it, which has its blocks, other operands, and more results, as ``more`` is."""
    types = [result.type for result in [*op.results, *more]]
    new = Builder(op).op(op.name, operands, types, dict(op.attributes.items()), regions=len(op.regions))
    for old, region in zip(op.regions, new.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(region)
    return new


def _replace(op: Any, new: Any, names: Sequence[str], values: dict[str, Any]) -> None:
    results = list(new.results)
    count = len(results) - len(names)
    values.update(zip(names, results[count:], strict=True))
    mlir_util.replace_op(op, results[:count])


def _error(op: Any, message: str, *notes: str) -> LoweringError:
    return LoweringError(message, decode_location(op.location), list(notes))
