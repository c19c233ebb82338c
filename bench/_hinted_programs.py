"""Programs of elementwise operations with device hints, for every planner that is compared.

A program is a stream of steps, each of which makes one value. Values are numbered: first the inputs, then one per
step, in order. The last value is the program's result. Only the standard library is needed here: peers read this
file with a Python of their own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

SHAPE = (64, 64)
EVERY = 50
DEVICES = 2


class Op(NamedTuple):
    """An elementwise operation on one or two values."""

    operands: tuple[int, ...]


class Hint(NamedTuple):
    """A value, hinted to be on a device."""

    operand: int
    device: int


Step: TypeAlias = Op | Hint


def steps(kind: str, operations: int) -> Iterator[Step]:
    """``chain`` or ``dag``, with a hint after every `EVERY` operations, devices in turn. One input.

    Each operation of the chain uses the value before it; of the DAG also one of the values since the last hint.
    (Operands on two devices are an error in TVM Relax.)
    """
    chance = random.Random(0)
    first = last = 0
    for number in range(1, operations + 1):
        yield Op((last,) if kind == "chain" else (last, chance.randint(first, last)))
        last += 1
        if number % EVERY == 0:
            yield Hint(last, number // EVERY % DEVICES)
            last += 1
            first = last


INPUTS = 3


def random_steps(seed: int) -> list[Step]:
    """A DAG of up to 60 steps on `INPUTS` inputs, all hinted first; operands on another device are hinted too.

    So TVM Relax can plan it, and every operation has a device. A value may have any number of uses and hints.
    """
    chance = random.Random(seed)
    found: list[Step] = []
    device: list[int] = []
    usable: list[int] = []

    def hint(value: int, where: int) -> int:
        found.append(Hint(value, where))
        device.append(where)
        usable.append(INPUTS + len(found) - 1)
        return usable[-1]

    device += [-1] * INPUTS
    for value in range(INPUTS):
        hint(value, chance.randrange(DEVICES))
    for _ in range(chance.randint(5, 60)):
        if chance.random() < 0.15:
            hint(chance.choice(usable), chance.randrange(DEVICES))
            continue
        operands = [chance.choice(usable) for _ in range(chance.choice((1, 2, 2)))]
        where = device[operands[0]]
        operands = [value if device[value] == where else hint(value, where) for value in operands]
        found.append(Op(tuple(operands)))
        device.append(where)
        usable.append(INPUTS + len(found) - 1)
    return found
