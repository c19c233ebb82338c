"""The build backend: setuptools', which also compiles the native runtime.

The compiler is a C compiler of the machine (``$CC``, else cc, gcc or clang), or one from PyPI where there is none.
"""

from typing import Any

import compile_native
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What a build needs besides setuptools: a C compiler where the machine has none."""
    compiler = [] if compile_native.has_compiler() else [compile_native.ZIG]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compiler]


get_requires_for_build_editable = get_requires_for_build_wheel


class BuildPy(build_py):
    """Compiles the objects first, beside their sources: they are package data, which an editable install uses in
    place."""

    def run(self) -> None:
        compile_native.compile_objects()
        super().run()


class BdistWheel(bdist_wheel):
    """The wheel is for machines of one kind, and for every Python."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.plat_name_supplied = True
