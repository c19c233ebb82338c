"""Loops of the host: random elementwise operations, reductions and choices over up to three axes, beside numpy.

Parts and tasks are so small that a few elements have several of each.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import devscope

Array = NDArray[np.float32]

SMALL = """
[[loops]]
template = "nests"
element = "any"
[loops.numbers]
grain = 16
most_tasks = 64
most_parts = 5
row_tasks = 3
columns = 4
row_part = 8
block = 4
vector = 16
stream = 600
"""
SHAPES = [(3, 5, 7), (1, 1, 1), (0, 4, 2), (4, 0, 3), (5, 3, 0), (2, 3, 40), (9, 17, 33)]


class Program:
    """``values``: names with their axes, letters of ``abc``; ``steps`` make them of arrays.

    ``sizes``: of the axes, None where only the caller knows.
    """

    def __init__(self, seed: int, sizes: tuple[int, ...] | None = None) -> None:
        self.sizes = dict(zip("abc", sizes, strict=True)) if sizes else {}
        self.random = random.Random(seed)
        self.values = {"x": "abc", "y": "bc", "z": "c", "w": "ca"}
        self.lines: list[str] = []
        self.steps: list[Callable[[dict[str, Array]], None]] = []

    def type_(self, axes: str, element: str = "f32") -> str:
        return f"tensor<{''.join(f'{self.sizes[axis]}x' if self.sizes else '?x' for axis in axes)}{element}>"

    def _map(self, loops: str, axes: str) -> str:
        return f"affine_map<({', '.join(loops)}) -> ({', '.join(axes)})>"

    def _empty(self, name: str, axes: str, element: str = "f32") -> None:
        sizes = ", ".join(f"%n{axis}" for axis in axes if not self.sizes)
        self.lines.append(f"%{name} = tensor.empty({sizes}) : {self.type_(axes, element)}")

    def _fill(self, name: str, axes: str, value: str, element: str = "f32") -> None:
        self._empty(f"{name}e", axes, element)
        type_ = self.type_(axes, element)
        self.lines.append(f"%{name}c = arith.constant {value} : {element}")
        self.lines.append(f"%{name}i = linalg.fill ins(%{name}c : {element}) outs(%{name}e : {type_}) -> {type_}")

    def _generic(
        self, name: str, loops: str, inputs: list[str], outputs: list[tuple[str, str, str]], body: str
    ) -> None:
        maps = [self._map(loops, axes) for axes in [*(self.values[v] for v in inputs), *(o[1] for o in outputs)]]
        kinds = ", ".join('"parallel"' if axis in outputs[0][1] else '"reduction"' for axis in loops)
        ins = f"{', '.join('%' + v for v in inputs)} : {', '.join(self.type_(self.values[v]) for v in inputs)}"
        types = [self.type_(axes, element) for _, axes, element in outputs]
        outs = f"{', '.join('%' + v for v, _, _ in outputs)} : {', '.join(types)}"
        count = "" if len(outputs) == 1 else f":{len(outputs)}"
        self.lines.append(
            f"%{name}{count} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}"
            f" ins({ins}) outs({outs}) {{ {body} }} -> ({', '.join(types)})"
        )

    def add(self) -> None:
        name = f"v{len(self.lines)}"
        kind = self.random.choice(["two", "two", "two", "sum", "max", "argmax"])
        first = self.random.choice([v for v, axes in self.values.items() if axes or kind == "two"])
        axes = self.values[first]
        if kind == "two":
            second = self.random.choice(list(self.values))
            union = "".join(dict.fromkeys(axes + self.values[second]))
            out = "".join(self.random.sample(union, len(union)))
            self._empty(f"{name}e", out)
            operation = self.random.choice(["subf", "maximumf"])
            body = f"^bb0(%p: f32, %q: f32, %o: f32): %r = arith.{operation} %p, %q : f32 linalg.yield %r : f32"
            loops = "".join(self.random.sample(out, len(out)))
            self._generic(name, loops, [first, second], [(f"{name}e", out, "f32")], body)
            compute = np.subtract if operation == "subf" else np.maximum
            self._step(name, out, lambda v, s=second: compute(self.spread(v, first, out), self.spread(v, s, out)))
            return
        summed = "".join(self.random.sample(axes, self.random.randint(1, len(axes)) if kind != "argmax" else 1))
        out = "".join(axis for axis in axes if axis not in summed)
        loops = "".join(self.random.sample(axes, len(axes)))
        over = tuple(axes.index(axis) for axis in summed)
        if kind == "argmax":
            self._fill(f"{name}v", out, "0xFF800000")
            self._fill(f"{name}n", out, "-1", "i64")
            body = f"""^bb0(%p: f32, %v: f32, %n: i64):
                %i = linalg.index {loops.index(summed)} : index
                %j = arith.index_cast %i : index to i64
                %g = arith.cmpf ogt, %p, %v : f32
                %nv = arith.select %g, %p, %v : f32
                %nn = arith.select %g, %j, %n : i64
                linalg.yield %nv, %nn : f32, i64"""
            outputs = [(f"{name}vi", out, "f32"), (f"{name}ni", out, "i64")]
            self._generic(f"{name}t", loops, [first], outputs, body)
            self._empty(f"{name}e", out)
            type_ = self.type_(out)
            self.lines.append(
                f"%{name} = linalg.map ins(%{name}t#1 : {self.type_(out, 'i64')}) outs(%{name}e : {type_})"
                f" (%n: i64, %o: f32) {{ %f = arith.sitofp %n : i64 to f32 linalg.yield %f : f32 }}"
            )

            def place(v: dict[str, Array]) -> Array:
                array = v[first]
                if array.shape[over[0]] == 0:
                    return np.full(array.max(over, initial=0).shape, -1, np.float32)
                return array.argmax(over[0]).astype(np.float32)

            self._step(name, out, place)
            return
        self._fill(name, out, "0.0" if kind == "sum" else "-8.0")
        operation = "addf" if kind == "sum" else "maximumf"
        body = f"^bb0(%p: f32, %o: f32): %r = arith.{operation} %p, %o : f32 linalg.yield %r : f32"
        self._generic(name, loops, [first], [(f"{name}i", out, "f32")], body)
        if kind == "sum":
            self._step(name, out, lambda v: v[first].sum(over))
        else:
            self._step(name, out, lambda v: v[first].max(over, initial=-8))

    def _step(self, name: str, axes: str, compute: Callable[[dict[str, Array]], Array]) -> None:
        self.values[name] = axes
        self.steps.append(lambda v: v.__setitem__(name, np.asarray(compute(v))))

    def spread(self, values: dict[str, Array], name: str, out: str) -> Array:
        """The array of a value with the axes ``out``."""
        axes = self.values[name]
        array = values[name].transpose([axes.index(axis) for axis in out if axis in axes])
        return array.reshape([values["sizes"][axis] if axis in axes else 1 for axis in out])  # type: ignore[index]

    def text(self, results: list[str]) -> str:
        arguments = ", ".join(f"%{v}: {self.type_(self.values[v])}" for v in "xyzw")
        types = ", ".join(self.type_(self.values[v]) for v in results)
        sizes = "\n".join(
            f"%d{n} = arith.constant {n} : index\n%n{axis} = tensor.dim %x, %d{n} : {self.type_('abc')}"
            for n, axis in enumerate("abc")
        )
        returned = f"return {', '.join('%' + v for v in results)} : {types}"
        body = "\n".join([sizes, *self.lines, returned])
        return f"func.func @main({arguments}) -> ({types}) {{\n{body}\n}}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", [None, (5, 9, 31), (1, 13, 6)])
def test_random_loops(seed: int, shape: tuple[int, ...] | None, tmp_path: Path) -> None:
    program = Program(seed, shape)
    for _ in range(7):
        program.add()
    made = [name for name in program.values if name.startswith("v")]
    results = sorted({*program.random.sample(made, 3), made[-1]})
    (tmp_path / "small.toml").write_text(SMALL)
    generator = np.random.default_rng(seed)
    small = devscope.compile(program.text(results), schedules=tmp_path / "small.toml", threads=2)
    for extents in [shape] if shape else SHAPES:
        sizes = dict(zip("abc", extents, strict=True))
        values = {
            name: generator.integers(-4, 5, [sizes[a] for a in program.values[name]]).astype(np.float32)
            for name in "xyzw"
        }
        got = small(*(values[name] for name in "xyzw"))
        values["sizes"] = sizes  # type: ignore[assignment]
        for step in program.steps:
            step(values)
        for name, array in zip(results, got, strict=True):
            np.testing.assert_array_equal(
                array, values[name], err_msg=f"{name} {extents}\n{program.text(results)}"
            )


SPECIAL = """
func.func @main(%x: tensor<7x37xf32>) -> (tensor<7xf32>, tensor<37xf32>, tensor<7xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant -0.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %l = linalg.fill ins(%low : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %f = tensor.empty() : tensor<37xf32>
  %m = linalg.fill ins(%low : f32) outs(%f : tensor<37xf32>) -> tensor<37xf32>
  %0 = linalg.reduce {arith.maximumf} ins(%x : tensor<7x37xf32>) outs(%l : tensor<7xf32>) dimensions = [1]
  %1 = linalg.reduce {arith.maximumf} ins(%x : tensor<7x37xf32>) outs(%m : tensor<37xf32>) dimensions = [0]
  %2 = linalg.reduce {arith.addf} ins(%x : tensor<7x37xf32>) outs(%z : tensor<7xf32>) dimensions = [1]
  return %0, %1, %2 : tensor<7xf32>, tensor<37xf32>, tensor<7xf32>
}
"""


def test_special_numbers() -> None:
    """NaN, infinities and the signs of zeros, in the vectors and behind them."""
    program = devscope.compile(SPECIAL)
    for number in (np.nan, np.inf, -np.inf, 0.0):
        for place in (0, 36):
            x = np.full((7, 37), -0.0, np.float32)
            x[3, place] = number
            rows, columns, sums = program(x)
            for got, wanted in ((rows, x.max(1)), (columns, x.max(0)), (sums, x.sum(1))):
                np.testing.assert_array_equal(got, wanted)
            if number == 0:
                assert np.signbit(rows).tolist() == [row != 3 for row in range(7)]
                assert np.signbit(columns).tolist() == [column != place for column in range(37)]
                assert np.signbit(sums).tolist() == [row != 3 for row in range(7)]


TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32}
TYPES |= {"f64": np.float64}


def test_streamed_results(tmp_path: Path) -> None:
    """Results that go to memory by whole lines: of all types, wherever they begin, beside scalars and indices."""
    (tmp_path / "small.toml").write_text(SMALL.replace("columns = 4", "columns = 100"))
    maps = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>"
    arguments, results, lines = [], [], []
    for name in TYPES:
        matrix, vector = f"tensor<?x?x{name}>", f"tensor<?x{name}>"
        arguments += [f"%x{name}: {matrix}", f"%y{name}: {vector}"]
        results.append(matrix)
        add = f"arith.add{name[0]}"
        cast = "arith.sitofp" if name[0] == "f" else "arith.extsi" if name == "i64" else "arith.trunci"
        number = "%k = arith.addi %j, %j : i32" if name == "i32" else f"%k = {cast} %j : i32 to {name}"
        lines.append(
            f"""%e{name} = tensor.empty(%m, %n) : {matrix}
            %r{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
              ins(%x{name}, %y{name} : {matrix}, {vector}) outs(%e{name} : {matrix}) {{
              ^bb0(%p: {name}, %q: {name}, %o: {name}):
                %i = linalg.index 1 : index
                %j = arith.index_cast %i : index to i32
                {number}
                %s = {add} %p, %q : {name}
                %t = {add} %s, %k : {name}
                linalg.yield %t : {name} }} -> {matrix}"""
        )
    returned = ", ".join(f"%r{name}" for name in TYPES)
    text = f"""func.func @main({", ".join(arguments)}) -> ({", ".join(results)}) {{
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %m = tensor.dim %xi8, %zero : tensor<?x?xi8>
        %n = tensor.dim %xi8, %one : tensor<?x?xi8>
        {" ".join(lines)}
        return {returned} : {", ".join(results)} }}"""
    program = devscope.compile(text, schedules=tmp_path / "small.toml", threads=2)
    generator = np.random.default_rng(0)
    for shape in [(3, 700), (2, 65), (5, 1), (0, 9), (4, 129)]:
        arrays = [generator.integers(-50, 50, s).astype(t) for t in TYPES.values() for s in (shape, shape[:1])]
        # 0 to 63 bytes behind the beginning of a line
        memory = [np.zeros((*shape, t(0).itemsize), np.uint8) for t in TYPES.values()]
        outs = [np.zeros(m.size + 64, np.uint8) for m in memory]
        expected: list[np.ndarray] = []
        views: list[np.ndarray] = []
        for number, (type_, out) in enumerate(zip(TYPES.values(), outs, strict=True)):
            x, y = arrays[2 * number : 2 * number + 2]
            index = 2 * np.arange(shape[1]) if type_ is np.int32 else np.arange(shape[1])
            expected.append(x + y[:, None] + index.astype(type_))
            size = type_(0).itemsize
            begin = size * (number % (64 // size))
            views.append(out[begin : begin + memory[number].size].view(type_).reshape(shape))
        for got in (program(*arrays), program(*arrays, out=views)):
            for array, right in zip(got, expected, strict=True):
                np.testing.assert_array_equal(array, right, err_msg=f"{right.dtype} {shape}")


MOVES = """
func.func @reverse(%x: tensor<600x700xf32>) -> tensor<600x700xf32> {
  %last = arith.constant 699 : index
  %e = tensor.empty() : tensor<600x700xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    outs(%e : tensor<600x700xf32>) {
    ^bb0(%o: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %k = arith.subi %last, %j : index
      %v = tensor.extract %x[%i, %k] : tensor<600x700xf32>
      linalg.yield %v : f32 } -> tensor<600x700xf32>
  return %r : tensor<600x700xf32>
}
func.func @pad(%x: tensor<600x700xf32>) -> tensor<603x705xf32> {
  %seven = arith.constant 7.0 : f32
  %r = tensor.pad %x low[1, 2] high[2, 3] {
    ^bb0(%i: index, %j: index):
      tensor.yield %seven : f32 } : tensor<600x700xf32> to tensor<603x705xf32>
  return %r : tensor<603x705xf32>
}
func.func @insert(%x: tensor<600x700xf32>, %y: tensor<3x4xf32>) -> tensor<600x700xf32> {
  %r = tensor.insert_slice %y into %x[5, 7] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<600x700xf32>
  return %r : tensor<600x700xf32>
}
"""


def test_large_moves() -> None:
    """Operations without inputs, and copies of whole buffers, are work for several threads, too."""
    program = devscope.compile(MOVES, threads=2)
    x = np.random.default_rng(0).standard_normal((600, 700), np.float32)
    y = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(program.run("reverse", x), x[:, ::-1])
    np.testing.assert_array_equal(program.run("pad", x), np.pad(x, ((1, 2), (2, 3)), constant_values=7))
    expected = x.copy()
    expected[5:8, 7:11] = y
    np.testing.assert_array_equal(program.run("insert", x, y), expected)


ORDERED = """
func.func @products(%x: tensor<?x100xf32>, %y: tensor<?x100xf16>, %one: tensor<f32>, %half: tensor<f16>)
    -> (tensor<f32>, tensor<f16>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> ()>],
                       iterator_types = ["reduction", "reduction"]}
    ins(%x : tensor<?x100xf32>) outs(%one : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  %1 = linalg.reduce {arith.mulf} ins(%y : tensor<?x100xf16>) outs(%half : tensor<f16>) dimensions = [0, 1]
  return %0, %1 : tensor<f32>, tensor<f16>
}
func.func @first(%x: tensor<40x100xf32>, %low: tensor<f32>, %where: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
  %0:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> ()>,
                                          affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]}
    ins(%x : tensor<40x100xf32>) outs(%low, %where : tensor<f32>, tensor<i32>) {
  ^bb0(%a: f32, %b: f32, %old: i32):
    %c40 = arith.constant 40 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.muli %i, %c40 : index
    %l = arith.addi %k, %j : index
    %n = arith.index_cast %l : index to i32
    %more = arith.cmpf ogt, %a, %b : f32
    %c = arith.select %more, %a, %b : f32
    %m = arith.select %more, %n, %old : i32
    linalg.yield %c, %m : f32, i32
  } -> (tensor<f32>, tensor<i32>)
  return %0#0, %0#1 : tensor<f32>, tensor<i32>
}
"""


def test_what_depends_on_the_order() -> None:
    """Products that are infinite or 0 on the way, and the first of equal maxima."""
    program = devscope.compile(ORDERED, threads=2)
    rng = np.random.default_rng(0)
    for rows in (1, 7, 3000):
        x, y = (np.exp2(rng.integers(-12, 13, (rows, 100))).astype(dtype) for dtype in (np.float32, np.float16))
        found = program.run("products", x, y, np.float32(1), np.float16(0.5))
        with np.errstate(over="ignore", invalid="ignore"):
            wanted = [
                np.multiply.accumulate(np.append(z.dtype.type(start), z), dtype=z.dtype)[-1]
                for z, start in ((x.T, 1), (y, 0.5))
            ]
        np.testing.assert_array_equal(found, wanted)
    x = rng.integers(0, 3, (40, 100)).astype(np.float32)
    greatest, place = program.run("first", x, np.float32(-1), np.int32(-1))
    assert (greatest, place) == (2, x.T.argmax())


_TWO_PRODUCTS = """
func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>, %c: tensor<?xf32>, %p: tensor<?x?xf32>,
    %q: tensor<?x?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?x?xf32>) {
  %0:2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i)>, affine_map<(i, j, k) -> (j)>,
      affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b, %c : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
      outs(%p, %q : tensor<?x?xf32>, tensor<?x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %old: f32, %older: f32):
    %1 = arith.mulf %y, %z : f32
    %2 = arith.mulf %x, %1 : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<?x?xf32>, tensor<?x?x?xf32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?x?xf32>
}
"""


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0", "cuda:0"])
def test_a_result_that_lacks_a_loop_of_another_one(
    target: str, cuda: Callable[[], AbstractContextManager[object]]
) -> None:
    """Fusing outer products makes such: one of two vectors is made again for each element of a third."""
    context = cuda() if target == "cuda:0" else nullcontext()
    with context, devscope.compile(_TWO_PRODUCTS, default=target, cache=False) as program:
        for shape in [(4, 3, 2), (5, 9, 33), (1, 1, 1), (2, 40, 16), (3, 0, 4)]:
            a, b, c = (np.random.default_rng(n).standard_normal(n).astype(np.float32) for n in shape)
            first, second = program(a, b, c, np.zeros(shape[1:], np.float32), np.zeros(shape, np.float32))
            np.testing.assert_allclose(first, np.outer(b, c), rtol=1e-6)
            np.testing.assert_allclose(second, a[:, None, None] * np.outer(b, c), rtol=1e-6)


_WRITTEN_ONLY = """
func.func @main(%x: tensor<40xi64>, %places: tensor<40xindex>) -> tensor<40xi64> {
  %e = tensor.empty() : tensor<40xi64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %c7 = arith.constant 7 : i64
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> tensor<40xi64> {
    %f:2 = scf.for %j = %c0 to %c40 step %c1 iter_args(%one = %o, %other = %e)
        -> (tensor<40xi64>, tensor<40xi64>) {
      %place = tensor.extract %places[%j] : tensor<40xindex>
      %a = tensor.extract %x[%j] : tensor<40xi64>
      %b = arith.addi %a, %c7 : i64
      %more = tensor.insert %a into %one[%place] : tensor<40xi64>
      %others = tensor.insert %b into %other[%place] : tensor<40xi64>
      scf.yield %more, %others : tensor<40xi64>, tensor<40xi64>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f#0 into %o[0] [40] [1] : tensor<40xi64> into tensor<40xi64>
    }
  }
  return %r : tensor<40xi64>
}
"""


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_what_nothing_reads_is_written_apart(target: str) -> None:
    rng = np.random.default_rng(3)
    x, places = rng.integers(-99, 99, 40), rng.permutation(40)
    want = np.empty_like(x)
    want[places] = x
    with devscope.compile(_WRITTEN_ONLY, default=target, cache=False) as program:
        np.testing.assert_array_equal(program(x, places), want)
