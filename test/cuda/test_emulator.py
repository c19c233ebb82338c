"""The emulator of CUDA devices: what instructions do, and that it finds what is wrong with a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulation import emulator, run_kernel, set_order

from devscope.errors import DeviceError

ORDERS = range(7)

HEAD = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
@tile = internal addrspace(3) global [64 x float] undef, align 16
@bytes = external addrspace(3) global [0 x i8], align 16
"""
BARRIER = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"


def kernel(body: str, head: str = "", arguments: str = "ptr addrspace(1) %x, ptr addrspace(1) %y") -> str:
    return f"""{HEAD}{head}
define ptx_kernel void @k({arguments}) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
{body}
  ret void
}}"""


def at(name: str, base: str, index: str, space: int = 1, type_: str = "float") -> str:
    return f"%{name} = getelementptr {type_}, ptr addrspace({space}) {base}, i32 {index}\n"


# ------------------------------------------------------------------------------------------------- planted faults

#: Thread t writes t of shared memory and reads 63 - t.
REVERSE = kernel(
    at("px", "%x", "%t")
    + "%v = load float, ptr addrspace(1) %px\n"
    + at("own", "@tile", "%t", 3)
    + "store float %v, ptr addrspace(3) %own\nBARRIER\n%o = sub i32 63, %t\n"
    + at("other", "@tile", "%o", 3)
    + "%w = load float, ptr addrspace(3) %other\n"
    + at("py", "%y", "%t")
    + "store float %w, ptr addrspace(1) %py\n"
)

#: A kernel, blocks, threads of one, and what is wrong with it.
FAULTS: dict[str, tuple[str, int, int, str]] = {
    "missing barrier": (
        REVERSE.replace("BARRIER", ""),
        1,
        64,
        "race: .* shared memory .* with no barrier between",
    ),
    "barrier not reached by all": (
        kernel(
            f"""%c = icmp ult i32 %t, 16
            br i1 %c, label %yes, label %no
            yes:
            {BARRIER}
            br label %no
            no:"""
        ),
        1,
        64,
        "16 threads wait at a barrier, and 48 have ended",
    ),
    "read behind a buffer": (
        kernel("%i = add i32 %t, 1\n" + at("p", "%x", "%i") + "%v = load volatile float, ptr addrspace(1) %p"),
        1,
        64,
        r"thread \(63, 0, 0\): reads 4 bytes of global memory, 0 bytes behind its end",
    ),
    "write before a buffer": (
        kernel("%i = sub i32 %t, 1\n" + at("p", "%y", "%i") + "store float 0.0, ptr addrspace(1) %p"),
        1,
        64,
        r"thread \(0, 0, 0\): writes 4 bytes",
    ),
    "wild pointer": (
        kernel("store float 0.0, ptr addrspace(1) null"),
        1,
        1,
        "writes 4 bytes at an address that no buffer has",
    ),
    "read behind shared memory": (
        kernel(at("p", "@tile", "64", 3) + "%v = load volatile float, ptr addrspace(3) %p"),
        1,
        1,
        "reads 4 bytes of shared memory, 0 bytes behind its end",
    ),
    "blocks write the same element": (
        kernel(at("p", "%y", "%t") + "store float 1.0, ptr addrspace(1) %p"),
        2,
        32,
        "race: writes global memory that another block wrote",
    ),
    "block reads what another one writes": (
        kernel(
            at("p", "%y", "%b")
            + "%z = sub i32 1, %b\n"
            + at("q", "%y", "%z")
            + "%v = load float, ptr addrspace(1) %p\nstore float %v, ptr addrspace(1) %q"
        ),
        2,
        1,
        r"race: \w+ global memory that another block",
    ),
    "threads write the same element": (
        kernel(at("p", "%y", "0") + "store float 1.0, ptr addrspace(1) %p"),
        1,
        2,
        "race: writes global memory that thread .* wrote",
    ),
    "not aligned": (
        kernel(at("p", "%x", "1") + "%v = load volatile <4 x float>, ptr addrspace(1) %p, align 16"),
        1,
        1,
        "reads 16 bytes of global memory at an address that is no multiple of 16",
    ),
    "lane that does not come": (
        kernel(
            """%c = icmp ult i32 %t, 16
            br i1 %c, label %yes, label %no
            yes:
            call void @llvm.nvvm.bar.warp.sync(i32 -1)
            br label %no
            no:"""
        ),
        1,
        32,
        "16 threads wait for others of their warp",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("order", [0, 3, 6])
def test_fault(name: str, order: int) -> None:
    text, grid, block, message = FAULTS[name]
    set_order(order)
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    with pytest.raises(DeviceError, match=message):
        run_kernel(text, grid, (block, 1, 1), x, y)
    set_order(0)


def test_shared_memory_is_not_initialised() -> None:
    text = kernel(
        at("p", "@tile", "%t", 3)
        + "%v = load volatile float, ptr addrspace(3) %p\n"
        + at("q", "%y", "%t")
        + "store float %v, ptr addrspace(1) %q"
    )
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    run_kernel(text, 1, (64, 1, 1), x, y)
    assert np.isnan(y).all()


@pytest.mark.parametrize("order", ORDERS)
def test_barrier(order: int) -> None:
    set_order(order)
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run_kernel(REVERSE.replace("BARRIER", BARRIER), 1, (64, 1, 1), x, y)
    np.testing.assert_array_equal(y, x[::-1])
    set_order(0)


def test_barrier_of_a_warp() -> None:
    """It orders the threads of a warp, not those of others."""
    text = REVERSE.replace("sub i32 63, %t", "xor i32 31, %t").replace(
        "BARRIER", "call void @llvm.nvvm.bar.warp.sync(i32 -1)"
    )
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run_kernel(text, 1, (64, 1, 1), x, y)
    np.testing.assert_array_equal(y, np.concatenate([x[31::-1], x[:31:-1]]))
    with pytest.raises(DeviceError, match="race"):
        run_kernel(text.replace("xor i32 31", "sub i32 63,").replace(",, ", ", "), 1, (64, 1, 1), x, y)


def test_dynamic_shared_memory() -> None:
    """It has as many bytes as a launch says."""
    text = kernel(
        at("p", "@bytes", "%t", 3)
        + "store float 2.0, ptr addrspace(3) %p\n%v = load volatile float, ptr addrspace(3) %p\n"
        + at("q", "%y", "%t")
        + "store float %v, ptr addrspace(1) %q"
    )
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    run_kernel(text, 1, (64, 1, 1), x, y, dynamic=256)
    np.testing.assert_array_equal(y, np.full(64, 2, np.float32))
    with pytest.raises(DeviceError, match="shared memory, 0 bytes behind its end"):
        run_kernel(text, 1, (64, 1, 1), x, y, dynamic=252)


@pytest.mark.parametrize("order", ORDERS)
def test_atomics(order: int) -> None:
    """They do not race with each other."""
    set_order(order)
    text = kernel("%v = atomicrmw fadd ptr addrspace(1) %y, float 1.0 monotonic, align 4")
    x, y = np.zeros(1, np.float32), np.zeros(1, np.float32)
    run_kernel(text, 3, (64, 1, 1), x, y)
    assert y[0] == 192
    set_order(0)


# -------------------------------------------------------------------------------------------------- instructions


def lanes(body: str, head: str, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    """What ``%r`` is in the lanes of a warp."""
    store = at("q", "%y", "%t", type_="i32") + "store i32 %r, ptr addrspace(1) %q"
    y = np.zeros(32, dtype)
    run_kernel(kernel(body + store, head), 1, (32, 1, 1), np.zeros(1, np.float32), y)
    return y


LANE = np.arange(32)
SHUFFLES = {
    "up": (3, 0, np.where(LANE >= 3, LANE - 3, LANE)),
    "down": (3, 31, np.where(LANE + 3 < 32, LANE + 3, LANE)),
    "bfly": (5, 31, LANE ^ 5),
    "idx": (7, 31, np.full(32, 7)),
    "down of 8": (3, 0x181F, np.where(LANE % 8 + 3 < 8, LANE + 3, LANE)),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffle(name: str) -> None:
    by, clamp, expected = SHUFFLES[name]
    mode = name.split()[0]
    head = f"declare {{i32, i1}} @llvm.nvvm.shfl.sync.{mode}.i32p(i32, i32, i32, i32)\n"
    body = f"""%s = call {{i32, i1}} @llvm.nvvm.shfl.sync.{mode}.i32p(i32 -1, i32 %t, i32 {by}, i32 {clamp})
      %v = extractvalue {{i32, i1}} %s, 0
      %p = extractvalue {{i32, i1}} %s, 1
      %z = zext i1 %p to i32
      %h = mul i32 %z, 100
      %r = add i32 %v, %h
    """
    found = lanes(body, head)
    np.testing.assert_array_equal(found % 100, expected)
    inside = (expected != LANE) | (name == "idx")
    np.testing.assert_array_equal(found >= 100, inside)


#: The type, operands of an instruction of the warp, what comes before it, and the results.
WARP = {
    "vote.ballot.sync": ("i32", "i32 -1, i1 %c", "%c = icmp ult i32 %t, 5\n", np.full(32, 31)),
    "vote.any.sync": ("i1", "i32 -1, i1 %c", "%c = icmp ugt i32 %t, 40\n", np.zeros(32)),
    "vote.all.sync": ("i1", "i32 -1, i1 %c", "%c = icmp ult i32 %t, 32\n", np.ones(32)),
    "match.any.sync.i32": (
        "i32",
        "i32 -1, i32 %h",
        "%h = udiv i32 %t, 16\n",
        np.where(LANE < 16, 0xFFFF, -0x10000),
    ),
    "redux.sync.add": ("i32", "i32 %t, i32 -1", "", np.full(32, 496)),
    "redux.sync.min": ("i32", "i32 %n, i32 -1", "%n = sub i32 3, %t\n", np.full(32, -28)),
    "redux.sync.umax": ("i32", "i32 %n, i32 -1", "%n = sub i32 3, %t\n", np.full(32, -1)),
}


@pytest.mark.parametrize("name", WARP)
def test_warp(name: str) -> None:
    type_, operands, before, expected = WARP[name]
    declared = ", ".join(operand.split()[0] for operand in operands.split(", "))
    body = f"{before}%v = call {type_} @llvm.nvvm.{name}({operands})\n"
    body += "%r = zext i1 %v to i32\n" if type_ == "i1" else "%r = add i32 %v, 0\n"
    np.testing.assert_array_equal(lanes(body, f"declare {type_} @llvm.nvvm.{name}({declared})\n"), expected)


COPY = """
declare void @llvm.nvvm.cp.async.ca.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
"""


def test_asynchronous_copy() -> None:
    """What is copied is there for the thread that has waited, and for others behind a barrier."""
    text = kernel(
        "%i = mul i32 %t, 4\n"
        + at("p", "%x", "%i")
        + at("s", "@tile", "%i", 3)
        + "call void @llvm.nvvm.cp.async.ca.shared.global.16(ptr addrspace(3) %s, ptr addrspace(1) %p)\n"
        + "call void @llvm.nvvm.cp.async.commit.group()\ncall void @llvm.nvvm.cp.async.wait.group(i32 N)\n"
        + "%v = load volatile <4 x float>, ptr addrspace(3) %s, align 16\n"
        + at("q", "%y", "%i")
        + "store <4 x float> %v, ptr addrspace(1) %q, align 16",
        COPY,
    )
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run_kernel(text.replace("i32 N", "i32 0"), 1, (16, 1, 1), x, y)
    np.testing.assert_array_equal(y, x)
    run_kernel(text.replace("i32 N", "i32 1"), 1, (16, 1, 1), x, y)
    assert np.isnan(y).all()


def load_fragments(name: str, row: str, count: int, size: int, type_: str) -> tuple[str, str]:
    """ldmatrix of rows of ``size`` bytes of a variable, with the results ``%NAME0`` and so on; its declaration."""
    struct = "{" + ", ".join(["i32"] * count) + "}"
    function = f"@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}.b16.p3"
    text = f"""
    %{name}row = mul i32 {row}, {size}
    %{name}at = add i32 %{name}row, %{name}piece
    {at(f"{name}p", f"@{name}", f"%{name}at", 3, "i8")}
    %{name}m = call {struct} {function}(ptr addrspace(3) %{name}p)
    """
    for n in range(count):
        text += f"%{name}{n}i = extractvalue {struct} %{name}m, {n}\n"
        text += f"%{name}{n} = bitcast i32 %{name}{n}i to {type_}\n"
    return text, f"declare {struct} {function}(ptr addrspace(3))\n"


def copy_in(name: str, source: str, rows: int, size: int) -> str:
    """Rows of ``size`` bytes go to a variable of shared memory."""
    text = ""
    for n in range(rows):
        to = f"getelementptr (i8, ptr addrspace(3) @{name}, i32 {n * size})"
        text += at(f"{name}from{n}", source, str(n * size), type_="i8")
        arguments = f"ptr addrspace(3) {to}, ptr addrspace(1) %{name}from{n}, i64 {size}, i1 false"
        text += f"call void @llvm.memcpy.p3.p1.i64({arguments})\n"
    return text


def matrix_kernel(element: str, k: int) -> str:
    """One mma.sync of A[16, k], row by row, and B[8, k] for columns, each loaded by ldmatrix, and C[16, 8] f32."""
    size = k * (4 if element == "tf32" else 2)
    type_ = "<2 x half>" if element == "f16" else "i32"
    load_a, declare_a = load_fragments("a", "%row16", 4, size, type_)
    load_b, declare_b = load_fragments("b", "%row8", 2, size, type_)
    suffix = "f32.f32" if element == "f16" else element
    function, result = f"@llvm.nvvm.mma.m16n8k{k}.row.col.{suffix}", "{float, float, float, float}"
    names = [*(f"%a{n}" for n in range(4)), *(f"%b{n}" for n in range(2))]
    given = ", ".join([f"{type_} {name}" for name in names] + [f"float %c{n}" for n in range(4)])
    load_c = store_d = ""
    for n in range(4):
        load_c += f"%i{n}a = mul i32 {'%row' if n < 2 else '%row_8'}, 8\n%i{n}b = add i32 %i{n}a, %column\n"
        load_c += f"%i{n} = add i32 %i{n}b, {n % 2}\n" + at(f"pc{n}", "%z", f"%i{n}")
        load_c += f"%c{n} = load float, ptr addrspace(1) %pc{n}\n"
        store_d += f"%d{n} = extractvalue {result} %d, {n}\nstore float %d{n}, ptr addrspace(1) %pc{n}\n"
    head = f"""
    declare void @llvm.memcpy.p3.p1.i64(ptr addrspace(3), ptr addrspace(1), i64, i1)
    {declare_a}{declare_b}
    declare {result} {function}({", ".join([type_] * 6 + ["float"] * 4)})
    @a = internal addrspace(3) global [{16 * size} x i8] undef, align 16
    @b = internal addrspace(3) global [{8 * size} x i8] undef, align 16
    """
    body = f"""
    %first = icmp eq i32 %t, 0
    br i1 %first, label %copy, label %go
    copy:
    {copy_in("a", "%x", 16, size)}{copy_in("b", "%y", 8, size)}
    br label %go
    go:
    {BARRIER}
    %row16 = urem i32 %t, 16
    %half = udiv i32 %t, 16
    %apiece = mul i32 %half, 16
    %row8 = urem i32 %t, 8
    %eighth = udiv i32 %t, 8
    %odd = urem i32 %eighth, 2
    %bpiece = mul i32 %odd, 16
    %row = udiv i32 %t, 4
    %row_8 = add i32 %row, 8
    %quarter = urem i32 %t, 4
    %column = mul i32 %quarter, 2
    {load_a}{load_b}{load_c}
    %d = call {result} {function}({given})
    {store_d}"""
    return kernel(body, head, "ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %z")


@pytest.mark.parametrize(("element", "k"), [("f16", 16), ("bf16", 16), ("tf32", 8)])
def test_products_of_matrices(element: str, k: int) -> None:
    """ldmatrix and mma.sync, put together as the PTX ISA has it, give a product of matrices."""
    rng = np.random.default_rng(0)
    # Exact in all these types.
    a, b = rng.integers(-8, 8, (16, k)), rng.integers(-8, 8, (8, k))
    c = rng.integers(-8, 8, (16, 8)).astype(np.float32)
    kinds: dict[str, Any] = {"f16": np.float16, "tf32": np.float32, "bf16": np.float32}
    x, y = a.astype(kinds[element]), b.astype(kinds[element])
    if element == "bf16":
        x, y = ((v.view(np.uint32) >> 16).astype(np.uint16) for v in (x, y))
    expected = a @ b.T + c
    run_kernel(matrix_kernel(element, k), 1, (32, 1, 1), x, y, c)
    np.testing.assert_array_equal(c, expected)


def test_the_emulator_is_there() -> None:
    assert emulator() is not None
