"""What compiling a program loads: small programs take no longer than their imports."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys
import devscope
program = '''
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
'''
devscope.build(program)
print(json.dumps(sorted(sys.modules)))
"""


def test_a_program_s_dialects_are_not_imported():
    """The bindings import linalg's module (0.1 s) at the sight of one operation, xDSL at the sight of one name."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    modules = set(json.loads(done.stdout))
    assert "devscope.pipeline" in modules
    slow = {f"{package}.dialects.{name}" for package in ("mlir", "torch_mlir") for name in ("linalg", "llvm")}
    slow |= {f"xdsl.dialects.{name}" for name in ("arith", "linalg", "memref", "tensor")}
    assert not slow & modules
