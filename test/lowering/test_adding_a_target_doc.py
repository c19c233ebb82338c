"""The Python of docs/adding-a-target.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devscope.errors import OptionError
from devscope.lowering import target

DOC = Path(__file__).parents[2] / "docs" / "adding-a-target.md"


def test_the_target_of_the_document_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_registered", {})
    code = "\n".join(re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL))
    names: dict[str, object] = {}
    exec(code, names)
    found = target.find_target("rocm")
    assert found is not None
    with pytest.raises(OptionError):
        found.check_options({"arch": "sm_90"})


def test_files_that_the_document_names_are_there() -> None:
    text = DOC.read_text()
    root = DOC.parents[1]
    for name in re.findall(r"`((?:lowering|runtime|dialects|test)/[\w/.]+)`", text):
        assert (root / name).exists(), name
