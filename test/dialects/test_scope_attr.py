"""`ScopeAttr`: the truth tables of join and default_from, the text forms, and what is refused."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from devscope.dialects.context import make_context
from devscope.dialects.device import OPEN_SCOPE, ScopeAttr, TargetAttr
from devscope.errors import OptionError

SM_90 = TargetAttr.get("cuda", {"arch": "sm_90"})
TYPES = ("", "cpu", "cuda")
IDS = (-1, 0, 3)
TARGETS = (None, TargetAttr.get("cpu"), TargetAttr.get("cuda"), SM_90)
MEMORIES = ("", "global", "local")

Fields = tuple[str, int, TargetAttr | None, str]


def legal(fields: Fields) -> bool:
    return fields[2] is None or fields[2].device_type == fields[0]


ALL_FIELDS: list[Fields] = [fields for fields in product(TYPES, IDS, TARGETS, MEMORIES) if legal(fields)]
SMALL_FIELDS = [fields for fields in ALL_FIELDS if fields[1] != 0 and fields[3] != "local"]


def scope(fields: Fields) -> ScopeAttr:
    return ScopeAttr.get(*fields)


def fields_of(scope: ScopeAttr) -> Fields:
    return (scope.type_name, scope.id_value, scope.target_attr, scope.memory_name)


def parse(text: str) -> ScopeAttr:
    attribute = Parser(make_context(), text).parse_attribute()
    assert isinstance(attribute, ScopeAttr)
    return attribute


def is_open(value: object) -> bool:
    return value in ("", -1, None)


def join_of_fields(left: Fields, right: Fields) -> list[object] | None:
    """The table of the reference: open yields, equal stays, two different values have no join."""
    joined: list[object] = []
    for x, y in zip(left, right, strict=True):
        if is_open(x):
            joined.append(y)
        elif is_open(y) or x == y:
            joined.append(x)
        else:
            return None
    return joined


def test_join_is_the_field_wise_table() -> None:
    for left, right in product(ALL_FIELDS, ALL_FIELDS):
        expected = join_of_fields(left, right)
        joined = scope(left).join(scope(right))
        assert (joined is None) == (expected is None), (left, right)
        assert joined is None or list(fields_of(joined)) == expected, (left, right)


def test_default_from_is_the_field_wise_table_between_equal_device_types() -> None:
    for left, right in product(ALL_FIELDS, ALL_FIELDS):
        resulting_type = left[0] or right[0]
        taken = right if resulting_type == right[0] else ("", -1, None, "")
        expected = [y if is_open(x) else x for x, y in zip(left, taken, strict=True)]
        expected[0] = resulting_type
        assert list(fields_of(scope(left).default_from(scope(right)))) == expected, (left, right)


def test_join_is_associative() -> None:
    scopes = [scope(fields) for fields in SMALL_FIELDS]
    for x, y, z in product(scopes, repeat=3):
        xy, yz = x.join(y), y.join(z)
        left = xy.join(z) if xy is not None else None
        right = x.join(yz) if yz is not None else None
        assert left == right, (x, y, z)


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        (("cuda", 3), ("cuda", -1, SM_90, "global"), ("cuda", 3, SM_90, "global")),
        (("cuda",), ("cpu",), None),
        (("cuda", 3), ("cuda", 4), None),
        (("cuda", 3, None, "local"), ("cuda", 3, None, "global"), None),
        ((), ("cpu", 1), ("cpu", 1)),
        (("", -1, "cuda"), ("cuda", 0), ("cuda", 0, "cuda")),
        (("", -1, "cuda"), ("cpu", 0), None),
        (("cuda", -1, "cuda"), ("cuda", -1, SM_90), None),
        (("cuda", -1, "cuda"), ("cuda", -1, TargetAttr.get("cuda")), ("cuda", -1, "cuda")),
    ],
)
def test_join_examples(left: Fields, right: Fields, joined: Fields | None) -> None:
    expected = None if joined is None else ScopeAttr.get(*joined)
    assert ScopeAttr.get(*left).join(ScopeAttr.get(*right)) == expected


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ((), ("cpu", 0), ("cpu", 0)),
        (("cuda",), ("cuda", 2, SM_90, "global"), ("cuda", 2, SM_90, "global")),
        (("cuda", 1), ("cuda", 2), ("cuda", 1)),
        # TVM leaks the id and the memory scope here.
        (("cpu",), ("cuda", 3, SM_90, "global"), ("cpu",)),
        (("", 1), ("cuda", 2), ("cuda", 1)),
        (("cpu", 0), (), ("cpu", 0)),
        # An id says nothing without the device type that it counts.
        (("cuda",), ("", 3), ("cuda",)),
    ],
)
def test_default_from_examples(left: Fields, right: Fields, result: Fields) -> None:
    assert ScopeAttr.get(*left).default_from(ScopeAttr.get(*right)) == ScopeAttr.get(*result)


scopes = st.builds(
    lambda fields, device_id, memory: ScopeAttr.get(fields[0], device_id, fields[1], memory),
    st.sampled_from([("", None), ("cpu", None), ("cpu", "cpu"), ("cuda", None), ("cuda", SM_90), ("", "rocm")]),
    st.integers(-1, 2**63 - 1),
    st.from_regex(r"([A-Za-z][A-Za-z0-9_.-]{0,3})?", fullmatch=True),
)


@settings(max_examples=40)
@given(scopes, scopes)
def test_laws(x: ScopeAttr, y: ScopeAttr) -> None:
    assert x.join(x) == x
    assert x.join(OPEN_SCOPE) == x
    assert x.join(y) == y.join(x)
    assert x.default_from(x) == x
    assert x.default_from(OPEN_SCOPE) == x
    assert OPEN_SCOPE.default_from(x) == x
    joined = x.join(y)
    if joined is not None:
        assert joined.join(x) == joined
        assert joined.join(y) == joined
    defaulted = x.default_from(y)
    assert defaulted.join(x) == defaulted
    assert defaulted.default_from(y) == defaulted


@given(scopes)
def test_printed_form_reads_back(x: ScopeAttr) -> None:
    assert parse(str(x)) == x
    assert str(parse(str(x))) == str(x)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ('#device.scope<"opencl", 0 : i64, "", "">', '#device.scope<"opencl", 0 : i64, "", "">'),
        ('#device.scope<"opencl", 0>', '#device.scope<"opencl", 0 : i64, "", "">'),
        ('#device.scope<"opencl">', '#device.scope<"opencl", -1 : i64, "", "">'),
        ("#device.scope<>", '#device.scope<"", -1 : i64, "", "">'),
        ('#device.scope<"cuda", 1, "cuda">', '#device.scope<"cuda", 1 : i64, "cuda", "">'),
        (
            '#device.scope<"cuda", 1, #device.target<"cuda">, "global">',
            '#device.scope<"cuda", 1 : i64, #device.target<"cuda", {}>, "global">',
        ),
        (
            '#device.scope<"cuda", 1, #device.target<"cuda", {ptx = "8.0", arch = "sm_90"}>>',
            '#device.scope<"cuda", 1 : i64, #device.target<"cuda", {arch = "sm_90", ptx = "8.0"}>, "">',
        ),
    ],
)
def test_written_forms(written: str, printed: str) -> None:
    assert str(parse(written)) == printed
    assert str(parse(printed)) == printed


def test_equality_is_that_of_meanings() -> None:
    by_name = parse('#device.scope<"cuda", 0, "cuda">')
    by_target = parse('#device.scope<"cuda", 0, #device.target<"cuda", {}>>')
    by_target_alone = parse('#device.scope<"", 0, "cuda">')
    assert by_name == by_target == by_target_alone == ScopeAttr.get("cuda", 0, "cuda")
    assert len({by_name, by_target, by_target_alone}) == 1
    assert by_name != parse('#device.scope<"cuda", 0>')
    assert by_name != "cuda:0"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("cpu", ("cpu",)),
        ("opencl:0", ("opencl", 0)),
        ("opencl:12@global", ("opencl", 12, None, "global")),
        ("cuda@global.texture", ("cuda", -1, None, "global.texture")),
        ("@global", ("", -1, None, "global")),
    ],
)
def test_short_text(text: str, fields: Fields) -> None:
    assert ScopeAttr.parse_text(text) == ScopeAttr.get(*fields)
    assert ScopeAttr.get(*fields).short() == text


def test_short_text_of_open_and_targeted_scopes() -> None:
    assert OPEN_SCOPE.short() == "open"
    assert ScopeAttr.get("cuda", 0, SM_90).short() == 'cuda:0<cuda arch="sm_90">'


def test_same_device_ignores_target_and_memory() -> None:
    assert ScopeAttr.get("cuda", 0, SM_90).same_device(ScopeAttr.get("cuda", 0, None, "global"))
    assert not ScopeAttr.get("cuda", 0).same_device(ScopeAttr.get("cuda", 1))
    assert not ScopeAttr.get("cuda", 0).same_device(ScopeAttr.get("cpu", 0))


TYPES_NOTE = "legal device types are: cpu, cuda, opencl, rocm, and those of installed backends"
KINDS_NOTE = "legal target kinds are: cpu, cuda, opencl, rocm, and those of installed backends"


@pytest.mark.parametrize(
    ("fields", "message", "note"),
    [
        (("tpu",), "unknown device type 'tpu'", TYPES_NOTE),
        (("cpu", -2), "-2 is not a device id", "an id is 0 or more and fits an i64; -1 is open"),
        (("cpu", 2**63), "9223372036854775808 is not a device id", None),
        (("cpu", 0, None, "1"), "'1' is not a memory scope", None),
        (("cpu", 0, "tpu"), "unknown target kind 'tpu'", KINDS_NOTE),
        (
            ("cpu", 0, "cuda"),
            "target 'cuda' compiles for devices of type 'cuda', not 'cpu'",
            "a scope on 'cpu' needs a target of that device type, or an open target",
        ),
    ],
)
def test_illegal_fields(fields: Fields, message: str, note: str | None) -> None:
    with pytest.raises(OptionError) as caught:
        ScopeAttr.get(*fields)
    assert caught.value.message == message
    assert note is None or list(caught.value.notes) == [note]


@pytest.mark.parametrize("text", ["", "cpu:", "cpu:x", "cpu:-1", "cpu:0:1", "cpu@", ":@", "cpu:0@a@b"])
def test_illegal_short_text(text: str) -> None:
    with pytest.raises(OptionError, match="is not a scope") as caught:
        ScopeAttr.parse_text(text)
    assert "opencl:0@global" in caught.value.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('#device.scope<"tpu">', f"unknown device type 'tpu'; {TYPES_NOTE}"),
        ('#device.scope<"cpu", -7>', "-7 is not a device id; an id is 0 or more"),
        ('#device.scope<"cpu", 0 : i32>', "a device id is an i64, such as 0 : i64, not 0 : i32"),
        ('#device.scope<"cpu", 0, "tpu">', f"unknown target kind 'tpu'; {KINDS_NOTE}"),
        (
            '#device.scope<"cpu", 0, "cuda">',
            "compiles for devices of type 'cuda', not 'cpu'; a scope on 'cpu'",
        ),
    ],
)
def test_illegal_meaning(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_errors_of_the_parser_are_located() -> None:
    with pytest.raises(ParseError) as caught:
        Parser(make_context(), '\n\n  #device.scope<"tpu", 0>', "m.mlir").parse_attribute()
    assert str(caught.value).startswith('m.mlir:3:16\n  #device.scope<"tpu", 0>\n')


def test_built_attributes_are_verified() -> None:
    with pytest.raises(VerifyException, match="unknown device type 'tpu'; legal device types are: cpu"):
        ScopeAttr.new((StringAttr("tpu"), *OPEN_SCOPE.parameters[1:]))


@pytest.mark.parametrize(
    "text",
    [
        '#device.scope<"cpu", "0">',
        "#device.scope<unit, 0>",
        '#device.scope<"cpu", 0, "", "", "">',
        '#device.scope<"cpu", 0, 1 : i64>',
    ],
)
def test_illegal_form(text: str) -> None:
    with pytest.raises(ParseError, match=r"a scope is written #device\.scope<TYPE, ID, TARGET, MEMORY>"):
        parse(text)
