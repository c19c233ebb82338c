"""Fixtures: the command line called in process, in an empty folder, with a cache of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cli_case import TANH, Cli, Outcome

from devscope.cli.main import main


@pytest.fixture(scope="session", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("cache")
    patch = pytest.MonkeyPatch()
    patch.setenv("DEVSCOPE_CACHE_DIR", str(directory))
    yield directory
    patch.undo()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which ``tanh.mlir`` stands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tanh.mlir").write_text(TANH)
    return tmp_path


@pytest.fixture
def cli(folder: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``devscope`` with these arguments in ``folder``."""

    def run(*arguments: object) -> Outcome:
        before = {path.name for path in folder.iterdir()}
        capfd.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as exit_:  # argparse
            status = exit_.code
        out, err = capfd.readouterr()
        made = sorted(path.name for path in folder.iterdir() if path.name not in before)
        assert isinstance(status, int)
        return Outcome(status, out, err, made)

    return run
