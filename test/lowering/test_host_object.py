"""Object code of the host from LLVM IR: kernels beside it."""

from threading import Thread

import pytest

from devscope.errors import LoweringError
from devscope.lowering.codegen import host_object
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
define linkonce_odr i64 @end(i64 %x) {
  %some = icmp eq i64 %x, 0
  br i1 %some, label %then, label %end
then:
  ret i64 1
end:
  ret i64 %x
}
define i64 @twice(i64 %x) {
  %some = icmp sgt i64 %x, 0
  br i1 %some, label %then, label %end
then:
  %length = call i64 @look(ptr @".L\\22\\5C\\0A")
  %more = add i64 %x, %length
  br label %end
end:
  %y = phi i64 [ %more, %then ], [ %x, %0 ]
  %z = call i64 @end(i64 %y)
  ret i64 %z
}
"""


@pytest.mark.parametrize(("level", "size"), [(0, 10_000), (0, 1), (3, 1)])
def test_kernels_are_in_the_object(level: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one part, and as a part for each function."""
    monkeypatch.setattr(host_object, "_PART", size)
    data = compile_host_object(HOST, ["main"], level=level, kernels=Kernels(TWICE, "", "", level)).data
    symbols = read_symbols(data)
    assert not {"twice", "end"} & (symbols.defined | symbols.imported)
    assert call_symbol("main") in symbols.defined
    assert symbols.imported == {"look"}
    assert b'"\\\n\0' in data


def test_kernels_that_llvm_refuses() -> None:
    with pytest.raises(LoweringError, match="LLVM refused the host code"):
        compile_host_object(HOST, ["main"], kernels=Kernels("define twice", "", "", 3))


def test_kernels_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", start)
    assert read_symbols(compile_host_object(HOST, ["main"], kernels=Kernels(TWICE, "", "", 3)).data).imported
