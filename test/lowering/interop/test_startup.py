"""What compiling a program loads: small programs take no longer than their imports."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import devscope
program = '''
#device = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = linalg.matmul PLACE ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%z : tensor<2x2xf32>)
      -> tensor<2x2xf32>
  %t = math.tanh %y PLACE : tensor<2x2xf32>
  return %t : tensor<2x2xf32>
}
'''
devscope.build(program.replace("PLACE", sys.argv[1]))
print(json.dumps(sorted(sys.modules)))
"""


def modules_for(place):
    done = subprocess.run([sys.executable, "-c", SCRIPT, place], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("place", ["", "{device.scope = #device}"], ids=["host", "opencl"])
def test_the_modules_of_dialects_in_the_bindings_are_not_imported(place):
    """They take longer than all else; it is enough to look at one of their operations or attributes."""
    modules = modules_for(place)
    assert "devscope.pipeline" in modules
    assert not [name for name in modules if name.startswith(("mlir.dialects.", "torch_mlir.dialects."))]


def test_xdsl_s_dialects_are_not_imported_for_a_program_of_the_host():
    modules = modules_for("")
    assert not {f"xdsl.dialects.{name}" for name in ("arith", "linalg", "math", "memref", "tensor")} & modules
