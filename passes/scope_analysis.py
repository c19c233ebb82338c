"""`ScopeAnalysis`: the scope of any operation or value, recovered from the module alone.

What a planned module says, and how to read it:

* an argument or result of a function is where its ``device.scope`` attribute says;
* an operation executes where its own ``device.scope`` says, else that of the nearest operation around it, else
  on the host; its results are there too;
* scalars, shapes and control flow are on the host;
* a copy, and its result, are on its destination;
* the results of calls are where the callee's result attributes say; results and arguments of control flow are
  where the values are that flow into them.

This module knows nothing of the planner; `device_verify` builds on it, as may any pass that moves code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, OnDeviceOp, RegionOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.passes.placed_types import FUNCTION, HOST, kind_of
from devscope.passes.signature import ARGUMENTS, RESULTS, signature_attributes

CHOICES = frozenset({"scf.if", "scf.index_switch", "scf.execute_region"})
LOOPS = frozenset({"scf.for", "scf.while"})
ENDS = frozenset({"scf.yield", "scf.condition", "func.return", "cf.br", "cf.cond_br", "cf.switch", "device.yield"})
CALLS = frozenset({"func.call", "func.call_indirect", "func.constant"})
QUERIES = frozenset(
    {
        "tensor.dim",
        "tensor.rank",
        "memref.dim",
        "memref.rank",
        "memref.extract_aligned_pointer_as_index",
        "shape.shape_of",
        "stablehlo.get_dimension_size",
    }
)
"""Operations that read no data: they run on the host, whatever scope their operand is on."""

CONTROL = CHOICES | LOOPS | ENDS | CALLS

_HOST_SCOPE = ScopeAttr.get("cpu", 0)


class ScopeAnalysis:
    """Scopes of one module. Valid until the module changes.

    ``host`` is the scope of scalars, shapes and control flow.
    """

    def __init__(self, module: ModuleOp, host: ScopeAttr = _HOST_SCOPE) -> None:
        self.host = host
        self.functions = {op.sym_name.data: op for op in module.body.ops if isinstance(op, FuncOp)}
        self._values: dict[SSAValue, ScopeAttr] = {}
        self._operations: dict[Operation, ScopeAttr] = {}
        self._callees: dict[SSAValue, FuncOp] = {}
        known = -1
        # Function values reach arguments through calls: repeat until no call says anything new.
        while known != len(self._callees):
            known = len(self._callees)
            for func in self.functions.values():
                self._read_function(func)

    def of_value(self, value: SSAValue) -> ScopeAttr:
        """Where a value is. A value inside a computation's own body is where the computation runs."""
        found = self._values.get(value)
        if found is not None:
            return found
        if kind_of(value.type) == HOST:
            return self.host
        owner = value.owner
        op = owner.parent_op() if isinstance(owner, Block) else owner
        return self.of_op(op) if op is not None else self.host

    def of_op(self, op: Operation) -> ScopeAttr:
        """Where an operation executes."""
        current: Operation | None = op
        while current is not None:
            found = self._operations.get(current)
            if found is not None:
                return found
            current = current.parent_op()
        return self.host

    def callee_of(self, op: Operation) -> FuncOp | None:
        """The function that a call reaches, as far as known: directly, or through a function value."""
        if op_name(op) == "func.call_indirect":
            return self._callees.get(op.operands[0])
        symbol = op.get_attr_or_prop("value" if op_name(op) == "func.constant" else "callee")
        return self.functions.get(symbol.string_value()) if isinstance(symbol, SymbolRefAttr) else None

    def of_argument(self, func: FuncOp, index: int) -> ScopeAttr:
        """Where a function takes an argument."""
        types = func.function_type.inputs.data
        return self._of_signature(types[index], signature_attributes(func, ARGUMENTS, len(types))[index])

    def of_result(self, func: FuncOp, index: int) -> ScopeAttr:
        """Where a function leaves a result."""
        types = func.function_type.outputs.data
        return self._of_signature(types[index], signature_attributes(func, RESULTS, len(types))[index])

    def planned_operations(self, func: FuncOp) -> Iterator[Operation]:
        """The operations of a body that have a scope of their own to be in, outer before inner.

        The bodies of computations are not entered: these run as one.
        """
        stack = [_in_order(func.body)]
        while stack:
            op = next(stack[-1], None)
            if op is None:
                stack.pop()
                continue
            yield op
            if op_name(op) in CHOICES | LOOPS or isinstance(op, RegionOp):
                stack += (_in_order(region) for region in reversed(op.regions))

    # The sweep: definitions before uses, so that one look at each operation is enough.

    def _read_function(self, func: FuncOp) -> None:
        if func.body.first_block is None:
            return
        for index, argument in enumerate(func.body.first_block.args):
            self._values[argument] = self.of_argument(func, index)
        surroundings = _scope_on(func) or self.host
        frames: dict[Region | None, ScopeAttr] = {func.body: surroundings}
        for op in self.planned_operations(func):
            around = frames[op.parent_region()]
            inner = op.scope if isinstance(op, RegionOp) else _scope_on(op) or around
            for region in op.regions:
                frames[region] = inner
            self._read(op, op_name(op), inner)

    def _read(self, op: Operation, name: str, scope: ScopeAttr) -> None:
        if name in CONTROL or name in QUERIES or isinstance(op, RegionOp):
            self._operations[op] = self.host
            self._read_control(op, name)
        elif isinstance(op, DeviceCopyOp):
            self._operations[op] = self._values[op.result] = op.dst
        elif isinstance(op, OnDeviceOp):
            self._operations[op] = self._values[op.result] = self._annotated(op)
        else:
            scope = scope if self._touches_data(op) else self.host
            self._operations[op] = scope
            self._set_all(op.results, scope)

    def _annotated(self, op: OnDeviceOp) -> ScopeAttr:
        """Annotations are gone after planning; before, a result is where it was asked to be."""
        return op.scope if op.constrains_body or op.constrains_result else self.of_value(op.operand)

    def _read_control(self, op: Operation, name: str) -> None:
        if name in QUERIES:
            self._set_all(op.results, self.host)
        elif name in CALLS:
            self._read_call(op, name)
        elif name in LOOPS:
            initial = op.operands[3:] if name == "scf.for" else op.operands
            self._flow(initial, _entry(op.regions[0])[1 if name == "scf.for" else 0 :])
            if name == "scf.for":
                self._flow(initial, op.results)
        else:
            self._read_end(op, name)

    def _read_end(self, op: Operation, name: str) -> None:
        parent = op.parent_op()
        if name.startswith("cf."):
            targets = [argument for block in op.successors for argument in block.args]
            self._flow(op.operands[len(op.operands) - len(targets) :], targets)
        elif name == "scf.condition" and parent is not None:
            self._flow(op.operands[1:], _entry(parent.regions[1]))
            self._flow(op.operands[1:], parent.results)
        elif name in ENDS and parent is not None and (op_name(parent) in CHOICES or isinstance(parent, RegionOp)):
            self._flow(op.operands, parent.results)

    def _read_call(self, op: Operation, name: str) -> None:
        callee = self.callee_of(op)
        if name == "func.constant":
            if callee is not None:
                self._callees[op.results[0]] = callee
                self._values[op.results[0]] = (
                    self.of_result(callee, 0) if callee.function_type.outputs else self.host
                )
            return
        if callee is None:
            self._set_all(op.results, self.of_value(op.operands[0]) if op.operands else self.host)
            return
        for index, result in enumerate(op.results):
            if kind_of(result.type) != HOST:
                self._values[result] = self.of_result(callee, index)
        arguments = op.operands[1:] if name == "func.call_indirect" else op.operands
        if callee.body.first_block is not None:
            for value, argument in zip(arguments, callee.body.first_block.args, strict=True):
                if kind_of(value.type) == FUNCTION and value in self._callees:
                    self._callees.setdefault(argument, self._callees[value])

    def _flow(self, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        """The first value that is seen to flow into another says where it is; a verifier looks at the rest."""
        for source, target in zip(sources, targets, strict=True):
            if kind_of(target.type) != HOST:
                self._values.setdefault(target, self.of_value(source))
            if source in self._callees:
                self._callees.setdefault(target, self._callees[source])

    def _set_all(self, values: Sequence[SSAValue], scope: ScopeAttr) -> None:
        for value in values:
            if kind_of(value.type) != HOST:
                self._values[value] = scope

    def _touches_data(self, op: Operation) -> bool:
        if any(kind_of(value.type) != HOST for value in (*op.operands, *op.results)):
            return True
        return bool(op.regions) and any(True for _ in captured_uses(op))

    def _of_signature(self, type_: Attribute, attribute: Attribute | None) -> ScopeAttr:
        return attribute if isinstance(attribute, ScopeAttr) and kind_of(type_) != HOST else self.host


def captured_uses(op: Operation) -> Iterator[tuple[Operation, int]]:
    """The operands inside the regions of ``op`` that use data from outside of it."""
    blocks = [block for region in op.regions for block in region.blocks]
    inside: set[Block] = set()
    uses: list[tuple[Operation, int]] = []
    while blocks:
        block = blocks.pop()
        inside.add(block)
        for inner in block.ops:
            blocks += (nested for region in inner.regions for nested in region.blocks)
            uses += ((inner, i) for i, value in enumerate(inner.operands) if kind_of(value.type) != HOST)
    for inner, index in uses:
        owner = inner.operands[index].owner
        if (owner if isinstance(owner, Block) else owner.parent) not in inside:
            yield inner, index


def _scope_on(op: Operation) -> ScopeAttr | None:
    attribute = op.attributes.get(SCOPE_ATTR)
    return attribute if isinstance(attribute, ScopeAttr) and not attribute.is_open else None


def _entry(region: Region) -> Sequence[SSAValue]:
    return region.first_block.args if region.first_block is not None else ()


def _in_order(region: Region) -> Iterator[Operation]:
    """The operations of a region, each after those that define its operands.

    Blocks are taken depth first from the entry: a block comes after one way to reach it, and so after all
    blocks that dominate it.
    """
    seen: set[Block] = set()
    stack = [region.first_block] if region.first_block is not None else []
    while stack:
        block = stack.pop()
        if block in seen:
            continue
        seen.add(block)
        yield from block.ops
        if block.last_op is not None:
            stack += reversed(block.last_op.successors)
    for block in region.blocks:
        if block not in seen:
            yield from block.ops
