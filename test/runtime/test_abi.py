"""What Python knows of the native runtime is what the C sources say."""

from __future__ import annotations

import ctypes
import re
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from test_sanitizers import build

from devscope.runtime.drivers import cuda_device, opencl_device
from devscope.runtime.interpreter import NUMPY
from devscope.runtime.native import abi, compile_native
from devscope.runtime.program import DYNAMIC_LOCAL_SIZE

MODULES = (abi, opencl_device, cuda_device)


def assertions() -> list[str]:
    """In C, that every struct, field, enumerator and constant of Python has the same place, size or value."""
    found = [
        f"{name} == {value}"
        for name, value in (
            ("ABI_VERSION", abi.ABI_VERSION),
            ("-DYNAMIC_LOCAL_SIZE - 1", -DYNAMIC_LOCAL_SIZE - 1),  # C has no literal of the value itself
        )
    ]
    enums: list[type[IntEnum]] = [abi.Origin, abi.Operation, abi.Code, abi.Problem]
    found += [f"{enum.__name__.upper()}_{item.name} == {item.value}" for enum in enums for item in enum]
    for module in MODULES:
        for name, struct in vars(module).items():
            if isinstance(struct, type) and issubclass(struct, ctypes.Structure):
                found.append(f"sizeof({name}) == {ctypes.sizeof(struct)}")
                found += [
                    f"offsetof({name}, {field}) == {getattr(struct, field).offset}"
                    for field, *_ in struct._fields_
                ]
    return found


def test_structs_and_constants(tmp_path: Path) -> None:
    lines = [f'_Static_assert({text}, "{text}");' for text in assertions()]
    built = build("\n".join([compile_native.translation_unit(), *lines]), tmp_path / "abi.o", "-c")
    assert built.returncode == 0, built.stderr


@pytest.mark.parametrize("enum", [abi.Origin, abi.Operation, abi.Code, abi.Problem])
def test_enumerations_are_complete(enum: type[IntEnum]) -> None:
    text = (compile_native.FOLDER / "abi.h").read_text(encoding="utf-8")
    found = re.findall(rf"\b{enum.__name__.upper()}_([A-Z_]+)\b", text)
    assert set(found) == {item.name for item in enum}


def test_functions_of_numpy() -> None:
    header = Path(np.get_include(), "numpy", "__multiarray_api.h").read_text(encoding="utf-8")
    for place, name in NUMPY.values():
        assert re.search(rf"#define {name} \\\n[^#]*PyArray_API\[{place}\]\)", header), name
