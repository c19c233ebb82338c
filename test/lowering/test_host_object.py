"""Object code of the host from LLVM IR: kernels beside it."""

import pytest

from devscope.errors import LoweringError
from devscope.lowering.codegen.host_object import Kernels, compile_host_object
from devscope.runtime.native import call_symbol
from devscope.runtime.object_file import read_symbols

HOST = """
declare i64 @twice(i64)
define void @main(ptr %p) {
  br label %next
next:
  %x = load i64, ptr %p
  %y = call i64 @twice(i64 %x)
  store i64 %y, ptr %p
  ret void
}
"""
TWICE = """
@".L\\22\\5C\\0A" = private constant [4 x i8] c"\\22\\5C\\0A\\00"
declare i64 @look(ptr)
define i64 @twice(i64 %x) {
  %some = icmp sgt i64 %x, 0
  br i1 %some, label %then, label %end
then:
  %length = call i64 @look(ptr @".L\\22\\5C\\0A")
  %more = add i64 %x, %length
  br label %end
end:
  %y = phi i64 [ %more, %then ], [ %x, %0 ]
  ret i64 %y
}
"""


@pytest.mark.parametrize("level", [0, 3])
def test_kernels_are_in_the_object(level: int) -> None:
    data = compile_host_object(HOST, ["main"], level=level, kernels=Kernels(TWICE, "", "", level)).data
    symbols = read_symbols(data)
    assert "twice" not in symbols.defined | symbols.imported
    assert call_symbol("main") in symbols.defined
    assert symbols.imported == {"look"}
    assert b'"\\\n\0' in data


def test_kernels_that_llvm_refuses() -> None:
    with pytest.raises(LoweringError, match="LLVM refused the host code"):
        compile_host_object(HOST, ["main"], kernels=Kernels("define twice", "", "", 3))
