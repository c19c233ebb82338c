"""Comparison of diagnostics with expected-error annotations."""

import pytest

from devscope.cli.diagnostics import Diagnostic, check_diagnostics, diagnostics_of
from devscope.errors import PlanError, SourceLocation


def at(line: int, message: str = "boom here", severity: str = "error") -> Diagnostic:
    return Diagnostic(severity, message, SourceLocation("f.mlir", line, 3))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x // expected-error {{boom}}", 1),
        ("// expected-error@+1 {{boom}}\nx", 2),
        ("x\n\n// expected-error@-2 {{boom}}", 1),
        ("// expected-error @below {{boom}}\n// expected-remark@below {{r}}\nx", 3),
        ("x\n// expected-remark@above {{r}}\n// expected-error@above {{boom}}", 1),
        ("x // expected-error{{boom here}}  ", 1),
        ("// expected-error-re@+1 {{b{{o+}}m {{h...}}}}\nx", 2),
        ("x // expected-note {{a.b}}\n// expected-error@-1 {{boom}}", 1),
    ],
)
def test_agreement(text: str, line: int) -> None:
    reported = [at(line), at(1, "a.b", "note")]
    if "remark" in text:
        reported.append(at(line, "r", "remark"))
    assert check_diagnostics(text, "f.mlir", reported) == []


def test_missing_diagnostic() -> None:
    assert check_diagnostics("\n // expected-warning@+1 {{boom}}", "f.mlir", []) == [
        'f.mlir:2:5: error: expected warning "boom" was not produced'
    ]


@pytest.mark.parametrize("severity", ["error", "warning", "remark"])
def test_unexpected_diagnostic(severity: str) -> None:
    assert check_diagnostics("", "f.mlir", [at(4, severity=severity)]) == [
        f"f.mlir:4:3: error: unexpected {severity}: boom here"
    ]


@pytest.mark.parametrize(
    "annotation",
    [
        "// expected-error@+2 {{boom}}",  # another line
        "// expected-error@+1 {{bang}}",  # another text
        "// expected-error@+1 {{b.*m}}",  # not a regular expression
        "// expected-remark@+1 {{boom}}",  # another severity
    ],
)
def test_disagreement(annotation: str) -> None:
    problems = check_diagnostics(annotation, "f.mlir", [at(2)])
    assert len(problems) == 2
    assert "unexpected error" in problems[0]
    assert "was not produced" in problems[1]


def test_one_annotation_takes_one_diagnostic() -> None:
    problems = check_diagnostics("// expected-error@+1 {{boom}}", "f.mlir", [at(2), at(2)])
    assert problems == ["f.mlir:2:3: error: unexpected error: boom here"]


def test_unknown_location() -> None:
    nowhere = Diagnostic("error", "boom", None)
    assert check_diagnostics("// expected-error@unknown {{boom}}", "f.mlir", [nowhere]) == []
    assert check_diagnostics("", "f.mlir", [nowhere]) == ["error: unexpected error: boom"]


@pytest.mark.parametrize("text", ["// expected-error {{boom}", "// expected-error@+1 boom", "//expected-note: x"])
def test_malformed_annotation(text: str) -> None:
    (problem,) = check_diagnostics(text, "f.mlir", [])
    assert "malformed annotation" in problem


def test_notes_of_an_error_may_be_expected_where_they_point() -> None:
    error = PlanError("clash", SourceLocation("f.mlir", 2, 1), ["f.mlir:4:7: on cuda:0", "move one"])
    diagnostics = diagnostics_of(error)
    assert [str(diagnostic) for diagnostic in diagnostics] == [
        "f.mlir:2:1: error: clash",
        "f.mlir:4:7: note: on cuda:0",
        "f.mlir:2:1: note: move one",
    ]
    text = "// expected-error@+1 {{clash}}\n\n// expected-note@+1 {{on cuda}}\n\n// expected-note@2 {{x}}"
    assert check_diagnostics(text.rpartition("\n")[0], "f.mlir", diagnostics) == []
    assert check_diagnostics(text.splitlines()[0], "f.mlir", diagnostics) == []
