"""Operations built without xDSL's constructors are like those built with them."""

from __future__ import annotations

from xdsl.dialects.arith import AddfOp, FastMathFlagsAttr
from xdsl.dialects.builtin import UNKNOWN_LOC, StringAttr, f32
from xdsl.ir import Block, Operation

from devscope.lowering.interop.importer import append, make_operation


def build(fast: bool) -> Block:
    block = Block(arg_types=[f32])
    value = block.args[0]
    for _ in range(3):
        properties, attributes = {"fastmath": FastMathFlagsAttr("none")}, {"note": StringAttr("x")}
        if fast:
            op = make_operation(AddfOp, [value, value], [f32], properties, attributes, UNKNOWN_LOC)
            append(block, op)
        else:
            op = AddfOp.create(
                operands=[value, value],
                result_types=[f32],
                properties=properties,
                attributes=attributes,
                location=UNKNOWN_LOC,
            )
            block.add_op(op)
        value = op.results[0]
    return block


def field_types(thing: object) -> dict[str, type]:
    """The type of each field, those that were never set included."""
    names = set(dir(thing)) if not isinstance(thing, Operation) else set(Operation.__dataclass_fields__)
    return {name: type(getattr(thing, name)) for name in sorted(names - {"name", "traits"})}


def test_the_same_block():
    fast, slow = build(True), build(False)
    assert fast.is_structurally_equivalent(slow)
    for one, other in zip(fast.ops, slow.ops, strict=True):
        assert field_types(one) == field_types(other)
        one.verify()
    backwards = list(reversed(fast.ops))
    assert [*reversed(backwards)] == list(fast.ops)


def test_uses_are_complete():
    fast, slow = build(True), build(False)
    for one, other in zip(
        [fast.args[0], *(op.results[0] for op in fast.ops)],
        [slow.args[0], *(op.results[0] for op in slow.ops)],
        strict=True,
    ):
        assert [use.index for use in one.uses] == [use.index for use in other.uses]
        assert type(one) is type(other)
        assert one.name_hint is other.name_hint is None


def test_what_is_built_can_be_changed():
    block = build(True)
    first, second, third = block.ops
    third.detach()
    third.erase()
    second.results[0].replace_all_uses_with(first.results[0])
    second.detach()
    second.erase()
    assert list(block.ops) == [first]
    assert first.results[0].first_use is None
    assert first.clone().is_structurally_equivalent(first, {block.args[0]: block.args[0]})
