"""The version of devscope that is running."""

from __future__ import annotations

import sys


def devscope_version() -> str:
    """The version, as saved executables record it.

    Asked of the package that this one is part of, which is therefore loaded: an import statement would make
    the compiler, which that package can load, a dependency of the runtime.
    """
    return str(getattr(sys.modules["devscope"], "__version__", "unknown"))
