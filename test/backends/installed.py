"""Makes a project's entry points known to this process, and to those that it starts, without installing it."""

import sys
import tomllib
from pathlib import Path


def offer(project: Path, folder: Path) -> None:
    """``project``: with a ``pyproject.toml``, and its package; ``folder``: for what pip would write."""
    about = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    written = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    written.mkdir()
    (written / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    )
    groups = about["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups]
    (written / "entry_points.txt").write_text("\n".join(lines))
    sys.path += [str(project), str(folder)]
