"""Cuts a split module into one for the host, which holds device data as buffers, and one per device and target.

In the host's functions a tensor that lives on a device becomes a memref whose memory space is its scope,
and ``device.device_copy`` becomes an allocation and a ``memref.copy`` between spaces. Everything MLIR does
with buffers afterwards (carrying them through loops, freeing them) then works on device buffers unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import Symbols, callee_name, is_kernel
from devscope.analysis.target_binding import TargetBinding
from devscope.analysis.user_kernels import drop_idle_kernels
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR, DeviceCopyOp, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import LoweringError

Code = tuple[ScopeAttr, TargetAttr]
"""Where code runs, and what it is compiled for."""


@dataclass
class CutModules:
    """The parts of a program: each verifies on its own.

    ``scopes``: where devices have code or data, ``parts``: their code. A device may have no code, since data can
    be placed there without being worked on, and several parts, whose targets differ.
    """

    host: ModuleOp
    scopes: list[ScopeAttr]
    parts: dict[Code, ModuleOp]


def cut_module(module: ModuleOp, binding: TargetBinding) -> CutModules:
    """Take a split module apart; ``module`` is consumed."""
    drop_idle_kernels(module)
    spaces = _HostBuffers(module, binding).convert()
    parts: dict[Code, ModuleOp] = {}
    for function in [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]:
        scope = function.attributes.get(SCOPE_ATTR)
        if not isinstance(scope, ScopeAttr) or binding.in_host_memory(scope):
            continue
        if not is_kernel(function):
            declaration = _declaration(function, scope, binding)
            module.body.block.insert_op_before(declaration, function)
        function.detach()
        target = function.attributes[TARGET_ATTR]
        assert isinstance(target, TargetAttr)
        parts.setdefault((scope, target), ModuleOp([])).body.block.add_op(function)
    _declare_external_functions(list(parts.values()))
    return CutModules(module, list(dict.fromkeys([scope for scope, _ in parts] + spaces)), parts)


def _declare_external_functions(parts: list[ModuleOp]) -> None:
    """Declare in each part what it calls of another one, whose launchers it is linked with."""
    tables = [Symbols(part).functions for part in parts]
    functions = {name: f for table in tables for name, f in table.items()}
    for part, table in zip(parts, tables, strict=True):
        present = set(table)
        for op in list(part.walk()):
            callee = callee_name(op)
            if callee is None or callee in present:
                continue
            present.add(callee)
            type_ = functions[callee].function_type
            declaration = func.FuncOp(callee, type_, Region(), visibility="private")
            # Bufferisation takes it for granted that a function without a body writes to its arguments.
            read = DictionaryAttr({"bufferization.access": StringAttr("read")})
            is_read = [isinstance(input_, TensorType) for input_ in type_.inputs]
            declaration.properties["arg_attrs"] = ArrayAttr([read if i else DictionaryAttr({}) for i in is_read])
            declaration.location = functions[callee].location
            part.body.block.add_op(declaration)


def _declaration(function: func.FuncOp, scope: ScopeAttr, binding: TargetBinding) -> func.FuncOp:
    """What the host sees of a device function: the same signature, over buffers."""
    inputs = [_buffer_type(t, scope) for t in function.function_type.inputs]
    outputs = [_buffer_type(t, scope) for t in function.function_type.outputs]
    declaration = func.FuncOp(
        function.sym_name.data, FunctionType.from_lists(inputs, outputs), Region(), visibility="private"
    )
    declaration.location = function.location
    return declaration


def _buffer_type(type_: Attribute, scope: ScopeAttr) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    return MemRefType(type_.get_element_type(), type_.get_shape(), NoneAttr(), scope)


class _HostBuffers:
    """Rewrites the host functions of a split module."""

    def __init__(self, module: ModuleOp, binding: TargetBinding) -> None:
        self._module = module
        self._binding = binding
        self._scopes = ScopeAnalysis(module)

    def convert(self) -> list[ScopeAttr]:
        """Returns the devices that hold data of the host's functions."""
        functions = [op for op in self._module.body.block.ops if isinstance(op, func.FuncOp)]
        hosts = [f for f in functions if self._is_host(f)]
        new_types = [
            (value, type_)
            for function in hosts
            for value in _values(function)
            if (type_ := self._new_type(value)) != value.type
        ]
        copies = [op for f in hosts for op in f.walk() if isinstance(op, DeviceCopyOp)]
        places = {op: (self._space(op.operand), self._space(op.result)) for op in copies}
        for value, type_ in new_types:
            Rewriter.replace_value_with_new_type(value, type_)
        if new_types or copies:
            _lower_transfers(hosts, places)
        for function in hosts:
            _check_operations(function)
            _update_signature(function)
        spaces = dict.fromkeys(type_.memory_space for _, type_ in new_types if isinstance(type_, MemRefType))
        return [space for space in spaces if isinstance(space, ScopeAttr)]

    def _is_host(self, function: func.FuncOp) -> bool:
        scope = function.attributes.get(SCOPE_ATTR)
        return not isinstance(scope, ScopeAttr) or self._binding.in_host_memory(scope)

    def _space(self, value: SSAValue) -> ScopeAttr | None:
        """The device scope that holds a tensor; None for host memory."""
        if not isinstance(value.type, TensorType):
            return None
        scope = self._scopes.of_value(value)
        return None if scope.is_open or self._binding.in_host_memory(scope) else scope

    def _new_type(self, value: SSAValue) -> Attribute:
        space = self._space(value)
        return value.type if space is None else _buffer_type(value.type, space)


def _values(function: func.FuncOp) -> list[SSAValue]:
    values: list[SSAValue] = []
    for op in function.walk():
        values.extend(op.results)
        values.extend(a for region in op.regions for block in region.blocks for a in block.args)
    return values


def _lower_transfers(
    functions: list[func.FuncOp], copies: dict[DeviceCopyOp, tuple[ScopeAttr | None, ScopeAttr | None]]
) -> None:
    # Imported here because the dialects behind it are: programs for the host alone do without them.
    from devscope.lowering.transfers import lower_copy, lower_dims

    for copy, (source, target) in copies.items():
        lower_copy(copy, source, target)
    for function in functions:
        lower_dims(function)


def _check_operations(function: func.FuncOp) -> None:
    for op in function.walk():
        if not _fits(op):
            raise LoweringError(
                f"operation '{op_name(op)}' uses data of a device on the host",
                source_location(op),
                ["put a device.device_copy before it, or place it on the device"],
            )


_CARRIERS = frozenset({"func.func", "func.call", "func.return", "memref.dim", "memref.copy", "memref.alloc"})


def _fits(op: Operation) -> bool:
    """Whether an operation of a host function may have device buffers among its operands and results."""
    name = op_name(op)
    if name in _CARRIERS or name.startswith(("scf.", "cf.", "memref.", "bufferization.")):
        return True
    return not any(
        isinstance(v.type, MemRefType) and isinstance(v.type.memory_space, ScopeAttr)
        for v in (*op.operands, *op.results)
    )


def _update_signature(function: func.FuncOp) -> None:
    blocks: list[Block] = list(function.body.blocks)
    if not blocks:
        return
    outputs = list(function.function_type.outputs)
    for block in blocks:
        if isinstance(block.last_op, func.ReturnOp):
            outputs = [v.type for v in block.last_op.operands]
    function.properties["function_type"] = FunctionType.from_lists(list(blocks[0].arg_types), outputs)
