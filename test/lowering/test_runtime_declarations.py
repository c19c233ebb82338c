"""What the declarations of the native runtime tell LLVM, which sees no body and optimises all the same."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from devscope.cli.main import main

# A value that is stored and loaded, with calls in between that cannot touch the memory.
CODE = """
define i64 @stored(i64 %bytes) {
  %memory = call ptr @devscope_host_alloc(i64 64)
  store i64 7, ptr %memory
  %other = call ptr @devscope_host_alloc(i64 %bytes)
  call void @_mlir_memref_to_llvm_free(ptr %other)
  %place = call ptr @devscope_host_place(i64 0)
  store i64 8, ptr %place
  call void @devscope_host_done(ptr %place)
  %value = load i64, ptr %memory
  call void @_mlir_memref_to_llvm_free(ptr %memory)
  ret i64 %value
}

define i64 @copied(i64 %buffer) {
  %memory = call ptr @devscope_host_alloc(i64 64)
  store i64 7, ptr %memory
  %address = ptrtoint ptr %memory to i64
  call void @devscope_copy(i64 1, i64 %buffer, i64 0, i64 0, i64 %address, i64 0, i64 8)
  %value = load i64, ptr %memory
  ret i64 %value
}
"""


@pytest.fixture(scope="module")
def optimised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("declarations")
    source, text = folder / "in.mlir", folder / "out.ll"
    source.write_text("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
    assert main(["lower", str(source), "--stage", "host-llvm", "-o", str(text)]) == 0
    llvm.initialize_native_target()
    module = llvm.parse_assembly(text.read_text(encoding="utf-8") + CODE)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(3))
    passes.getModulePassManager().run(module, passes)
    return {function.name: str(function) for function in module.functions}


def test_stores_are_forwarded_across_allocations(optimised: dict[str, str]) -> None:
    assert "ret i64 7" in optimised["stored"]
    # The allocations stay: they stop the call when there is no memory.
    assert optimised["stored"].count("@devscope_host_alloc") == 2


def test_copies_write_memory(optimised: dict[str, str]) -> None:
    assert "ret i64 7" not in optimised["copied"]
