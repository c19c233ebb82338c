"""The functions of a module that backends claimed, and what their code generators make of them.

Their bodies leave the module when it is planned, so that nothing that comes after sees them: calls of functions
without a body stay, with the scopes of what they take and give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from xdsl.dialects.builtin import (
    ComplexType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.analysis.classify import is_terminator
from devscope.analysis.patterns import Match
from devscope.analysis.patterns.language import Answer
from devscope.analysis.patterns.matcher import Matcher
from devscope.analysis.symbols import Symbols, is_claimed, named_function
from devscope.analysis.target_binding import HOST_KIND
from devscope.backends.backend import Backend, Claimed, Code, Mlir, Phase, Selected
from devscope.backends.registry import get_backend, is_registered, run_passes_of
from devscope.dialects.device import COMPILER_ATTR, COMPOSITE_ATTR, SCOPE_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, set_signature_attributes
from devscope.dialects.target import get_target_kind
from devscope.errors import BackendError, DevscopeError, LoweringError, Note, SourceLocation
from devscope.lowering.claimed.code_check import problem_of
from devscope.lowering.claimed.constants import mark_constants, pass_marked
from devscope.lowering.interop.session import Session
from devscope.lowering.target import ClaimedTarget, find_target, register_target
from devscope.passes.device_partition.backends import refusal, scope_of, target_of
from devscope.passes.device_partition.graph import is_transparent


@dataclass
class ClaimedFunction:
    """``functions``: itself, and then those that it calls, one for each match of several merged ones."""

    backend: Backend
    target: TargetAttr
    functions: Sequence[FuncOp]

    @property
    def device_type(self) -> str:
        return self.target.device_type

    @property
    def name(self) -> str:
        return self.functions[0].sym_name.data

    @property
    def pattern(self) -> str:
        """The name of the pattern that matched; ``""`` for several."""
        composite = self.functions[0].attributes.get(COMPOSITE_ATTR)
        return composite.data.partition(".")[2] if isinstance(composite, StringAttr) else ""

    @property
    def location(self) -> SourceLocation | None:
        """That of the last operation that it computes with, else its own."""
        for function in self.functions:
            found = [source_location(op) for op in function.body.walk() if named_function(op) is None][:-1]
            known = [location for location in found if location is not None]
            if known:
                return known[-1]
        return source_location(self.functions[0])

    @property
    def passed(self) -> list[int]:
        """The positions of parameters that code gets: not those that only say how large something empty is."""
        sizes = ("tensor.empty", "tensor.dim")
        return [
            number
            for number, argument in enumerate(self.functions[0].args)
            if not all(op_name(use.operation) in sizes for use in argument.uses) or not argument.uses
        ]

    def to_json(self) -> list[dict[str, str]]:
        """The patterns that it is made of."""
        return [{"backend": self.backend.name, "pattern": name, "function": self.name} for name in self.patterns]

    @property
    def patterns(self) -> list[str]:
        """The names of those that matched, of each of its matches; ``""`` if it stood in the program."""
        composites = (function.attributes.get(COMPOSITE_ATTR) for function in self.functions)
        names = [one.data.partition(".")[2] for one in composites if isinstance(one, StringAttr)]
        return names or [""]

    def describe(self) -> str:
        """For messages: ``backend 'blas', pattern 'matmul'``."""
        pattern = f", pattern '{self.pattern}'" if self.pattern else ""
        return f"backend '{self.backend.name}'{pattern}"

    def module(self) -> ModuleOp:
        """A module with copies of its functions."""
        return ModuleOp([function.clone() for function in self.functions])


_MOST_NAMES = 4
"""Of operations, in one message."""

_MOST_MATCHES = 1000
"""Of one pattern in one claimed function, those that are looked at."""


def _register_target(kind: str) -> None:
    """Make a target kind of a backend with devices known to the stages."""
    if find_target(kind) is None:
        register_target(ClaimedTarget(kind=get_target_kind(kind)))


def own_devices(types: Iterable[str]) -> set[str]:
    """Those types of devices that backends bring, whether they claimed something there or not."""
    found = {name for name in types if is_registered(name)}
    for name in found:
        _register_target(name)
    return found


def place(module: ModuleOp, chosen: Iterable[Selected]) -> None:
    """Say for what claimed functions are compiled that do not, and where they run: as their backend was
    ``chosen``, else with its default options, on the first device of its type.
    """
    selected = {one.name: one for one in chosen}
    for function in module.body.block.ops:
        if not isinstance(function, FuncOp) or not is_claimed(function):
            continue
        one = selected.get(_compiler(function))
        target = function.attributes.get(TARGET_ATTR)
        if target is None and one is not None:
            function.attributes[TARGET_ATTR] = target = target_of(one)
        if SCOPE_ATTR in function.attributes:
            continue
        if one is not None:
            scope = scope_of(one)
        else:
            made_for = target if isinstance(target, TargetAttr) else get_backend(_compiler(function))
            scope = ScopeAttr.get(made_for.device_type, 0)
        function.attributes[SCOPE_ATTR] = scope
        types = function.function_type
        for side, given in ((ARGUMENTS, types.inputs.data), (RESULTS, types.outputs.data)):
            scopes = [scope if isinstance(type_, TensorType) else None for type_ in given]
            set_signature_attributes(function, side, scopes)


def _compiler(function: FuncOp) -> str:
    compiler = function.attributes[COMPILER_ATTR]
    return compiler.data if isinstance(compiler, StringAttr) else str(compiler)


def take_out(module: ModuleOp) -> list[ClaimedFunction]:
    """Take the bodies of claimed functions out of a planned module; those that only such call go as a whole.

    Raises OptionError for a backend that there is none of, LoweringError, located, for a function whose attributes
    contradict each other.
    """
    functions = {name: op for name, op in Symbols(module).functions.items() if op.body.blocks}
    claimed = {name: op for name, op in functions.items() if is_claimed(op)}
    if not claimed:
        return []
    called_from = {
        callee: {
            name for name, op in functions.items() if any(named_function(o) == callee for o in op.body.walk())
        }
        for callee in claimed
    }
    roots = [name for name, callers in called_from.items() if not callers <= claimed.keys() or not callers]
    taken = {name: _claimed(_with_callees(functions[name], functions)) for name in roots}
    for name, function in claimed.items():
        if name in taken:
            block = function.parent
            assert block is not None
            declaration = function.clone_without_regions()
            if taken[name].device_type == HOST_KIND:
                declaration.attributes[TARGET_ATTR] = TargetAttr.get(HOST_KIND)  # for all who look at calls
            block.insert_op_before(declaration, function)
        function.detach()
    return list(taken.values())


def _with_callees(function: FuncOp, functions: Mapping[str, FuncOp]) -> list[FuncOp]:
    """``function``, then all that it calls."""
    found = [function]
    for one in found:
        for op in one.body.walk():
            callee = functions.get(named_function(op) or "")
            if callee is not None and callee not in found:
                found.append(callee)
    return found


def _claimed(functions: list[FuncOp]) -> ClaimedFunction:
    first = functions[0]
    name, target = _compiler(first), first.attributes.get(TARGET_ATTR)
    try:
        backend = get_backend(name)
    except DevscopeError as error:
        error.location = error.location or source_location(first)
        raise
    if isinstance(target, TargetAttr) and target.kind_name != name:
        raise LoweringError(
            f"'{COMPILER_ATTR}' is '{name}', but '{TARGET_ATTR}' is {target.short()}",
            source_location(first),
            ["a backend's name is that of its target kind"],
        )
    for function in functions:
        if not is_claimed(function) or _compiler(function) != name:
            raise LoweringError(
                f"function '{first.sym_name.data}', which backend '{name}' compiles, calls one that it does not: "
                f"'{function.sym_name.data}'",
                source_location(function),
            )
    functions = [first, *(function.clone() for function in functions[1:])]  # several may call the same
    mark_constants(functions)
    if backend.device_type != HOST_KIND:
        _register_target(name)
    if not isinstance(target, TargetAttr):
        first.attributes[TARGET_ATTR] = target = TargetAttr.get(name)
    return ClaimedFunction(backend, target, functions)


def generate(claimed: ClaimedFunction, session: Session) -> Code:
    """What the backend makes of it. Raises LoweringError, located, that names the pattern if it fails."""
    module = claimed.module()
    try:
        run_passes_of(claimed.backend, Phase.BEFORE_CODEGEN, module)
        (function, *_) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
        count = len(function.args)
        match = _match_again(claimed, function)
        passed_on = pass_marked(claimed.functions[0], function)
        if match is not None:
            values = {name: passed_on.get(value, value) for name, value in match.values.items()}
            match = replace(match, ops=tuple(op for op in match.ops if op.parent is not None), values=values)
        lowered: Any = session.to_mlir(module)
        for pipeline in claimed.backend.lowering:
            session.run_passes(lowered, pipeline)
        passed = claimed.passed
        code = claimed.backend.codegen(
            Claimed(
                claimed.name,
                claimed.pattern,
                claimed.target.option_values,
                module,
                function,
                str(lowered),
                match,
                claimed.location,
                [*passed, *range(count, len(function.args))],
                range(len(passed), len(passed) + len(function.args) - count),
            )
        )
    except DevscopeError as error:
        what = f"cannot compile what it claimed: {error.message}"
        raise wrong(claimed, what, error.location, error.notes) from error
    except Exception as error:
        raise wrong(claimed, f"cannot compile what it claimed: {type(error).__name__}: {error}") from error
    if not isinstance(code, Code):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise wrong(claimed, f"gave {type(code).__name__} for what it claimed, which is no code")
    if problem := problem_of(code):
        raise wrong(claimed, problem)
    complex_ = next(
        (type_ for type_ in claimed.functions[0].function_type.inputs if isinstance(type_, ComplexType)), None
    )
    if complex_ is not None and not isinstance(code, Mlir):
        raise wrong(
            claimed, f"gave {type(code).__name__} for what takes a number of type {complex_}: only Mlir may"
        )
    return code


def wrong(
    claimed: ClaimedFunction, what: str, where: SourceLocation | None = None, notes: Sequence[Note] = ()
) -> BackendError:
    """The error for code of a backend that will not do; ``where``, if that is not the function's own place."""
    return BackendError(
        f"{claimed.describe()} {what}",
        where or claimed.location,
        [*notes, *_claims(claimed)],
        backend=claimed.backend.name,
        pattern=claimed.pattern,
        patterns=claimed.patterns,
    )


def _match_again(claimed: ClaimedFunction, function: FuncOp) -> Match | None:
    """What the pattern of a claimed function matches in it: all of it, and the first such match that the predicate
    takes.
    """
    row = next((row for row in claimed.backend.patterns if row[0] == claimed.pattern), None)
    ops = list(function.body.block.ops)
    if row is None or not ops:
        return None
    whole = {op for op in ops[:-1] if not is_transparent(op)}
    roots = [value.owner for value in ops[-1].operands if isinstance(value.owner, Operation)]
    found = chain.from_iterable(Matcher(row[1]).matches(root) for root in roots)
    best, is_whole = None, False
    for one in islice(found, _MOST_MATCHES):
        match, has_all = replace(one, options=claimed.target.option_values), whole.issubset(one.ops)
        if has_all and _takes(row[2], match):
            return match
        if best is None or (has_all and not is_whole):
            best, is_whole = match, has_all
    return best


def _takes(predicate: Callable[[Any], Answer] | None, match: Match) -> bool:
    """What a predicate says that has been asked before, when it saw what stands around a match, too."""
    try:
        return refusal(predicate, match) is None
    except Exception:
        return False


def _claims(claimed: ClaimedFunction) -> list[str]:
    text, advice = f"{claimed.backend.name}:fallback=true", "to have devscope compile what it cannot:"
    asked = Note(f"{advice} backends=[{text!r}]", flags=f"{advice} --backend {text}")
    names = dict.fromkeys(
        op_name(op)
        for function in claimed.functions
        for op in function.body.block.ops
        if not is_transparent(op) and not is_terminator(op) and named_function(op) is None
    )
    shown = [*names][:_MOST_NAMES] + ["..."] * (len(names) > _MOST_NAMES)
    what = f": {', '.join(shown)}" if shown else ""
    return [f"the function that it should compile is '{claimed.name}'{what}", asked]
