"""TVM Relax's side of `plan.py`: runs in a Python of its own, which needs nothing but TVM.

python _relax.py time chain|dag OPERATIONS     seconds and copies of RealizeVDevice
python _relax.py copies PROGRAMS               its copies on each random program; null where it refuses
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from typing import Any

import tvm
from _hinted_programs import DEVICES, INPUTS, SHAPE, Op, Step, random_steps, steps
from tvm import relax


def build(program: Iterable[Step], inputs: int) -> Any:
    """An IRModule with one function; every step is one binding of a dataflow block."""
    type_ = relax.TensorType(SHAPE, "float32")
    values: list[Any] = [relax.Var(f"x{number}", type_) for number in range(inputs)]
    devices = [tvm.cpu(number) for number in range(DEVICES)]
    builder = relax.BlockBuilder()
    with builder.function("main", list(values)):
        with builder.dataflow():
            for step in program:
                if isinstance(step, Op):
                    operands = [values[operand] for operand in step.operands]
                    call = relax.op.add(*operands) if len(operands) == 2 else relax.op.nn.relu(*operands)
                else:
                    call = relax.op.hint_on_device(values[step.operand], devices[step.device], "global")
                values.append(builder.emit(call))
            result = builder.emit_output(values[-1])
        builder.emit_func_output(result)
    module = builder.get()
    module.update_global_info("vdevice", [relax.VDevice("llvm", number, "global") for number in range(DEVICES)])
    return module


def copies(module: Any) -> int:
    bindings = (binding for block in module["main"].body.blocks for binding in block.bindings)
    calls = (binding.value for binding in bindings)
    return sum(isinstance(call, relax.Call) and call.op.name == "relax.to_vdevice" for call in calls)


def measure(kind: str, operations: int) -> dict[str, float]:
    plan = relax.transform.RealizeVDevice()
    plan(build(steps(kind, 1000), 1))  # what is made once per process
    module = build(steps(kind, operations), 1)
    start = time.process_time()
    planned = plan(module)
    seconds = time.process_time() - start
    return {"seconds": seconds, "copies": copies(planned)}


def count(programs: int) -> list[int | None]:
    plan = relax.transform.RealizeVDevice()
    found: list[int | None] = []
    for seed in range(programs):
        module = build(random_steps(seed), INPUTS)
        try:
            found.append(copies(plan(module)))
        except (ValueError, tvm.TVMError):
            found.append(None)
    return found


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "time":
        print(json.dumps(measure(arguments[0], int(arguments[1]))))
    else:
        print(json.dumps({"copies": count(int(arguments[0]))}))
