"""Constants are folded as MLIR folds them."""

from __future__ import annotations

import os
import random
import re
import struct

import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation

from devscope.analysis.manager import AnalysisManager
from devscope.dialects.names import op_name
from devscope.lowering.interop.session import Session
from devscope.passes.device_sccp import DeviceSccpPass
from devscope.passes.device_sccp.facts import element_of

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])

INTEGERS = {
    **{f"arith.{name}i": 2 for name in ("add", "sub", "mul", "and", "or", "xor")},
    **{f"arith.{name}": 2 for name in ("divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi")},
    **{f"arith.{name}": 2 for name in ("maxsi", "minsi", "maxui", "minui", "shli", "shrsi", "shrui")},
}
FLOATS = {"arith.addf": 2, "arith.subf": 2, "arith.mulf": 2, "arith.divf": 2, "arith.negf": 1}
ORDERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_ORDERS = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord")
FLOAT_ORDERS += ("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")
WIDTHS = {"i1": 1, "i8": 8, "i32": 32, "i64": 64, "index": 64}
FORMATS = {"f16": "e", "f32": "f", "f64": "d"}
CASTS = [
    *[("arith.extsi", a, b) for a, b in (("i1", "i8"), ("i8", "i64"), ("i32", "i64"))],
    *[("arith.extui", a, b) for a, b in (("i1", "i8"), ("i8", "i64"), ("i32", "i64"))],
    *[("arith.trunci", a, b) for a, b in (("i8", "i1"), ("i64", "i8"), ("i64", "i32"))],
    *[(f"arith.index_cast{u}", a, b) for u in ("", "ui") for a, b in (("i8", "index"), ("index", "i32"))],
    *[(f"arith.{u}itofp", a, b) for u in "su" for a in ("i1", "i8", "i32") for b in ("f32", "f64")],
    ("arith.extf", "f16", "f32"),
    ("arith.extf", "f32", "f64"),
    ("arith.truncf", "f64", "f32"),
    ("arith.truncf", "f64", "f16"),
]


def number(rng: random.Random, type_: str) -> str:
    if type_ in FORMATS:
        value = rng.choice([0.0, -0.0, 1.0, -1.5, 3.0, 0.1, 1e-6, 6e4, rng.uniform(-4, 4)])
        rounded = struct.unpack(FORMATS[type_], struct.pack(FORMATS[type_], value))[0]
        return f"{rounded:.17e}"
    bits = WIDTHS[type_]
    low, high = (0, 1) if bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    value = rng.choice([low, high, 0, 1, min(high, 2), max(low, -1), min(high, 7), rng.randint(low, high)])
    return ("false", "true")[value] if bits == 1 else str(value)


def statement(rng: random.Random) -> tuple[list[tuple[str, str]], str, str]:
    """Operands with their types, an operation on ``{0}``, ``{1}``, and the type of its result."""
    kind = rng.choice(["integer", "float", "compare", "compare float", "cast", "select"])
    type_ = rng.choice(list(FORMATS if "float" in kind else WIDTHS))
    operands = [(number(rng, type_), type_), (number(rng, type_), type_)]
    match kind:
        case "integer":
            return operands, f"{rng.choice(list(INTEGERS))} {{0}}, {{1}} : {type_}", type_
        case "float":
            name = rng.choice(list(FLOATS))
            text = ", ".join(f"{{{n}}}" for n in range(FLOATS[name]))
            return operands[: FLOATS[name]], f"{name} {text} : {type_}", type_
        case "compare":
            return operands, f"arith.cmpi {rng.choice(ORDERS)}, {{0}}, {{1}} : {type_}", "i1"
        case "compare float":
            return operands, f"arith.cmpf {rng.choice(FLOAT_ORDERS)}, {{0}}, {{1}} : {type_}", "i1"
        case "cast":
            name, source, result = rng.choice(CASTS)
            return [(number(rng, source), source)], f"{name} {{0}} : {source} to {result}", result
        case _:
            flag = (number(rng, "i1"), "i1")
            return [flag, *operands], f"arith.select {{0}}, {{1}}, {{2}} : {type_}", type_


def function(rng: random.Random, index: int) -> str:
    operands, text, result = statement(rng)
    lines = [
        f"  %{n} = arith.constant {value}" + ("" if type_ == "i1" else f" : {type_}")
        for n, (value, type_) in enumerate(operands)
    ]
    lines.append("  %r = " + text.format(*(f"%{n}" for n in range(len(operands)))))
    return f"func.func @f{index}() -> {result} {{\n" + "\n".join(lines) + f"\n  return %r : {result}\n}}\n"


def returned(module: Operation) -> dict[str, IntegerAttr | FloatAttr | None]:
    """What each function returns, where that is a constant."""
    found: dict[str, IntegerAttr | FloatAttr | None] = {}
    for op in module.walk():
        if op_name(op) == "func.func":
            end = op.regions[0].block.last_op
            assert end is not None
            source = end.operands[0].owner
            assert isinstance(source, Operation)
            is_constant = op_name(source) == "arith.constant"
            name = str(op.get_attr_or_prop("sym_name")).strip('"')
            found[name] = element_of(source.get_attr_or_prop("value")) if is_constant else None
    return found


@pytest.mark.fuzz
@pytest.mark.parametrize("round_", range(4))
def test_as_mlir_folds(round_: int) -> None:
    rng = random.Random(f"{SEED} {round_}")
    text = "".join(function(rng, index) for index in range(400))
    session = Session()
    theirs = session.parse(text)
    ours = session.to_xdsl(theirs)
    DeviceSccpPass().run(AnalysisManager(ours))
    session.to_mlir(ours)
    session.run_passes(theirs, "builtin.module(canonicalize)")
    mine, wanted = returned(ours), returned(session.to_xdsl(theirs))
    folded = 0
    for name, value in mine.items():
        if value is not None and wanted[name] is not None:
            folded += 1
            source = re.search(rf"@{name}\(.*?\n}}", text, re.DOTALL)
            assert value == wanted[name], f"{source and source[0]} DEVSCOPE_TEST_SEED={SEED}"
    assert folded > 250
