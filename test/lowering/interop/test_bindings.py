"""Which package the bindings come from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from devscope.errors import InputError
from devscope.lowering.interop import bindings, package


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Puts a package in front of all others: with bindings, or the empty placeholder of that name."""

    def make(name: str, with_bindings: bool = True) -> Path:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        if with_bindings:
            for module in ("ir", "passmanager"):
                (tmp_path / name / f"{module}.py").write_text("UnknownLoc = int\n")
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    monkeypatch.delenv("DEVSCOPE_MLIR", raising=False)
    for name in ("mlir", "mlir.ir"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield make
    sys.modules.pop("mlir", None)


def test_the_official_package_is_preferred(fake):
    fake("mlir")
    assert package.select_package() == "mlir"


def test_a_placeholder_is_passed_over(fake):
    fake("mlir", with_bindings=False)
    assert package.select_package() == "torch_mlir"


def test_the_environment_decides(fake, monkeypatch):
    fake("mlir")
    monkeypatch.setenv("DEVSCOPE_MLIR", "torch_mlir")
    assert package.select_package() == "torch_mlir"


def test_an_illegal_wish(fake, monkeypatch):
    monkeypatch.setenv("DEVSCOPE_MLIR", "llvm")
    with pytest.raises(InputError) as caught:
        package.select_package()
    assert str(caught.value) == "error: DEVSCOPE_MLIR names 'llvm'\n  note: legal values are: mlir, torch_mlir"


def test_a_wish_that_is_not_installed(fake, monkeypatch):
    fake("mlir", with_bindings=False)
    monkeypatch.setenv("DEVSCOPE_MLIR", "mlir")
    with pytest.raises(InputError, match=r"no MLIR Python bindings are installed \(looked for: mlir\)"):
        package.select_package()


def test_modules_come_from_the_package_selected(fake):
    """In a process of its own: the choice is made once, on import."""
    path = fake("mlir")
    imports = "from devscope.lowering.interop import bindings as b"
    code = f"{imports}; print(b.PACKAGE, b.ir.__name__, b.load_optional('x'))"
    environment = {**os.environ, "PYTHONPATH": str(path)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["mlir", "mlir.ir", "None"]


def test_no_other_module_names_a_package():
    folder = Path(bindings.__file__).parent.parent
    others = [path for path in folder.rglob("*.py") if path.name != "package.py"]
    assert len(others) > 10
    names = re.compile(r"\btorch_mlir\b|\b(?:import|from) mlir\b")
    assert not [path for path in others if names.search(path.read_text())]


_AHEAD = """
import sys, threading
from devscope.lowering.interop.package import load_libraries_ahead
load_libraries_ahead()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
maps = open("/proc/self/maps").read()
print("_mlir_libs/lib" in maps, "libllvmlite" in maps, "llvmlite.binding" in sys.modules)
from devscope.lowering.interop.bindings import ir
import llvmlite.binding
load_libraries_ahead()
print(threading.active_count(), ir.Module.parse("func.func private @f()", ir.Context()).operation.verify())
"""


def test_libraries_are_loaded_before_their_modules():
    """In a process of its own, without either library."""
    result = subprocess.run([sys.executable, "-P", "-c", _AHEAD], capture_output=True, text=True, check=True)
    assert result.stdout == "True True False\n1 True\n"


def test_libraries_that_are_not_there_are_errors_of_their_imports(fake):
    """In a process of its own, whose bindings have no library."""
    environment = {**os.environ, "PYTHONPATH": str(fake("mlir"))}
    code = "from devscope.lowering.interop.package import load_libraries_ahead as load; load()"
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stderr == ""


_COMPLEX = """
from devscope.lowering.interop.session import Session
for text in ('<{z = VALUE}>', '{d = {z = VALUE}}'):
    text = text.replace("VALUE", "dense<(1.0,2.0)> : tensor<2xcomplex<f32>>")
    session = Session()
    module = session.parse(f'"foo.bar"() {text} : () -> ()')
    assert str(session.to_mlir(session.to_xdsl(module))) == str(module)
"""


def test_attributes_that_the_bindings_do_not_know_end_no_process():
    """In a process of its own: the bindings' casters are repaired once for the whole process."""
    result = subprocess.run([sys.executable, "-P", "-c", _COMPLEX], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


_CLASSES = """
from devscope.lowering.interop.bindings import ir, without_dialect_modules
module = ir.Module.parse("func.func private @f()", ir.Context())
with without_dialect_modules():
    with without_dialect_modules():
        pass
    print(type(next(iter(module.body.operations))).__name__)
print(type(next(iter(module.body.operations))).__name__)
"""


def test_users_of_the_bindings_have_the_classes_of_operations():
    """In a process of its own: the bindings import the module of a dialect once."""
    result = subprocess.run([sys.executable, "-P", "-c", _CLASSES], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["OpView", "FuncOp"]
