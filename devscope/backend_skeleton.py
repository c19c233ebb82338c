"""A project for a new backend, which works as it is: ``devscope new-backend``."""

from __future__ import annotations

import keyword
import os
import re
from importlib import resources
from pathlib import Path
from string import Template

from devscope.backends.registry import backend_names
from devscope.dialects.target import target_kinds
from devscope.errors import InputError, OptionError

_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md": "README.md",
    "model.mlir.txt": "model.mlir",
    "backend.py.txt": "{package}/backend.py",
    "runtime.py.txt": "{package}/runtime.py",
}


def write_skeleton(name: str, folder: Path) -> list[Path]:
    """Write the project to ``folder``, which is made. Raises OptionError for a name that no backend can have,
    InputError for a folder that is not empty or that cannot be written."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise OptionError(
            f"'{name}' cannot be the name of a backend",
            notes=["names are lower-case letters, digits and '_', and begin with a letter"],
        )
    if name in backend_names() or name in target_kinds():
        raise OptionError(f"there is a backend or a target '{name}' already", notes=["choose another name"])
    package = f"devscope_{name}"
    values = {"NAME": name, "PACKAGE": package, "CLASS": name.title().replace("_", "")}
    written: list[Path] = []
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"'{folder}' is there already, and not an empty directory")
    try:
        for source, target in _FILES.items():
            path = folder / target.format(package=package)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = resources.files("devscope.backends.skeleton").joinpath(source).read_text(encoding="utf-8")
            path.write_text(Template(text).substitute(values), encoding="utf-8")
            written.append(path)
        init = folder / package / "__init__.py"
        init.write_text(f'"""A devscope backend: {name}."""\n', encoding="utf-8")
    except OSError as error:
        raise InputError(f"'{folder}' cannot be written: {error.strerror or error}") from None
    return [*written, init]
