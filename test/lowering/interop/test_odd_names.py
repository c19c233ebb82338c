"""Modules on which MLIR's bindings raise what they should not, or end the process: errors, or carried over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import devscope
from devscope.errors import DevscopeError, ParseError
from devscope.lowering.interop.parse_apart import parsed_apart
from devscope.lowering.interop.parsing import bytecode
from devscope.lowering.interop.session import Session

KEPT = [
    "dense<[(1.0,2.0), (0.0,0.5)]> : tensor<2xcomplex<f32>>",
    "dense<(1,2)> : tensor<2xcomplex<i32>>",
    *(f"array<{item}>" for item in ("f16: 1.0", "bf16: 1.0", "f80: 1.0", "i128: 5", "ui8: 1", "i1: true")),
    r'"\FF\00x"',
    r'@"\FF"',
    r'@"x\0Ay"::@"\FF"',
    r'loc("a\FF":1:2)',
    r'#foo<"\FF">',
    r'{a = 1, "b\FF" = 2}',
    r'[{"b\FF" = dense<(1,2)> : tensor<1xcomplex<i8>>}]',
]
FATAL = r"""func.func @f() { "foo.o\FF"() : () -> () return }"""
"""Only whole programs are looked at for this, not what a session parses."""

REFUSED = [
    r"""func.func @f() { "foo.o"() {"b\FF" = 1} : () -> () return }""",
    r"""func.func @f() { "foo.o"() <{"b\FF" = 1}> : () -> () return }""",
]

CHECK = """
import sys
from devscope.errors import ParseError
from devscope.lowering.interop.session import Session

for text in eval(sys.stdin.read()):
    session = Session()
    module = session.parse(text)
    try:
        result = session.to_mlir(session.to_xdsl(module))
        print("kept" if str(result) == str(module) else "CHANGED " + text)
    except ParseError as error:
        print("refused", error)
"""


def check(texts: list[str]) -> list[str]:
    """What becomes of each module in a process of its own, which must survive them."""
    command = [sys.executable, "-c", CHECK]
    process = subprocess.run(command, input=repr(texts), capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_odd_attributes_are_carried_over() -> None:
    texts = [
        f"""func.func @f() attributes {{x.y = [{odd}]}} {{
          "foo.a"() <{{x = {odd}}}> {{y = {odd}}} : () -> ()
          "foo.b"() {{x = {{z = {odd}}}}} : () -> ()
          %0 = arith.constant {{y = {odd}}} 1 : i32
          return }}"""
        for odd in KEPT
    ]
    assert check(texts) == ["kept"] * len(texts)


def test_names_that_are_no_text_are_refused() -> None:
    found = "\n".join(check(REFUSED))
    assert found.count("refused <input>:1:") == len(REFUSED), found


@pytest.mark.parametrize("text", [*REFUSED, FATAL])
def test_names_that_are_no_text_in_programs(text: str) -> None:
    with pytest.raises(ParseError):
        devscope.plan(text)


def test_fatal_names_in_all_kinds_of_sources(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(FATAL)
    text = Session().parse(FATAL.replace("o\\FF", "o12"))
    for source in (path, FATAL.encode(), bytecode(text).replace(b"o12", b"o\xff2")):
        with pytest.raises(ParseError, match="has an operation whose name is not UTF-8"):
            devscope.plan(source)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    for name, column in ((b"arith.add\xff", 12), (b"te\xffst.op", 5)):
        path.write_bytes(b'func.func @f() {\n "%s"() : () -> ()\n return\n}\n' % name)
        for source in (path, path.read_bytes()):
            with pytest.raises(ParseError, match=rf":2:{column}: error: neither MLIR bytecode nor UTF-8 text"):
                devscope.plan(source)


@pytest.mark.parametrize(
    "operation",
    [
        '"llvm.add"(%a, %a) <{overflowFlags = 1 : i32}> {overflowFlags = 5 : i8}',
        '"llvm.add"(%a, %a) {overflowFlags = #llvm.overflow<nsw>}',
    ],
)
def test_an_attribute_with_the_name_of_a_property_is_refused(operation: str) -> None:
    text = f"func.func @f(%a: i32) -> i32 {{\n  %0 = {operation} : (i32, i32) -> i32\n  return %0 : i32\n}}"
    with pytest.raises(ParseError, match=r"'llvm.add' has a property 'overflowFlags', and an attribute of"):
        devscope.plan(text)


ENDLESS = "4611686018427387904xf32"


@pytest.mark.parametrize(
    "text",
    [
        f"func.func @f(%e: f32) {{ %0 = tensor.from_elements %e : tensor<{ENDLESS}> return }}",
        f"func.func @f() attributes {{x.y = affine_map<(d0) -> ({'-' * 50_000}d0)>}} {{ return }}",
        """func.func @f(%a: tensor<4xi32>) { %0 = linalg.elementwise kind=#linalg.elementwise_kind<exp>
           ins(%a : tensor<4xi32>) outs(%a : tensor<4xi32>) -> tensor<4xi32> return }""",
    ],
    ids=["elements", "signs", "elementwise"],
)
def test_text_that_ends_the_process(text: str) -> None:
    with pytest.raises(ParseError, match="MLIR does not survive it"):
        devscope.plan(text)


@pytest.mark.parametrize(
    ("start", "end", "each"),
    [
        ('"a.b"() ({\n', "}) : () -> ()\n", 2),
        ("scf.if %c -> (i1) {\n// scf.if %c }\n", "}\n", 1),
        ('module attributes {a.b = "}\\"}"} {\n', "}\n", 1),
        ("[", "]", 1),
        ("tuple<", ">", 1),
    ],
)
def test_brackets_too_deep_inside_each_other(start: str, end: str, each: int, tmp_path: Path) -> None:
    """MLIR's parser would come to the end of its stack."""
    path = tmp_path / "deep.mlir"
    for depth, is_refused in ((1024 // each, False), (1024 // each + 1, True)):
        text = (
            f"// {'x' * (1 << 20)}\n{start * depth}{end * depth}// (\n" + '"a.b"() {c = "["} : () -> ()\n' * 1100
        )
        path.write_text(text)
        for source in (text.encode(), path):
            if not is_refused:
                assert parsed_apart(source, "a.mlir") is None
                continue
            with pytest.raises(ParseError, match="more than 1,024 brackets are open inside each other"):
                parsed_apart(source, "a.mlir")


def test_three_thousand_regions() -> None:
    text = '"a.b"() ({\n' * 3000 + "}) : () -> ()\n" * 3000
    with pytest.raises(ParseError, match=r"^<input>:513:10: error: more than 1,024 brackets"):
        devscope.plan(f"func.func @main() {{\n{text}return }}")


def test_a_process_that_parses_and_fails_is_not_the_programs_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(
        DevscopeError, match=r"parses a.mlir failed: status 1: ModuleNotFoundError: No module"
    ) as found:
        parsed_apart(FATAL.encode(), "a.mlir")
    assert not isinstance(found.value, ParseError)


def test_bytecode_that_ends_the_process(tmp_path: Path) -> None:
    """One byte of it is changed, a length: MLIR asks for more memory than a vector can have, and aborts."""
    session = Session()
    path = tmp_path / "m.mlirbc"
    whole = bytecode(session.parse("func.func @main() {\n  return\n}"))
    path.write_bytes(whole)
    assert devscope.run(path, cache=False) is None
    for at in (34, 35, 33, 36):
        path = tmp_path / f"{at}.mlirbc"
        path.write_bytes(whole[:at] + b"\0" + whole[at + 1 :])
        try:
            devscope.plan(path)
        except ParseError as error:
            if "MLIR does not survive it" in error.message:
                return
    raise AssertionError("none of these ends the process")
