"""An interpreter for random modules that knows nothing of scopes: what a program computes, wherever it does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, SymbolRefAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region, SSAValue

from devscope.dialects.names import op_name

MOST_DECISIONS = 40
"""After so many, every loop ends and every branch goes the same way."""

Array = np.ndarray[Any, Any]


class Number(int):
    """What a function value became: a choice by it is not drawn."""


class Interpreter:
    """Runs functions. Which way control takes is drawn anew for each decision, so conditions need no values."""

    def __init__(self, module: ModuleOp, seed: int) -> None:
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self._rng = random.Random(seed)
        self._decisions = 0
        self.calls = 0

    def run(self, name: str) -> list[Any]:
        """The results of a function on arguments that are the same for the same types."""
        func = self._functions[name]
        types = func.function_type.inputs
        return self._call(func, [_argument(number, type_) for number, type_ in enumerate(types)])

    def _decide(self, choices: int) -> int:
        if choices == 1:
            return 0
        self._decisions += 1
        return self._rng.randrange(choices) if self._decisions < MOST_DECISIONS else 0

    def _call(self, func: FuncOp, arguments: Sequence[Any]) -> list[Any]:
        self.calls += 1
        if not func.body.blocks:
            return [np.tanh(arguments[0] + 0.25)]
        return self._region(func.body, {}, arguments)

    def _region(self, region: Region, values: dict[SSAValue, Any], arguments: Sequence[Any]) -> list[Any]:
        """Runs a region to its end; what the operation at its end takes."""
        block = region.blocks.first
        assert block is not None
        while True:
            values.update(zip(block.args, arguments, strict=True))
            last = block.last_op
            assert last is not None
            for op in block.ops:
                if op is not last:
                    results = self._op(op, op_name(op), values)
                    values.update(zip(op.results, results, strict=True))
            operands = [values[operand] for operand in last.operands]
            if not last.successors:
                return operands
            # The last successor ends loops.
            number = len(last.successors) - 1 - self._decide(len(last.successors)) if last.successors[1:] else 0
            block = last.successors[number]
            counts = [len(successor.args) for successor in last.successors]
            first = len(operands) - sum(counts[number:])
            arguments = operands[first : first + counts[number]]

    def _op(self, op: Operation, name: str, values: dict[SSAValue, Any]) -> list[Any]:
        operands = [values[operand] for operand in op.operands]
        match name:
            case "arith.constant" if not isinstance(op.results[0].type, TensorType):
                value = op.get_attr_or_prop("value")
                return [Number(value.value.data) if isinstance(value, IntegerAttr) else np.ones(())]
            case "scf.index_switch" if isinstance(operands[0], Number):
                cases = op.get_attr_or_prop("cases")
                assert isinstance(cases, DenseArrayBase)
                regions = dict(zip(cases.iter_values(), op.regions[1:], strict=True))
                return self._region(regions.get(operands[0], op.regions[0]), values, [])
            case _ if name in _COMPUTES:
                return _COMPUTES[name](op, *operands)
            case "tensor.generate":
                made = np.empty(_shape(op))
                for index in np.ndindex(made.shape):
                    (made[index],) = self._region(op.regions[0], values, index)
                return [made]
            case "arith.select":
                return [operands[1 + self._decide(2)]]
            case "func.constant":
                return [self._functions[_symbol(op, "value")]]
            case "func.call":
                return self._call(self._functions[_symbol(op, "callee")], operands)
            case "func.call_indirect":
                return self._call(operands[0], operands[1:])
            case "scf.for":
                return self._for(op, values, operands[3:])
            case "scf.while":
                return self._while(op, values, operands)
            case _:
                return self._region(op.regions[self._decide(len(op.regions))], values, [])

    def _for(self, op: Operation, values: dict[SSAValue, Any], carried: list[Any]) -> list[Any]:
        while self._decide(2):
            carried = self._region(op.regions[0], values, [0, *carried])
        return carried

    def _while(self, op: Operation, values: dict[SSAValue, Any], carried: list[Any]) -> list[Any]:
        while True:
            _, *leaving = self._region(op.regions[0], values, carried)
            if not self._decide(2):
                return leaving
            carried = self._region(op.regions[1], values, leaving)


def _insert(op: Operation, scalar: float, tensor: Array, row: int, column: int) -> list[Any]:
    changed = tensor.copy()
    changed[row, column] = scalar
    return [changed]


_COMPUTES: dict[str, Callable[..., list[Any]]] = {
    "ml.op": lambda op, x, y: [np.sin(1.3 * x + 0.7 * y + 0.1)],
    "ml.use": lambda op, x: [],
    "device.on_device": lambda op, x: [x],
    "device.device_copy": lambda op, x: [x],
    "tensor.bitcast": lambda op, x: [x],
    "arith.constant": lambda op: [np.ones(_shape(op))],
    "tensor.empty": lambda op: [np.zeros(_shape(op))],
    "linalg.fill": lambda op, scalar, tensor: [np.full_like(tensor, scalar)],
    "tensor.extract": lambda op, tensor, row, column: [tensor[row, column]],
    "tensor.insert": _insert,
}


def _argument(number: int, type_: Any) -> Any:
    if isinstance(type_, TensorType):
        shape = type_.get_shape()
        return np.cos(np.arange(np.prod(shape)).reshape(shape) + number)
    return 0


def _shape(op: Operation) -> tuple[int, ...]:
    type_ = op.results[0].type
    return type_.get_shape() if isinstance(type_, TensorType) else ()


def _symbol(op: Operation, key: str) -> str:
    symbol = op.get_attr_or_prop(key)
    assert isinstance(symbol, SymbolRefAttr)
    return symbol.string_value()
