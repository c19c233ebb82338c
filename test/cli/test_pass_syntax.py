"""The text form of pass pipelines."""

import pytest

from devscope.cli.pass_syntax import PIPELINE_FILE, PassItem, parse_options, parse_pipeline
from devscope.errors import OptionError, SourceLocation


def column(number: int) -> SourceLocation:
    return SourceLocation(PIPELINE_FILE, 1, number)


def test_items_keep_their_offsets() -> None:
    text = " canonicalize , device-plan{default=opencl:0 arguments=host}, mlir( a , b{c=d} ) "
    assert parse_pipeline(text) == [
        PassItem("canonicalize", column(2), inside=15),
        PassItem("device-plan", column(17), options="default=opencl:0 arguments=host", inside=28),
        PassItem("mlir", column(63), nested=" a , b{c=d} ", inside=67),
    ]


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_no_items(text: str) -> None:
    assert parse_pipeline(text) == []


def test_nested_brackets_and_quotes_do_not_end_an_item() -> None:
    text = 'a{x="}" y={p(q) [r]}},b(c{d=")"},e)'
    first, second = parse_pipeline(text)
    assert first.options == 'x="}" y={p(q) [r]}'
    assert second.nested == 'c{d=")"},e'


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a,", 3, "expected a pass name, found the end"),
        (",a", 1, "expected a pass name, found ','"),
        ("a b", 3, "expected ',' or the end of the pipeline after 'a', found 'b'"),
        ("a{x}y", 5, "expected ',' or the end of the pipeline"),
        ("a{x", 2, "'{' is never closed"),
        ("a(b,c{d)", 8, "expected '}' before ')'"),
        ('a{x="y}', 5, "a quoted string is never closed"),
        ("mlir-opt[cse]", 9, "'[' cannot follow 'mlir-opt'"),
        ("a}", 2, "found '}'"),
    ],
)
def test_malformed_pipeline(text: str, column: int, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_pipeline(text)
    assert message in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.column == column


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("k=opencl:0@global", ("opencl:0@global",)),
        ("k=1.5e-3", ("1.5e-3",)),
        ("k=a,b,c", ("a", "b", "c")),
        ('k="a b,c}"', ("a b,c}",)),
        (r'k="say \"hi\" \\"', (r'say "hi" \ '.strip(),)),
        ("k='a b',c", ("a b", "c")),
        ("k={x, y}", ("{x, y}",)),
        ('k=#device.scope<"cpu">', ('#device.scope<"cpu">',)),
        ("k", ()),
    ],
)
def test_option_values(text: str, values: tuple[str, ...]) -> None:
    (option,) = parse_options(text, 0)
    assert option.key == "k"
    assert option.values == values


def test_several_options() -> None:
    options = parse_options("  a=1\tb  c-d='x y' ", 10)
    assert [(option.key, option.values, option.location) for option in options] == [
        ("a", ("1",), column(13)),
        ("b", (), column(17)),
        ("c-d", ("x y",), column(20)),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=", "expected a value"),
        ("a=1,", "expected a value"),
        ("=1", "expected an option name, found '='"),
        ("a:1", "expected '=' or a blank after 'a', found ':'"),
        ("a=1 a=2", "option 'a' is given twice"),
    ],
)
def test_malformed_options(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options(text, 0)
