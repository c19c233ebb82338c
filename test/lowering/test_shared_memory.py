"""Which copies become views, decided on host code as it is before its memory is planned."""

from __future__ import annotations

import pytest

from devscope.lowering.interop.session import Session
from devscope.lowering.shared_memory import share_memory, slot_pairs

SPACES = {"1 : i64": 1, "2 : i64": 2, "3 : i64": 3}
"""Memory spaces, as they are in the texts, and their slots."""

PAIRS = frozenset({(0, 1), (1, 2), (2, 3)})
"""The host and space 1 share memory, 1 and 2, 2 and 3."""

_TEXT = """
!h = memref<8xf32>
!d = memref<8xf32, 1>
!e = memref<8xf32, 2>
!f = memref<8xf32, 3>
func.func private @produce() -> !d
func.func private @kernel(!d, !d)
func.func private @kernel2(!e)
func.func private @kernel3(!f)
func.func private @print(!h)
func.func @main(%c: i1, %n: index, %v: f32) -> f32 {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = memref.alloc() : !d
  %x = memref.alloc() : !d
  call @kernel(%d, %x) {{devscope.writes = array<i64: 0, 1>}} : (!d, !d) -> ()
{body}
  memref.dealloc %d : !d
  memref.dealloc %x : !d
  return %v : f32
}}
"""

_WRITE_D = "func.call @kernel(%x, %d) {devscope.writes = array<i64: 1>} : (!d, !d) -> ()"
_READ_D = "func.call @kernel(%d, %x) {devscope.writes = array<i64: 1>} : (!d, !d) -> ()"
_COPY = "%h = memref.alloc() : !h\n memref.copy %d, %h : !d to !h"
_READ = "%r = memref.load %h[%c0] : !h"
_WRITE = "memref.store %v, %h[%c0] : !h"
_FREE = "memref.dealloc %h : !h"
_SECOND = "%g = memref.alloc() : !h\n memref.copy %d, %g : !d to !h"
_FREE_SECOND = "memref.dealloc %g : !h"


def views(*lines: str) -> tuple[int, str]:
    """How many copies become views in a function with these ``lines``, and the function then."""
    session = Session()
    module = session.parse(_TEXT.format(body="\n".join(lines)))
    with session.context:
        share_memory(module, {"": 0, **SPACES}, PAIRS)
        assert module.operation.verify()
    text = str(module)
    return text.count("memref.memory_space_cast"), text


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((_COPY, _READ, _FREE), 1),
        ((_COPY, _READ, _FREE, _WRITE_D), 1),
        ((_COPY, _READ_D, _READ, _FREE), 1),
        ((_COPY, _READ, _WRITE, _FREE), 1),
        ((_COPY, _READ, _READ_D, _WRITE, _FREE), 1),
        # written while the other one is still used
        ((_COPY, _WRITE_D, _READ, _FREE), 0),
        ((_COPY, _WRITE, _READ_D, _FREE), 0),
        ((_COPY, "func.call @print(%h) : (!h) -> ()", _READ_D, _FREE), 0),
        ((_COPY, "scf.if %c {", _WRITE_D, "}", _READ, _FREE), 0),
        ((_COPY, "scf.for %i = %c0 to %n step %c1 {", _READ, _WRITE_D, "}", _FREE), 0),
        # another iteration of the loop that the copy is in
        (("scf.for %i = %c0 to %n step %c1 {", _COPY, _READ, _FREE, _WRITE_D, "}"), 1),
        (("scf.for %i = %c0 to %n step %c1 {", _COPY, _READ, _WRITE, _FREE, "}"), 0),
        # the target is used before, or elsewhere
        (("%h = memref.alloc() : !h", _WRITE, "memref.copy %d, %h : !d to !h", _READ, _FREE), 0),
        (
            (
                "%h = memref.alloc() : !h",
                _WRITE,
                "scf.if %c { memref.copy %d, %h : !d to !h\n}",
                _READ,
                _FREE,
            ),
            0,
        ),
        # allocated outside of the loop
        (
            (
                "%h = memref.alloc() : !h",
                "scf.for %i = %c0 to %n step %c1 { memref.copy %d, %h : !d to !h",
                _READ,
                _WRITE_D,
                "}",
                _FREE,
            ),
            1,
        ),
        # two targets
        ((_COPY, _SECOND, _WRITE, _FREE, _FREE_SECOND), 2),
        (
            (_COPY, _SECOND, _WRITE, "%s = memref.load %g[%c0] : !h", _FREE, _FREE_SECOND),
            1,
        ),
        # what a call returns is new memory
        (
            (
                "%p = func.call @produce() : () -> !d",
                "%h = memref.alloc() : !h",
                "memref.copy %p, %h : !d to !h",
                _READ,
                _FREE,
                "memref.dealloc %p : !d",
            ),
            1,
        ),
        # a part
        (
            (
                "%p = memref.subview %d[0] [4] [1] : !d to memref<4xf32, strided<[1]>, 1>",
                "%h = memref.alloc() : memref<4xf32>",
                "memref.copy %p, %h : memref<4xf32, strided<[1]>, 1> to memref<4xf32>",
                "%r = memref.load %h[%c0] : memref<4xf32>",
                "memref.dealloc %h : memref<4xf32>",
            ),
            0,
        ),
        # no shared memory
        (
            (
                "%f = memref.alloc() : !f",
                "func.call @kernel3(%f) : (!f) -> ()",
                "%h = memref.alloc() : !h",
                "memref.copy %f, %h : !f to !h",
                _READ,
                _FREE,
                "memref.dealloc %f : !f",
            ),
            0,
        ),
    ],
)
def test_host_views(lines: tuple[str, ...], expected: int) -> None:
    found, text = views(*lines)
    assert found == expected
    assert text.count("memref.copy") == "\n".join(lines).count("memref.copy") - expected
    assert text.count("memref.alloc(") == text.count("memref.dealloc") - text.count("= call @produce")


_COPY_E = "%e = memref.alloc() : !e\n memref.copy %d, %e : !d to !e"
_USE_E = "func.call @kernel2(%e) {devscope.writes = array<i64>} : (!e) -> ()"
_WRITE_E = "func.call @kernel2(%e) {devscope.writes = array<i64: 0>} : (!e) -> ()"
_FREE_E = "memref.dealloc %e : !e"
_DONE = "device.end_view"
_K, _K2, _D, _FOR, _IF = "@kernel", "@kernel2", f'"{_DONE}"', "scf.for", "scf.if"
_VIEW = "memref.memory_space_cast"
_ORDERED = (_K, _K2, _D, _FOR, _IF, _VIEW, "memref.dealloc")


@pytest.mark.parametrize(
    ("lines", "expected", "order"),
    [
        ((_COPY_E, _USE_E, _FREE_E), 1, [_VIEW, _K2, _D]),
        # what only reads the buffer need not wait
        ((_COPY_E, _USE_E, _FREE_E, _READ_D), 1, [_VIEW, _K2, _K, _D]),
        ((_COPY_E, _USE_E, _FREE_E, _WRITE_D), 1, [_VIEW, _K2, _D, _K]),
        ((_COPY_E, _USE_E, _FREE_E, "scf.if %c {", _WRITE_D, "}"), 1, [_VIEW, _K2, _D, _IF, _K]),
        (
            ("scf.if %c {", _COPY_E, _USE_E, _FREE_E, "}", _WRITE_D),
            1,
            [_IF, _VIEW, _K2, _D, _K],
        ),
        (
            ("scf.for %i = %c0 to %n step %c1 {", _WRITE_D, _COPY_E, _USE_E, _FREE_E, "}"),
            1,
            [_FOR, _K, _VIEW, _K2, _D],
        ),
        ((_COPY_E, _WRITE_D, _USE_E, _FREE_E), 0, None),
        ((_COPY_E, _USE_E, _WRITE_E, _FREE_E), 0, None),
        # the host would not wait for the other device
        ((_COPY_E, _USE_E, _FREE_E, _COPY, _WRITE, _FREE), 1, None),
        ((_COPY, _COPY_E, _USE_E, _FREE_E, _WRITE, _FREE), 1, None),
        ((_COPY_E, _USE_E, _FREE_E, _COPY, _READ, _FREE), 2, None),
        # the host looks at what the other device looks at; it shares no memory with that one
        ((_COPY_E, "%h = memref.alloc() : !h\n memref.copy %e, %h : !e to !h", _READ, _FREE, _FREE_E), 1, None),
        # a third device, which shares no memory with the first one
        (
            (
                _COPY_E,
                "%f = memref.alloc() : !f\n memref.copy %e, %f : !e to !f",
                "func.call @kernel3(%f) {devscope.writes = array<i64>} : (!f) -> ()",
                "memref.dealloc %f : !f",
                _FREE_E,
            ),
            1,
            None,
        ),
    ],
)
def test_views_of_devices(lines: tuple[str, ...], expected: int, order: list[str] | None) -> None:
    found, text = views(*lines)
    assert found == expected
    lent = [line for line in text.splitlines() if _VIEW in line and line.endswith("to memref<8xf32, 2>")]
    assert text.count(_DONE) == len(lent)
    if order is not None:
        found = [word for word in text[text.index("@main") :].replace("(", " ").split() if word in _ORDERED]
        assert found == ["@kernel", *order, "memref.dealloc", "memref.dealloc"]


_H = "%h = memref.alloc() : !h"
_COPY_IN = "%q = memref.alloc() : !d\n memref.copy %h, %q : !h to !d"
_USE_Q = "func.call @kernel(%q, %x) {devscope.writes = array<i64: 1>} : (!d, !d) -> ()"
_WRITE_Q = "func.call @kernel(%x, %q) {devscope.writes = array<i64: 1>} : (!d, !d) -> ()"
_FREE_BOTH = "memref.dealloc %h : !h\n memref.dealloc %q : !d"
_FILL = "linalg.fill ins(%v : f32) outs(%h : !h)"
_FOR = "scf.for %i = %c0 to %n step %c1 {"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((_H, _WRITE, _COPY_IN, _USE_Q, _FREE_BOTH), 1),
        ((_H, _FOR, _WRITE, "}", _READ, _COPY_IN, _USE_Q, _FREE_BOTH), 1),
        ((_H, _WRITE, _COPY_IN, _USE_Q, _READ, _FREE_BOTH), 1),
        ((_H, _WRITE, _COPY_IN, _READ, _WRITE_Q, _FREE_BOTH), 1),
        ((_FOR, _H, _WRITE, _COPY_IN, _USE_Q, _FREE_BOTH, "}"), 1),
        # written while the other one is still used
        ((_H, _WRITE, _COPY_IN, _USE_Q, _WRITE, _FREE_BOTH), 0),
        ((_H, _WRITE, _COPY_IN, _WRITE_Q, _READ, _FREE_BOTH), 0),
        # not for this copy alone
        ((_H, _WRITE, "scf.if %c {", _COPY_IN, _USE_Q, "memref.dealloc %q : !d", "}", _FREE), 0),
        ((_H, "%q = memref.alloc() : !d", _WRITE_Q, "memref.copy %h, %q : !h to !d", _USE_Q, _FREE_BOTH), 0),
        (
            (
                _H,
                "%q = memref.alloc() : !d",
                _FOR,
                _WRITE,
                "memref.copy %h, %q : !h to !d",
                "}",
                _USE_Q,
                _FREE_BOTH,
            ),
            0,
        ),
        # allocated outside of the loop: what one iteration made is not for the next one if that begins anew
        (
            (
                _H,
                "%q = memref.alloc() : !d",
                _FOR,
                _FILL,
                "memref.copy %h, %q : !h to !d",
                _USE_Q,
                "}",
                _FREE_BOTH,
            ),
            1,
        ),
        (
            (
                _H,
                "%q = memref.alloc() : !d",
                _FOR,
                _WRITE,
                "memref.copy %h, %q : !h to !d",
                _USE_Q,
                "}",
                _FREE_BOTH,
            ),
            0,
        ),
        (
            (
                _H,
                _FILL,
                "%q = memref.alloc() : !d",
                _FOR,
                "memref.copy %h, %q : !h to !d",
                _USE_Q,
                "}",
                _FREE_BOTH,
            ),
            0,
        ),
        # a second device sees what is made for the first one; the first one what the host goes on to use
        (
            (
                _H,
                _WRITE,
                _COPY_IN,
                "%e = memref.alloc() : !e\n memref.copy %q, %e : !d to !e",
                _USE_E,
                _FREE_E,
                _FREE_BOTH,
            ),
            2,
        ),
    ],
)
def test_made_in_place(lines: tuple[str, ...], expected: int) -> None:
    found, text = views(*lines)
    assert found == expected
    assert text.count("{devscope.filled}") == text.count("device.publish") == min(expected, 1)
    assert text.count("memref.copy") == "\n".join(lines).count("memref.copy") - expected
    assert text.count("memref.alloc(") == text.count("memref.dealloc")


def test_the_source_lives_on() -> None:
    session = Session()
    body = "%p = func.call @produce() : () -> !d\n%h = memref.alloc() : !h\nmemref.copy %p, %h : !d to !h\n"
    module = session.parse(_TEXT.format(body=f"{body}memref.dealloc %p : !d\n{_READ}\n{_FREE}"))
    with session.context:
        assert share_memory(module, {"": 0, **SPACES}, PAIRS) == [(0, 1)]
    names = [op.name for op in module.body.operations[-1].regions[0].blocks[0].operations]
    assert names.index("memref.load") + 1 == names.index("memref.dealloc")


def test_slot_pairs() -> None:
    names = {0: "cpu:0", 1: "opencl:1", 2: "opencl:0"}
    shared = [{"cpu:0", "opencl:0"}, {"opencl:1", "opencl:0"}, {"cpu:0", "cuda:0"}]
    assert slot_pairs(names, map(frozenset, shared)) == {(0, 2), (1, 2)}
