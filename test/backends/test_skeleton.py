"""What ``devscope new-backend`` writes works, and passes the conformance suite."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from installed import offer

import devscope
from devscope.backend_check import check_backend
from devscope.backend_skeleton import write_skeleton
from devscope.backends import Row
from devscope.backends.registry import get_backend
from devscope.errors import InputError, OptionError
from devscope.patterns import constant, op, wildcard
from devscope.runtime.plugins import register_runtime

OF_OTHER_TYPES = """
func.func @first(%a: tensor<?x3xTYPE>, %b: tensor<3x2xTYPE>, %n: index) -> (index, tensor<?x2xTYPE>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant ZERO : TYPE
  %m = tensor.dim %a, %c0 : tensor<?x3xTYPE>
  %e = tensor.empty(%m) : tensor<?x2xTYPE>
  %f = linalg.fill ins(%zero : TYPE) outs(%e : tensor<?x2xTYPE>) -> tensor<?x2xTYPE>
  %0 = linalg.matmul ins(%a, %b : tensor<?x3xTYPE>, tensor<3x2xTYPE>)
                     outs(%f : tensor<?x2xTYPE>) -> tensor<?x2xTYPE>
  return %n, %0 : index, tensor<?x2xTYPE>
}"""


TYPES = [("i8", "0"), ("bf16", "0.0")]


def test_skeleton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {path.relative_to(tmp_path).as_posix() for path in write_skeleton("fresh_one", tmp_path)}
    package = "devscope_fresh_one"
    modules = {f"{package}/{name}.py" for name in ("__init__", "backend", "runtime")}
    assert files == {"pyproject.toml", "README.md", "model.mlir", *modules}
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    devscope.register_backend(importlib.import_module(f"{package}.backend").FreshOne)
    register_runtime(importlib.import_module(f"{package}.runtime").FreshOneRuntime)
    (tmp_path / "pip").mkdir()
    offer(tmp_path, tmp_path / "pip")
    assert [one for one in check_backend("fresh_one") if one.problem] == []
    # A vendor lets it take more, and says programs that have that.
    backend = type(get_backend("fresh_one"))
    monkeypatch.setattr(
        backend, "patterns", [Row("matmul", op("linalg.matmul", wildcard(), wildcard(), constant(0.0)))]
    )
    of_types = [OF_OTHER_TYPES.replace("TYPE", name).replace("ZERO", zero) for name, zero in TYPES]
    monkeypatch.setattr(backend, "programs", of_types)
    outcomes = list(check_backend("fresh_one"))
    assert {one.what.partition(":")[0] for one in outcomes if one.problem} == {
        f"matmul, the {one} matrix transposed" for one in ("left", "right")
    }
    assert sum(one.what.startswith("its own program") for one in outcomes) == 5 * len(TYPES)


@pytest.mark.parametrize("name", ["cpu", "Upper", "a-b", "class", ""])
def test_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        write_skeleton(name, tmp_path / "x")


def test_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is there already"):
        write_skeleton("fresh_two", tmp_path)
    with pytest.raises(InputError, match="cannot be written: File name too long"):
        write_skeleton("fresh_two", tmp_path / ("a" * 300))


@pytest.mark.long
def test_programs_of_another_state_of_it_are_not_taken_from_the_cache(tmp_path: Path) -> None:
    """A vendor edits a backend, and sees what it makes then."""
    write_skeleton("edited", tmp_path)
    (tmp_path / "pip").mkdir()
    offer(tmp_path, tmp_path / "pip")
    paths = os.pathsep.join([str(tmp_path), str(tmp_path / "pip")])
    environment = {**os.environ, "PYTHONPATH": paths, "DEVSCOPE_CACHE_DIR": str(tmp_path / "cache")}
    start = "import sys; from devscope.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", start, "run", str(tmp_path / "model.mlir"), "--random", "0"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, "--backend", "edited"], env=environment, capture_output=True, text=True)

    assert "8x4xf32" in run().stdout
    code = tmp_path / "devscope_edited" / "backend.py"
    code.write_text(code.read_text().replace('PythonCall("edited_matmul")', 'PythonCall("not_there")'))
    assert "backend 'edited' has no function 'not_there'" in run().stderr
