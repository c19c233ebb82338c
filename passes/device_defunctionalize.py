"""``device-defunctionalize``: function values become numbers, and calls of them calls by name.

Nobody outside of a module can make a function that is called in it, or call one that it returns: all of its
function values begin at ``func.constant``, and `FunctionValues` knows where each one goes. So

1. what can be one function only is called by its name. A function that callers give different functions is cloned
   for each choice of them, up to a limit, so that its calls of them are by name as well;
2. what is chosen while the program runs is a number, and a call of it an ``scf.index_switch`` over calls of all
   that it may be (defunctionalisation: J. C. Reynolds, Definitional Interpreters, 1972).

Afterwards there are no pointers to code: the plan holds as it did, and all passes see every call.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from devscope.analysis.call_graph import names_in
from devscope.analysis.function_values import (
    FunctionValues,
    function_values_of,
    has_function_values,
    takes_functions,
)
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.symbols import CALL, CONSTANT, INDIRECT, Symbols, is_public, named_function
from devscope.analysis.value_flow import ValueFlow
from devscope.analysis.value_kinds import FUNCTION, kind_of
from devscope.dialects.device import SCOPE_ATTR
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import CALLS, ENDS, ENTERED, facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS
from devscope.errors import LoweringError
from devscope.rewriting.blocks import erase_operations
from devscope.rewriting.functions import clone_function, fresh_name, redirect, taken_names

MOST_CLONES = 64
"""Of one function; further calls of it give it numbers."""


@dataclass(frozen=True)
class DeviceDefunctionalizePass(ManagedPass):
    """Turn function values of a planned module into numbers, and calls of them into calls by name.

    Public functions that take or return functions become private; what nothing reaches goes. Raises LoweringError,
    located, for a module whose public functions all take or return functions, for function values that leave the
    module or come from outside of it, and for a call that nothing reaches.
    """

    name = "device-defunctionalize"

    def run(self, analyses: AnalysisManager) -> bool:
        module, symbols = analyses.module, analyses.get(Symbols)
        if not has_function_values(symbols):
            return False
        _make_private(symbols)
        clones = _Clones(module)
        while clones.specialise():
            pass
        _check(Symbols(module))
        _number(module)
        analyses.invalidate()
        return True


def _make_private(symbols: Symbols) -> None:
    public = [f for f in symbols.functions.values() if is_public(f) and f.body.blocks]
    closed = [function for function in public if takes_functions(function)]
    if closed and closed == public:
        raise LoweringError(
            f"public function '{closed[0].sym_name.data}' takes or returns a function, and cannot be called from "
            "outside of the module",
            source_location(closed[0]),
            ["add a public function of tensors and scalars that calls it with a func.constant"],
        )
    for function in closed:
        function.properties["sym_visibility"] = StringAttr("private")


class _Clones:
    """Functions for the functions that callers pass."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._taken = taken_names(module)
        self._made: dict[tuple[str, tuple[tuple[int, str], ...]], str] = {}
        """By the name of what is cloned, and of the function that is passed for each argument."""
        self._counts: Counter[str] = Counter()
        """Of the clones ever made, by the name of what is cloned."""
        self._values: FunctionValues
        self._passed: dict[SSAValue, FuncOp]
        """What clones are passed that are younger than ``_values``, by argument."""
        self._work: list[FuncOp]

    def specialise(self) -> bool:
        """Call by name what is known, and what that makes known in clones; whether anything changed."""
        erase_operations(op for op in self._module.walk() if op_name(op) == CONSTANT and not op.results[0].uses)
        _erase_unreached(self._module, names_in)
        symbols = Symbols(self._module)
        # A clone that only unreached functions called has gone with them.
        self._made = {key: name for key, name in self._made.items() if name in symbols.functions}
        self._values, self._passed = FunctionValues(symbols, ValueFlow()), {}
        changed = False
        self._work = list(symbols.functions.values())
        for function in self._work:
            for op in list(function.walk()):
                call = op
                if op_name(op) == INDIRECT and (callee := self._only(op.operands[0])) is not None:
                    call = _call(op, callee)
                    Rewriter.replace_op(op, call)
                    changed = True
                if op_name(call) == CALL and (callee := symbols.callee(call)) is not None:
                    changed |= self._redirect(call, callee)
        return changed

    def _redirect(self, call: Operation, callee: FuncOp) -> bool:
        """Let a call reach a clone of ``callee`` if others pass it other functions; whether it does now."""
        if not callee.body.blocks or not any(kind_of(type_) == FUNCTION for type_ in callee.function_type.inputs):
            return False
        functions = {
            argument.index: function
            for argument, value in zip(callee.args, call.operands, strict=True)
            if kind_of(value.type) == FUNCTION
            and argument.first_use is not None
            and len(self._values.of_value(argument).functions) > 1
            and (function := self._only(value)) is not None
        }
        passed = tuple((index, function.sym_name.data) for index, function in functions.items())
        name = callee.sym_name.data
        if not passed or self._counts[name] >= MOST_CLONES:
            return False
        if (name, passed) not in self._made:
            self._counts[name] += 1
            new = fresh_name("_".join((name, *(function for _, function in passed))), self._taken)
            clone = clone_function(callee, new)
            self._made[name, passed] = new
            self._passed |= {clone.args[index]: function for index, function in functions.items()}
            self._work.append(clone)
        redirect(call, self._made[name, passed])
        return True

    def _only(self, value: SSAValue) -> FuncOp | None:
        """The one function that a value can be."""
        if value in self._passed:
            return self._passed[value]
        found = self._values.of_value(value)
        return found.functions[0] if found.complete and len(found.functions) == 1 else None


def _call(op: Operation, callee: FuncOp) -> CallOp:
    """A call by name in place of an indirect one."""
    call = CallOp(callee.sym_name.data, op.operands[1:], op.result_types)
    call.attributes.update(op.attributes)
    call.location = op.location
    return call


def _erase_unreached(module: ModuleOp, reached_by: Callable[[Operation], Iterable[str]]) -> None:
    """Erase functions that no public one, kernel or global reaches: what they say of function values never is."""
    functions = Symbols(module).functions
    seen = {name for name, function in functions.items() if is_public(function)}
    work: list[Operation] = [functions[name] for name in seen]
    work += (op for op in module.body.block.ops if not isinstance(op, FuncOp) or op.sym_name.data not in functions)
    while work:
        names = {name for op in work.pop().walk() for name in reached_by(op) if name in functions} - seen
        seen |= names
        work += (functions[name] for name in names)
    erase_operations(function for name, function in functions.items() if name not in seen)


def _check(symbols: Symbols) -> None:
    """Refuse what carries function values where they cannot be followed."""
    for name, function in symbols.functions.items():
        if not function.body.blocks and takes_functions(function):
            raise LoweringError(
                f"'{name}' is defined elsewhere, and takes or returns a function",
                source_location(function),
                ["give it a body, or call the functions here"],
            )
        for op in function.walk():
            facts = facts_of(op)
            if facts.control in ENTERED | ENDS | CALLS or facts.chooses_from is not None or op is function:
                continue
            if any(kind_of(value.type) == FUNCTION for value in (*op.operands, *op.results)):
                raise LoweringError(
                    f"'{op_name(op)}' has a function value, and nobody knows which functions it calls or returns",
                    source_location(op),
                    ["scf, cf, arith.select, calls and returns may pass functions on"],
                )


def _number(module: ModuleOp) -> None:
    """Give each function that is a value a number, and turn values into numbers and calls into choices."""
    symbols = Symbols(module)
    values = FunctionValues(symbols, ValueFlow())

    def called(op: Operation) -> Iterable[str]:
        if facts_of(op).control not in CALLS:
            return names_in(op)
        called = values.callees(op).functions if op_name(op) != CONSTANT else ()
        return [function.sym_name.data for function in called]

    names = {named_function(op) for op in module.walk() if op_name(op) == CONSTANT}
    numbers = {name: number for number, name in enumerate(name for name in symbols.functions if name in names)}
    _erase_unreached(module, called)
    remaining = Symbols(module).functions.values()
    ops = [op for function in remaining for op in function.walk()]
    callees = {op: values.of_value(op.operands[0]).functions for op in ops if op_name(op) == INDIRECT}
    for op, functions in callees.items():
        if not functions:
            raise LoweringError("no function ever reaches this call", source_location(op))
        Rewriter.replace_op(op, _choice(op, functions, numbers))
    for op in ops:
        if op_name(op) == CONSTANT:
            number = arith.ConstantOp.from_int_and_width(numbers[named_function(op) or ""], IndexType())
            number.location = op.location
            Rewriter.replace_op(op, number)
            continue
        numbered = function_values_of(op)
        for value in numbered:
            Rewriter.replace_value_with_new_type(value, IndexType())
        if numbered and facts_of(op).chooses_from is not None:
            op.attributes.pop(SCOPE_ATTR, None)
    for function in remaining:
        _retype(function)


def _choice(op: Operation, functions: tuple[FuncOp, ...], numbers: dict[str, int]) -> Operation:
    """A choice by number, whose type is still that of the functions, of what an indirect call reaches."""
    from xdsl.dialects.scf import IndexSwitchOp, YieldOp

    *cases, last = functions
    regions: list[Region] = []
    for function in (last, *cases):
        call = _call(op, function)
        end = YieldOp(*call.results)
        end.location = op.location
        regions.append(Region(Block([call, end])))
    labels = DenseArrayBase.from_list(i64, [numbers[function.sym_name.data] for function in cases])
    choice = IndexSwitchOp(op.operands[0], labels, regions[0], regions[1:], op.result_types)
    choice.location = op.location
    return choice


def _retype(function: FuncOp) -> None:
    """Write numbers for functions into a signature; where these were is nothing that numbers have."""
    type_ = function.function_type
    for side, types in ((ARGUMENTS, type_.inputs.data), (RESULTS, type_.outputs.data)):
        attributes = function.properties.get(side)
        if isinstance(attributes, ArrayAttr):
            new = [
                _without_scope(attribute) if kind_of(one) == FUNCTION else attribute
                for one, attribute in zip(types, attributes, strict=True)
            ]
            function.properties[side] = ArrayAttr(new)
    inputs, outputs = ([_numbered(one) for one in types] for types in (type_.inputs, type_.outputs))
    function.properties["function_type"] = FunctionType.from_lists(inputs, outputs)


def _without_scope(attribute: Attribute) -> Attribute:
    assert isinstance(attribute, DictionaryAttr)
    return DictionaryAttr({name: value for name, value in attribute.data.items() if name != SCOPE_ATTR})


def _numbered(type_: Attribute) -> Attribute:
    return IndexType() if kind_of(type_) == FUNCTION else type_
