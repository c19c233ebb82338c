"""What a wheel would contain: pyproject.toml lists every package and constraints.txt pins what it needs."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = (
    "analysis",
    "backends",
    "devscope",
    "dialects",
    "frontends",
    "lowering",
    "passes",
    "rewriting",
    "runtime",
)


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
        if path.is_file() and path.suffix not in (".py", ".pyc") and not _is_source(path)
    }
    assert others == shipped


def _is_source(path: Path) -> bool:
    """Whether wheels have an object that was compiled of it instead. Two headers are for others, too."""
    return path.suffix in (".c", ".h") and path.parent.name == "native" and path.name not in ("abi.h", "plugin.h")


def test_c_sources_are_for_source_distributions() -> None:
    """Wheels have the object that was compiled of them; no source distribution has that."""
    sources = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.[ch]")}
    assert sources == {ROOT / "runtime/native", ROOT / "runtime/library"}
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


def _build(kind: str, source: Path, into: Path) -> Path:
    """What pip does, without a network: the hooks of the build backend, with the setuptools that is installed."""
    hook = f"import build_backend, sys; print(build_backend.build_{kind}(sys.argv[1]))"
    paths = os.pathsep.join(PROJECT["build-system"]["backend-path"])
    command = [sys.executable, "-W", "ignore", "-c", hook, str(into)]
    environment = {**os.environ, "PYTHONPATH": paths}
    built = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return into / built.stdout.splitlines()[-1]


def test_distributions_have_all_files(tmp_path: Path) -> None:
    """A wheel that is built of the source distribution of a clean tree."""
    clean = tmp_path / "clean"
    for folder in (*FOLDERS, "packaging"):
        shutil.copytree(ROOT / folder, clean / folder, ignore=shutil.ignore_patterns("__pycache__", "*.o"))
    sources = {path.relative_to(clean).as_posix() for path in clean.rglob("*") if path.is_file()}
    for name in ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, clean)
        sources.add(name)

    with tarfile.open(_build("sdist", clean, tmp_path)) as archive:
        files = {member.name.partition("/")[2] for member in archive if member.isfile()}
        archive.extractall(tmp_path / "unpacked", filter="data")
    made = {"PKG-INFO", "setup.cfg", *(name for name in files if name.startswith("devscope.egg-info/"))}
    assert files - made == sources

    [unpacked] = (tmp_path / "unpacked").iterdir()
    with zipfile.ZipFile(_build("wheel", unpacked, tmp_path)) as archive:
        files = {name for name in archive.namelist() if not name.endswith("/")}
    info = f"devscope-{PROJECT['project']['version']}.dist-info"
    assert f"{info}/licenses/LICENSE" in files
    installed = {
        name if name.startswith("devscope/") else f"devscope/{name}"
        for name in sources
        if "/" in name and not name.startswith("packaging/") and not _is_source(Path(name))
    }
    rest = {name for name in files if not name.startswith(f"{info}/")} - installed
    assert installed <= files
    assert {re.sub(r"runtime\.\w+\.o$", "runtime.o", name) for name in rest} == {
        "devscope/runtime/native/runtime.o"
    }
