"""What dataclasses compile is kept in a file that any process may find missing, damaged or another Python's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from dataclasses import dataclass
from devscope.dataclass_code import dataclass_code_kept

compiled = []
sys.addaudithook(lambda event, arguments: event == "compile" and compiled.append(arguments[0]))
with dataclass_code_kept():
    @dataclass(frozen=True, order=True)
    class Pair:
        __module__ = "devscope.pairs"
        one: int
        two: str = "b"
    in_all = len(compiled)
print(in_all > 0, Pair(1), Pair(1) == Pair(1, "b"), Pair(1) < Pair(2), hash(Pair(1)) == hash(Pair(1)))
try:
    Pair(1).one = 2
except AttributeError as error:
    print(type(error).__name__)
"""
SAME = "Pair(one=1, two='b') True True True\nFrozenInstanceError\n"


def run(folder: Path, package: str = "devscope", **environment: str) -> str:
    """What the script prints, with the class in a module of ``package`` that is entered before."""
    name = f"{package}.pairs"
    script = f"import sys, types; sys.modules['{name}'] = types.ModuleType('{name}')\n{SCRIPT}"
    script = script.replace("devscope.pairs", name)
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    given |= {"PYTHONPYCACHEPREFIX": str(folder), **environment}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=given)
    return done.stdout


@pytest.mark.parametrize("damage", [None, b"", b"another Python's", slice(None, 20), slice(None, -20)])
def test_code_is_compiled_once(tmp_path: Path, damage: bytes | slice | None) -> None:
    assert run(tmp_path) == f"True {SAME}"
    (file,) = tmp_path.rglob("dataclass_methods_*")
    if damage is None:
        assert run(tmp_path) == f"False {SAME}"
        return
    file.write_bytes(file.read_bytes()[damage] if isinstance(damage, slice) else damage)
    assert run(tmp_path) == f"True {SAME}"
    assert run(tmp_path) == f"False {SAME}"


def test_no_file_where_python_shall_write_none(tmp_path: Path) -> None:
    assert run(tmp_path, PYTHONDONTWRITEBYTECODE="1") == f"True {SAME}"
    assert not list(tmp_path.rglob("dataclass_methods_*"))


DOCS = """
import dataclasses, inspect, types
from devscope.dataclass_code import dataclass_code_kept

with dataclass_code_kept():
    for name in ("devscope.pairs", "elsewhere"):
        print(dataclasses.make_dataclass("Pair", ["one"], namespace={"__module__": name}).__doc__)
print(dataclasses.inspect is inspect)
"""


def test_no_time_goes_to_docstrings_that_nobody_reads() -> None:
    done = subprocess.run([sys.executable, "-c", DOCS], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["Pair", "Pair(one: 'typing.Any')", "True"]


def test_what_pytorch_imports_to_trace_is_kept_in_a_file_of_its_own(tmp_path: Path) -> None:
    assert run(tmp_path, "torch") == f"True {SAME}"
    assert [path.name.partition(".")[0] for path in tmp_path.rglob("dataclass_methods_*")] == [
        "dataclass_methods_torch"
    ]
    assert run(tmp_path, "torch") == f"False {SAME}"


def test_other_packages_are_left_alone(tmp_path: Path) -> None:
    assert run(tmp_path, "elsewhere") == run(tmp_path, "elsewhere") == f"True {SAME}"
    assert not list(tmp_path.rglob("dataclass_methods_*"))
