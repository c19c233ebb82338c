"""Target kinds and `TargetAttr`: the registry, the option schemas, the written form."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from devscope.dialects import target as registry
from devscope.dialects.context import make_context
from devscope.dialects.device import ScopeAttr, TargetAttr
from devscope.dialects.target import (
    OptionSpec,
    OptionValue,
    TargetKind,
    device_types,
    get_target_kind,
    register_target_kind,
    target_kinds,
)
from devscope.errors import OptionError

KINDS = "legal target kinds are: cpu, cuda, opencl, rocm"


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registrations of a test end with it."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))


def parse(text: str) -> TargetAttr:
    attribute = Parser(make_context(), text).parse_attribute()
    assert isinstance(attribute, TargetAttr)
    return attribute


def test_built_in_kinds() -> None:
    assert set(target_kinds()) == {"cpu", "opencl", "cuda", "rocm"}
    assert device_types() == ("cpu", "cuda", "opencl", "rocm")
    assert {name: kind.device_type for name, kind in target_kinds().items()} == {
        name: name for name in target_kinds()
    }
    assert {name: spec.type for name, spec in get_target_kind("opencl").options.items()} == {
        "type": str,
        "vector": int,
        "workgroup": int,
        "fp64": bool,
        "fp16": bool,
        "subgroup": int,
        "calls": bool,
    }


def test_unknown_kind_lists_the_legal_ones() -> None:
    with pytest.raises(OptionError, match="unknown target kind 'tpu'") as caught:
        get_target_kind("tpu")
    assert caught.value.notes == (f"{KINDS}, and those of installed backends",)


@pytest.mark.usefixtures("own_registry")
def test_a_registered_kind_brings_its_device_type() -> None:
    kind = TargetKind("npu-v2", "npu", {"tiles": OptionSpec(int)})
    register_target_kind(kind)
    register_target_kind(kind)
    assert "npu" in device_types()
    target = TargetAttr.get("npu-v2", {"tiles": 4})
    assert ScopeAttr.get("npu", 0, target).target_attr == target
    with pytest.raises(OptionError, match="already registered with other options"):
        register_target_kind(TargetKind("npu-v2", "npu"))


@pytest.mark.parametrize("name", ["", "a b", "1st", "a:0", "a@b"])
def test_malformed_names_are_refused(name: str) -> None:
    for kind in (TargetKind(name, "cpu"), TargetKind("new", name)):
        with pytest.raises(OptionError, match="cannot be registered"):
            register_target_kind(kind)


def test_values_of_options() -> None:
    target = TargetAttr.get("opencl", {"workgroup": 64, "fp64": True})
    assert str(target) == '#device.target<"opencl", {fp64 = true, workgroup = 64 : i64}>'
    assert parse(str(target)) == target
    assert target.option_values == {"workgroup": 64, "fp64": True}
    assert target.kind_name == "opencl"
    assert target.short() == "opencl fp64=true workgroup=64 : i64"


def test_order_of_options_does_not_matter() -> None:
    written = parse('#device.target<"cuda", {ptx = "8.0", arch = "sm_90"}>')
    assert written == TargetAttr.get("cuda", {"arch": "sm_90", "ptx": "8.0"})
    assert str(written) == '#device.target<"cuda", {arch = "sm_90", ptx = "8.0"}>'


@pytest.mark.parametrize(
    ("kind", "options", "message", "note"),
    [
        ("tpu", {}, "unknown target kind 'tpu'", f"{KINDS}, and those of installed backends"),
        (
            "cuda",
            {"archh": "sm_90"},
            "unknown option 'archh' of target kind 'cuda'",
            "legal options are: arch (str), calls (bool), ptx (str), tf32 (bool)",
        ),
        (
            "cuda",
            {"arch": 90},
            "option 'arch' of target kind 'cuda' must be a string, such as \"...\", not 90",
            None,
        ),
        (
            "cpu",
            {"opt": "3"},
            "option 'opt' of target kind 'cpu' must be an i64, such as 1, from 0 to 3, not \"3\"",
            None,
        ),
        (
            "cpu",
            {"opt": True},
            "option 'opt' of target kind 'cpu' must be an i64, such as 1, from 0 to 3, not true",
            None,
        ),
        ("cpu", {"opt": 2**63}, "must be an i64, such as 1, from 0 to 3, not 9223372036854775808", None),
        ("opencl", {"fp64": 1}, "option 'fp64' of target kind 'opencl' must be true or false, not 1", None),
    ],
)
def test_illegal_targets(kind: str, options: dict[str, OptionValue], message: str, note: str | None) -> None:
    with pytest.raises(OptionError) as caught:
        TargetAttr.get(kind, options)
    assert message in caught.value.message
    assert note is None or caught.value.notes == (note,)


@pytest.mark.usefixtures("own_registry")
def test_a_kind_without_options_says_so() -> None:
    register_target_kind(TargetKind("blas", "cpu"))
    with pytest.raises(OptionError) as caught:
        TargetAttr.get("blas", {"threads": 1})
    assert caught.value.notes == ("target kind 'blas' has no options",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '#device.target<"tpu">',
            "unknown target kind 'tpu'; legal target kinds are: cpu, cuda, opencl, rocm",
        ),
        (
            '#device.target<"cuda", {sm = 90}>',
            r"unknown option 'sm' .*; legal options are: arch \(str\), calls",
        ),
        ('#device.target<"cpu", {opt = 3 : i32}>', "must be an i64, such as 1, from 0 to 3, not 3 : i32"),
        ('#device.target<"cpu", {opt = [3]}>', "must be an i64, such as 1, from 0 to 3, not "),
    ],
)
def test_illegal_meaning(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_built_attributes_are_verified() -> None:
    with pytest.raises(VerifyException, match="unknown target kind 'tpu'; legal target kinds are: cpu"):
        TargetAttr.new((StringAttr("tpu"), DictionaryAttr({})))


@pytest.mark.parametrize("text", ["#device.target<>", "#device.target<1>", '#device.target<"cpu", {}, 1>'])
def test_illegal_form(text: str) -> None:
    with pytest.raises(ParseError, match=r"a target is written #device\.target<KIND, \{OPTION"):
        parse(text)
