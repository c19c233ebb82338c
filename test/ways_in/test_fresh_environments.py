"""Every way in, and every way to embed devscope, in a virtual environment of its own with what its users have.

``make ways-in`` runs these: they install packages. docs/testing.md.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif("DEVSCOPE_TEST_WAYS_IN" not in os.environ, reason="make ways-in")

PLANNED = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = arith.addf %x, %x {device.scope = #dev} : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
"""


def check(command: list[str | Path], **settings: object) -> str:
    """What a command prints that has to succeed, away from the repository and without its variables."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DEVSCOPE", "VIRTUAL"))
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env=kept, **settings)  # pyright: ignore
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    check([*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT])
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of the programs of an environment with these packages; ``devscope`` is the wheel."""
    made: dict[tuple[str, ...], Path] = {}

    def make(*packages: str, deps: bool = True) -> Path:
        key = (*packages, str(deps))
        if key not in made:
            folder = tmp_path_factory.mktemp("environment")
            venv.create(folder, with_pip=True)
            wanted = [
                name.replace("devscope", str(wheel), 1) if name[:8] == "devscope" else name for name in packages
            ]
            pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
            check([*pip, "--constraint", ROOT / "constraints.txt", *([] if deps else ["--no-deps"]), *wanted])
            made[key] = folder / "bin"
        return made[key]

    return make


def test_plain_xdsl_opt(environment: Callable[..., Path], tmp_path: Path) -> None:
    file = tmp_path / "program.mlir"
    file.write_text(PLANNED)
    out = check([environment("devscope") / "xdsl-opt", file, "-p", "device-plan{arguments=host},device-verify"])
    assert out.count("device.device_copy") == 2


MODULES = """
import io, subprocess, sys
import numpy as np
from torch_mlir import ir, passmanager
from xdsl.dialects.builtin import ModuleOp
import devscope, devscope.mlir

text = sys.stdin.read()
x = np.arange(8, dtype=np.float32)
with ir.Context() as context:
    devscope.mlir.load_dialect(context)
    module = ir.Module.parse(text)
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
for source in (text, text.encode(), module, stream.getvalue()):
    np.testing.assert_array_equal(devscope.run(source, x, default="cpu:0", devices={"opencl:0": "cpu:0"}), x + x)
assert isinstance(devscope.plan(module).module, ir.Module)
from xdsl.parser import Parser
from devscope.dialects.context import make_context
ctx = make_context()
twin = Parser(ctx, text).parse_module()
assert isinstance(devscope.plan(twin).module, ModuleOp)
with context:
    manager = passmanager.PassManager()
    devscope.mlir.add_plan_pass(manager, arguments="host")
    manager.run(module.operation)
assert str(module).count("device.device_copy") == 2
devscope.mlir.run_pass(module, "device-split")
assert "jax" not in sys.modules
try:
    devscope.compile(abs, (x,))
except devscope.DevscopeError as error:
    assert "pip install 'devscope[jax]'" in str(error), error
print(devscope.mlir.irdl_file().read_text(), "-----", devscope.plan(text).module)
"""
VERIFIED = """
import importlib.util, sys
from torch_mlir import ir
from torch_mlir._mlir_libs._mlirDialectsIRDL import load_dialects
assert importlib.util.find_spec("devscope") is None and importlib.util.find_spec("xdsl") is None
irdl, planned = sys.stdin.read().split("-----")
with ir.Context(), ir.Location.unknown():
    load_dialects(ir.Module.parse(irdl))
    assert ir.Module.parse(planned).operation.verify()
"""


def test_modules_in_python_and_in_other_bindings(environment: Callable[..., Path]) -> None:
    """Then bindings without devscope verify what came out."""
    out = check([environment("devscope") / "python", "-c", MODULES], input=PLANNED)
    check([environment("torch-mlir", "numpy") / "python", "-c", VERIFIED], input=out)


PASS_MANAGER = """
import importlib.util, sys
from torch_mlir import ir, passmanager
import devscope.mlir
for absent in ("jax", "llvmlite", "pyopencl"):
    assert importlib.util.find_spec(absent) is None, absent
with ir.Context() as context:
    devscope.mlir.load_dialect(context)
    module = ir.Module.parse(sys.stdin.read())
    manager = passmanager.PassManager()
    manager.add("func.func(cse)")
    devscope.mlir.add_plan_pass(manager, arguments="host")
    manager.add("canonicalize")
    manager.run(module.operation)
    assert str(module).count("device.device_copy") == 2, module
    devscope.mlir.run_pass(module, "device-split")
    assert [op.sym_name.value for op in module.body.operations] == ["main", "main_opencl0_0"]
    broken = ir.Module.parse("func.func @f() { return }")
    broken.body.operations[0].attributes["device.scope"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(8), 1)
    manager = passmanager.PassManager()
    devscope.mlir.add_plan_pass(manager)
    try:
        manager.run(broken.operation)
    except ir.MLIRError as error:
        assert "device.scope" in str(error), error
    else:
        raise AssertionError("no error")
"""


def test_planning_in_a_pass_manager(environment: Callable[..., Path]) -> None:
    """What plans needs MLIR's bindings and xDSL, no code generator, no driver and no framework."""
    xdsl = ("xdsl", "immutabledict", "ordered-set", "typing-extensions")
    folder = environment("devscope", "torch-mlir", "numpy", "platformdirs", *xdsl, deps=False)
    check([folder / "python", "-c", PASS_MANAGER], input=PLANNED)


JAX = """
import sys
import jax, jax.numpy as jnp, numpy as np
import devscope

def step(state, x):
    hidden = jnp.tanh(x @ state["w"])
    return {"w": state["w"] - 0.1 * x.T @ hidden}, jnp.sum(hidden)

state, x = {"w": np.eye(3, dtype=np.float32)}, np.ones((2, 3), np.float32)
exe = devscope.compile(step, (state, x))
got, want = exe(state, x), step(state, x)
np.testing.assert_allclose(got[0]["w"], want[0]["w"], rtol=1e-5)
np.testing.assert_allclose(got[1], want[1], rtol=1e-5)
exe.save(sys.argv[1])
"""
LOADED = """
import importlib.util, sys
import numpy as np
import devscope
for absent in ("jax", "torch_mlir", "xdsl"):
    assert importlib.util.find_spec(absent) is None
state, total = devscope.load(sys.argv[1])({"w": np.eye(3, dtype=np.float32)}, np.ones((2, 3), np.float32))
assert state["w"].shape == (3, 3) and total.shape == ()
"""


def test_jax_functions_and_what_they_become(environment: Callable[..., Path], tmp_path: Path) -> None:
    """A saved program of a function needs neither JAX nor MLIR nor xDSL."""
    file = tmp_path / "step.dsx"
    check([environment("devscope[jax]") / "python", "-c", JAX, file])
    runtime = environment("devscope", "numpy", "llvmlite", "platformdirs", deps=False)
    check([runtime / "python", "-c", LOADED, file])


def test_a_library_without_python(environment: Callable[..., Path], tmp_path: Path) -> None:
    """From C by its header, from C++ by CMake's ``find_package``."""
    example = ROOT / "examples" / "c_library"
    compiler, cmake = shutil.which("cc"), shutil.which("cmake")
    if compiler is None or cmake is None:
        pytest.skip("this machine has no C compiler, or no CMake")
    command = [environment("devscope") / "devscope", "build", example / "model.mlir", "--shared"]
    check([*command, "-o", tmp_path / "libmodel.so"])
    flags = ["-I", tmp_path, "-L", tmp_path, "-lmodel", f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "main"]
    check([compiler, example / "main.c", *flags])
    done = subprocess.run([tmp_path / "main"], env={}, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2 2.5\n5 5.5\n4\n")
    check([cmake, "-S", example, "-B", tmp_path / "made", f"-DCMAKE_PREFIX_PATH={tmp_path}"])
    check([cmake, "--build", tmp_path / "made"])
    done = subprocess.run([tmp_path / "made" / "example"], env={}, capture_output=True, text=True, check=True)
    assert done.stdout == "1x2: 8 10\n"


def follow(readme: Path, programs: Path, folder: Path) -> dict[str, str]:
    """What each command of a README's shell block prints, in a folder, with the programs of an environment."""
    (block,) = re.findall(r"```sh\n(.*?)```", readme.read_text(), re.DOTALL)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    lines = [line.partition("#")[0].strip() for line in block.splitlines()]
    return {
        line: check(["env", f"--chdir={folder}", f"PATH={path}", *shlex.split(line)]) for line in lines if line
    }


def test_the_example_of_a_backend(environment: Callable[..., Path], tmp_path: Path) -> None:
    """The vendor's package as its README says."""
    folder = tmp_path / "vanilla"
    shutil.copytree(ROOT / "examples" / "backends" / "vanilla", folder)
    said = follow(folder / "README.md", environment("devscope", "setuptools"), folder)
    assert "vanilla: for devices of type 'vanilla'" in said["devscope backends"]
    assert said["devscope check-backend vanilla"].endswith("all is well\n")
    assert "call @main_vanilla_" in said["devscope plan model.mlir --backend vanilla"]


def test_a_new_backend(environment: Callable[..., Path], tmp_path: Path) -> None:
    """A project fresh from the generator, as its README says."""
    programs = environment("devscope", "setuptools>=77")  # of its own: it gets the package
    check([programs / "devscope", "new-backend", "acme", "-o", tmp_path / "acme"])
    said = follow(tmp_path / "acme" / "README.md", programs, tmp_path / "acme")
    assert "acme: for devices of type 'cpu'" in said["devscope backends"]
    assert said["devscope check-backend acme"].endswith("all is well\n")


def test_oneDNN(environment: Callable[..., Path]) -> None:
    """The extra brings the library, and nothing else is needed."""
    programs = environment("devscope[onednn]")
    said = check([programs / "devscope", "check-backend", "onednn"])
    assert said.endswith("all is well\n")
