"""Options of passes: conversion to the declared types, and what is said about wrong ones."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from xdsl.passes import ModulePass

from devscope.cli.pass_pipeline import describe_options, make_pass, parse_stages
from devscope.cli.pass_syntax import parse_pipeline
from devscope.errors import OptionError


@dataclass(frozen=True)
class SamplePass(ModulePass):
    name = "sample"

    needed: int
    scope: str = "cpu:0"
    mode: Literal["fast", "small"] = "fast"
    ratio: float = 0.5
    verbose: bool = False
    limit: int | None = None
    sizes: tuple[int, ...] = ()
    mixed: int | str = 3

    def apply(self, ctx: Any, op: Any) -> None: ...


@dataclass(frozen=True)
class PickyPass(ModulePass):
    name = "picky"

    scope: str = ""

    def __post_init__(self) -> None:
        if self.scope:
            raise OptionError(f"no such device '{self.scope}'", notes=["there is: cpu"])

    def apply(self, ctx: Any, op: Any) -> None: ...


def build(text: str) -> SamplePass:
    (item,) = parse_pipeline(text)
    result = make_pass(SamplePass, item)
    assert isinstance(result, SamplePass)
    return result


def test_defaults() -> None:
    assert build("sample{needed=1}") == SamplePass(1)


@pytest.mark.parametrize(
    ("option", "field", "value"),
    [
        ("scope=opencl:0@global", "scope", "opencl:0@global"),
        ("scope=12", "scope", "12"),
        ("scope=true", "scope", "true"),
        ('scope="a b"', "scope", "a b"),
        ("scope=a,b", "scope", "a,b"),
        ("mode=small", "mode", "small"),
        ("ratio=1", "ratio", 1.0),
        ("ratio=1e-3", "ratio", 1e-3),
        ("verbose", "verbose", True),
        ("verbose=false", "verbose", False),
        ("limit=-7", "limit", -7),
        ("limit=0x10", "limit", 16),
        ("limit", "limit", None),
        ("sizes=1,2,3", "sizes", (1, 2, 3)),
        ("sizes=4", "sizes", (4,)),
        ("sizes", "sizes", ()),
        ("mixed=5", "mixed", 5),
        ("mixed=five", "mixed", "five"),
    ],
)
def test_conversion(option: str, field: str, value: object) -> None:
    result = getattr(build(f"sample{{needed=1 {option}}}"), field)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("needed=x", "option 'needed' of pass 'sample' expects integer, got x"),
        ("needed=1.5", "expects integer, got 1.5"),
        ("needed=1,2", "expects integer, got 1,2"),
        ("needed", "expects integer, got no value"),
        ("needed=1 mode=huge", "option 'mode' of pass 'sample' expects fast or small, got huge"),
        ("needed=1 verbose=yes", "expects true or false, got yes"),
        ("needed=1 ratio=much", "expects number, got much"),
        ("needed=1 sizes=1,x", "expects list of integer, got 1,x"),
    ],
)
def test_wrong_types(option: str, expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        build(f"sample{{{option}}}")
    assert expected in str(caught.value)


def test_unknown_option_lists_the_legal_ones() -> None:
    with pytest.raises(OptionError) as caught:
        build("sample{needed=1 scopes=cpu}")
    text = str(caught.value)
    assert text.startswith("<pipeline>:1:17: error: pass 'sample' has no option 'scopes'")
    assert "did you mean 'scope'?" in text
    assert 'needed: integer, scope: text = "cpu:0", mode: fast or small = "fast"' in text


def test_missing_option() -> None:
    with pytest.raises(OptionError, match="pass 'sample' needs the option 'needed'"):
        build("sample")


def test_a_refusal_of_the_pass_gets_a_position() -> None:
    (item,) = parse_pipeline("picky{scope=tpu}")
    with pytest.raises(OptionError) as caught:
        make_pass(PickyPass, item)
    assert str(caught.value) == "<pipeline>:1:1: error: no such device 'tpu'\n  note: there is: cpu"


def test_description() -> None:
    assert describe_options(SamplePass)[:2] == ["needed: integer", 'scope: text = "cpu:0"']
    assert describe_options(SamplePass)[-3:] == [
        "limit: integer = none",
        "sizes: list of integer = none",
        "mixed: integer or text = 3",
    ]


def test_pipelines_inside_pipelines() -> None:
    depth = 1000
    (stage,) = parse_stages("mlir(" * depth + "cse" + ")" * depth, {})
    assert stage.element == "cse"
