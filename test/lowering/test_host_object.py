"""Object code of the host from LLVM IR: kernels beside it."""

from threading import Thread

import pytest

from devscope.errors import LoweringError
from devscope.lowering.codegen import parts
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


@pytest.mark.parametrize(("level", "size"), [(0, 10_000), (0, 100), (3, 100)])
def test_kernels_are_in_the_object(level: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one part, and as a part for each function."""
    monkeypatch.setattr(parts, "_PART", size)
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


PARTS = """
@message = private constant [4 x i8] c".L1\\00"
@far = external global i64
declare i64 @look(ptr)
declare void @run(ptr, ptr)
define i64 @short(i64 %x) {
  %length = call i64 @look(ptr @message)
  %sum = add i64 %x, %length
  ret i64 %sum
}
define void @"a task"(ptr %p) {
  %x = load i64, ptr %p
  %y = call i64 @short(i64 %x)
  %z = call i64 @long(i64 %y)
  store i64 %z, ptr %p
  ret void
}
define i64 @long(i64 %x) {
  %some = icmp sgt i64 %x, 0
  br i1 %some, label %then, label %end
then:
  %more = load i64, ptr @far
  br label %end
end:
  %y = phi i64 [ %more, %then ], [ %x, %0 ]
  ret i64 %y
}
define void @main(ptr %p) {
  %x = load i64, ptr %p
  %y = call i64 @short(i64 %x)
  store i64 %y, ptr %p
  call void @run(ptr @"a task", ptr %p)
  ret void
}
"""


def test_host_code_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that call each other stay together, short ones are in each part, and nothing more is visible."""
    monkeypatch.setattr(parts, "_PART", 100)
    monkeypatch.setattr(parts, "_SHORT", 150)
    one, other = parts.split(PARTS, is_inlined=True, exported=["main"])
    assert 'define void @"a task"' in one
    assert "define internal i64 @long" in one
    assert "declare dso_local void @main" in one
    assert "define void @main" in other
    assert 'declare dso_local void @"a task"' in other
    assert all("define private i64 @short" in part for part in (one, other))
    data = compile_host_object(PARTS, ["main"]).data
    symbols = read_symbols(data)
    assert not {"a task", "long", "short", "main"} & (symbols.defined | symbols.imported)
    assert symbols.imported == {"look", "run", "far"}
    assert b".L1\0" in data
    for threads in ("1", "3"):  # also less than parts, of which the caller compiles what is left
        monkeypatch.setenv("DEVSCOPE_THREADS", threads)
        assert compile_host_object(PARTS, ["main"]).data == data


def test_globals_that_functions_share_keep_host_code_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_PART", 100)
    text = PARTS.replace("external global i64", "internal global i64 0")
    assert parts.split(text, is_inlined=True) == [text]
