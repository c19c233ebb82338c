"""The cache key of compiled programs knows every kind of file that the compiler is made of."""

from importlib import resources
from pathlib import Path

from devscope import fingerprint

OF_NO_PROGRAM = {".c", ".in", ".md", ".o", ".pyc", ".txt", ".typed"}
"""The runtime, which is linked when a program is loaded, lists for command lines, what new backends
begin as, a mark for type checkers."""


def test_every_kind_of_file_counts() -> None:
    found: set[str] = set()
    for package in fingerprint._PACKAGES:
        folder = Path(str(resources.files(package)))
        found |= {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert found - OF_NO_PROGRAM == set(fingerprint._SUFFIXES)


def test_every_package_of_the_compiler_counts() -> None:
    root = Path(str(resources.files("devscope"))).parent
    names = {f"devscope.{folder.name}" for folder in root.iterdir() if (folder / "__init__.py").is_file()}
    assert set(fingerprint._PACKAGES) >= names - {"devscope.devscope", "devscope.test"}
