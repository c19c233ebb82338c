"""Names of values, read from the source at their positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from devscope.lowering.interop.session import Session
from devscope.passes.device_plan.report.source_names import SourceNames

TEXT = """\
func.func @main(%x: tensor<4xf32>,
    %flag : i1, %n: index) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  %long.name$-1 =
      math.log %0 : tensor<4xf32>
  %a, %b:2
    , %c = "my.op"(%0) : (tensor<4xf32>) -> (f32, f32, f32, f32)
  %r:2 = scf.if %flag -> (f32, f32) { scf.yield %a, %a : f32, f32 } else { scf.yield %c, %c : f32, f32 }
  %generic = "math.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32> // %comment = 1
  "my.op"() {text = "é"} : () -> () %after = math.exp %0 : tensor<4xf32>
  cf.br ^next(%0 : tensor<4xf32>)
^next(%arg: tensor<4xf32>):
  %last = call @main(%arg, %flag, %n) : (tensor<4xf32>, i1, index) -> tensor<4xf32>
  return %last : tensor<4xf32>
}
"""


def names(path: str, text: str, source: SourceNames) -> list[str | None]:
    """The names of all values, operations' results and block arguments, in order."""
    session = Session()
    parsed = session.parse(text, path)
    module = session.to_xdsl(parsed)
    found: list[str | None] = []
    for op in module.walk():
        found += [source.name(value) for value in op.results]
        found += [source.name(value) for region in op.regions for block in region.blocks for value in block.args]
    return found


EXPECTED = [
    *("%x", "%flag", "%n", "%arg"),
    *("%0", "%long.name$-1", "%a", "%b#0", "%b#1", "%c", "%r#0", "%r#1", "%generic", "%after", "%last"),
]


def test_every_way_to_define_a_value() -> None:
    assert names("m.mlir", TEXT, SourceNames({"m.mlir": TEXT})) == EXPECTED


def test_names_are_read_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)
    assert names(str(path), TEXT, SourceNames()) == EXPECTED


def test_no_name_rather_than_a_wrong_one(tmp_path: Path) -> None:
    """Somebody edited the file after it was parsed; or it is gone."""
    path = tmp_path / "m.mlir"
    path.write_text("// a new first line\n" + TEXT)
    assert set(names(str(path), TEXT, SourceNames())[4:]) == {None}
    path.unlink()
    assert set(names(str(path), TEXT, SourceNames())) == {None}


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"%x = " * 3])
def test_any_bytes_can_stand_where_the_source_was(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.mlir"
    path.write_bytes(data)
    assert set(names(str(path), TEXT, SourceNames())) == {None}


def test_a_folder_or_a_pipe_is_no_source(tmp_path: Path) -> None:
    assert set(names(str(tmp_path), TEXT, SourceNames())) == {None}
    assert set(names("/dev/stdin", TEXT, SourceNames())) == {None}


def test_long_lines() -> None:
    """Thousands of operands on the lines before a definition cost no time."""
    operands = ", ".join(["%x"] * 5_000)
    types = ", ".join(["tensor<4xf32>"] * 5_000)
    lines = "\n".join(f'  %r{i} = "my.op"({operands}) : ({types}) -> f32' for i in range(5))
    text = f"func.func @main(%x: tensor<4xf32>) {{\n{lines}\n  return\n}}\n"
    assert names("m.mlir", text, SourceNames({"m.mlir": text})) == ["%x", *(f"%r{i}" for i in range(5))]
