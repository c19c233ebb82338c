"""What a wheel would contain: pyproject.toml lists every package and constraints.txt pins what it needs."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = ("analysis", "devscope", "dialects", "lowering", "passes", "rewriting", "runtime")


def test_every_package_is_listed() -> None:
    found = {
        path.parent.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("__init__.py")
    }
    names = {path if path.startswith("devscope") else f"devscope/{path}" for path in found}
    setuptools = PROJECT["tool"]["setuptools"]
    assert sorted(setuptools["packages"]) == sorted(name.replace("/", ".") for name in names)
    mapped = {name: path for name, path in setuptools["package-dir"].items() if name != "devscope"}
    assert mapped == {f"devscope.{path.replace('/', '.')}": path for path in found if path[:8] != "devscope"}


def test_every_data_file_is_listed() -> None:
    data = PROJECT["tool"]["setuptools"]["package-data"]
    directories = PROJECT["tool"]["setuptools"]["package-dir"]
    shipped: set[Path] = set()
    for package, patterns in data.items():
        folder = ROOT / directories.get(package, package.replace(".", "/"))
        for pattern in patterns:
            matches = set(folder.glob(pattern))
            assert matches, f"{package}: nothing matches {pattern}"
            shipped |= matches
    others = {
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc", ".c", ".h")
    }
    assert others == shipped


def test_c_sources_are_for_source_distributions() -> None:
    """Wheels have the object that was compiled of them; no source distribution has that."""
    sources = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.[ch]")}
    assert sources == {ROOT / "runtime/native"}
    manifest = (ROOT / "MANIFEST.in").read_text().splitlines()
    assert {"recursive-include runtime/native *.c *.h", "global-exclude *.o"} <= set(manifest)


def test_constraints_are_exact_pins_of_what_is_required() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in lines)
    pinned = {line.partition("==")[0] for line in lines}
    project = PROJECT["project"]
    required = [*project["dependencies"], *(r for e in project["optional-dependencies"].values() for r in e)]
    names = {re.split(r"[\[<>=;~! ]", text, maxsplit=1)[0].lower() for text in required}
    assert names <= pinned


def test_licence_and_types_are_shipped() -> None:
    assert PROJECT["project"]["license-files"] == ["LICENSE"]
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "LLVM Exceptions" in text
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"]["devscope"]
