"""What of a program the accelerator computes, and the code that it gets."""

from __future__ import annotations

import json
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType

from devscope import Backend
from devscope.backends import Claimed, DeviceBinary, OptionSpec, Row
from devscope.patterns import Match, broadcast, constant, elementwise, op, op_name, relu, transposes, wildcard

MATMUL = op("linalg.matmul", wildcard().named("a"), wildcard().named("b"), constant(0.0))
CONV2D = op("linalg.conv_2d_nhwc_hwcf", wildcard().named("a"), wildcard().named("b"), constant(0.0))
DENSE = relu(elementwise("add", MATMUL, broadcast(wildcard().named("bias"), (-1,))))


def fits(match: Match) -> bool | str:
    """What its units take: f32, plain matrices, and as many rows as a bank has place for."""
    (product,) = match.named("linalg.matmul", "linalg.conv_2d_nhwc_hwcf")
    for value in (*product.operands, *product.results):
        type_ = value.type
        if not isinstance(type_, TensorType) or str(type_.get_element_type()) != "f32":
            return f"its units compute with f32, not with {type_}"
        if DYNAMIC_INDEX not in type_.get_shape() and max(type_.get_shape(), default=0) > match.options.get(
            "bank", 4096
        ):
            return f"{type_} does not fit into a bank of {match.options.get('bank', 4096)} rows"
    if op_name(product) == "linalg.matmul" and transposes(product) != (False, False):
        return "it multiplies matrices that stand as they are"
    return True


class Vanilla(Backend):
    name = "vanilla"
    device_type = "vanilla"
    options: ClassVar[dict[str, OptionSpec]] = {
        "bank": OptionSpec(int, "rows that a memory bank has place for", minimum=1)
    }
    patterns = (
        Row("dense", DENSE, fits),
        Row("conv2d", CONV2D, fits),
        Row("matmul", MATMUL, fits),
    )

    def codegen(self, function: Claimed) -> DeviceBinary:
        """A program for the accelerator is a line of JSON: an operation, its operands by number, and ranks."""
        match = function.match
        assert match is not None
        program = {
            "op": function.pattern,
            "operands": [function.operand(match[name]) for name in ("a", "b", "bias") if name in match],
            "ranks": [len(type_.get_shape()) for type_ in (*function.inputs, *function.outputs)],
        }
        if function.pattern == "conv2d":
            program["strides"] = match.attribute("strides") or [1, 1]
            program["dilations"] = match.attribute("dilations") or [1, 1]
        return DeviceBinary(json.dumps(program, sort_keys=True).encode(), "main")

    def cost(self, match: Match) -> float | None:
        """Seconds: 10 us for a launch, and 100 GFLOP/s where sizes are known."""
        (product,) = match.named("linalg.matmul", "linalg.conv_2d_nhwc_hwcf")
        work = 2
        for value in (product.operands[1], product.results[0]):
            for size in value.type.get_shape():
                if size == DYNAMIC_INDEX:
                    return None
                work *= size
        return 1e-5 + work / product.results[0].type.get_shape()[-1] / 1e11
