"""The tables of schedules, and the files of rows that users write."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.compile_options import CompileOptions
from devscope.errors import OptionError
from devscope.lowering.cpu.kernel_tables import (
    DEVICES,
    FOLDER,
    INSTRUCTIONS,
    OPENCL_CPU,
    built_in_rows,
    templates,
    user_rows,
)
from devscope.lowering.gpu import kernel_tables as gpu
from devscope.lowering.kernels.row_file import row_toml, rows_text
from devscope.lowering.kernels.table import Row, Schedules, read_table
from devscope.lowering.kernels.templates import read_templates
from devscope.pipeline import compile_source


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_built_in_rows_are_legal(instructions: str) -> None:
    path = FOLDER / f"{instructions}.toml"
    assert user_rows(path.read_text(), path.name) == built_in_rows(instructions)


def test_rows_for_devices_are_legal() -> None:
    for path in (FOLDER.parent.parent / "opencl" / "kernels" / "cpu.toml", gpu.FOLDER / "gpu.toml"):
        assert user_rows(path.read_text(), path.name) == read_table(path)


def test_every_template_is_described() -> None:
    helpers = {"image_words", "pack", "pack_lines"}  # what templates call
    without = {"nests", "planes", "turned"}  # no text: made of the program's own operations, or of another's text
    of_host = set(read_templates(FOLDER / "templates.toml"))
    assert {path.stem for path in FOLDER.glob("*.mlir")} - helpers == of_host - without
    used = {row.template for name in (*INSTRUCTIONS, *DEVICES) for row in built_in_rows(name)}
    assert used == set(templates())


@pytest.mark.parametrize(
    ("m", "n", "rows"), [(32, 784, 16), (96, 196, 16), (384, 768, 6), (64, 3136, 6), (None, 784, 6)]
)
def test_a_row_that_saves_is_compared_with_the_next(m: int | None, n: int, rows: int) -> None:
    """Blocks of 16 x 16 with those of 6 x 64, of 4 per cent more sums or fewer."""
    small, large = (
        Row("contraction", "contraction", "f32", {"rows": a, "columns": b}, saves=c)
        for a, b, c in ((16, 16, 4), (6, 64, 0))
    )
    found = Schedules([small, large], "avx512").find("contraction", "f32", {"m": m, "n": n}, None)
    assert found is not None
    assert found.numbers["rows"] == rows


@pytest.mark.parametrize(
    ("m", "n", "template"), [(960, 49, "turned"), (40, 49, "contraction"), (960, 64, "contraction")]
)
def test_a_row_of_turned_blocks_is_compared(m: int, n: int, template: str) -> None:
    """Blocks of 32 rows x 8 columns with those of 16 x 16, of 10 per cent more sums or fewer."""
    rows = [
        Row("contraction", name, "f32", {"rows": a, "columns": b}, saves=c)
        for name, a, b, c in (("turned", 8, 32, 10), ("contraction", 16, 16, 0))
    ]
    for schedules in (Schedules(rows, "avx512"), Schedules(rows, "opencl-cpu")):
        found = schedules.find("contraction", "f32", {"m": m, "n": n}, None)
        assert found is not None
        assert found.template == template
        other = schedules.find("contraction", "f32", {"m": m, "n": n}, None, without="turned")
        assert other is rows[1]


def test_rows_are_written_as_they_are_read() -> None:
    row = Row(
        "contraction",
        "dots",
        "f32",
        {"rows": 2, "columns": 4, "lanes": 8, "depth": 8, "part_rows": 4, "part_columns": 64},
        {"m": 4},
        {"n": 5},
        ["k"],
        "k",
        "avx2",
        5,
    )
    (again,) = user_rows(row_toml(row, "why\nso\x01\r\x7f"), "a.toml")
    assert again == Row(**{**vars(row), "place": "a.toml, contraction 1"})


def numbers(text: str) -> str:
    return f"{{ rows = 2, depth = 8, part_rows = 4, {text} }}"


DOTS = {
    "template": '"dots"',
    "element": '"f32"',
    "contiguous": '"k"',
    "numbers": numbers("columns = 4, lanes = 8, part_columns = 64"),
}

WRONG = [
    ({"template": '"none"'}, 'contraction 1: template is "none"'),
    ({"template": None}, "contraction 1: template is missing"),
    ({"element": '"f8"'}, 'contraction 1: element is "f8"'),
    ({"element": "3"}, "contraction 1: element is 3"),
    ({"extra": "3"}, "contraction 1: unknown key extra"),
    ({"contiguous": '"m"'}, 'contraction 1: contiguous is "m"'),
    ({"contiguous": '"k, m"'}, 'contraction 1: contiguous is "k, m"'),
    ({"template": '"narrow"'}, 'contraction 1: template "narrow" needs contiguous = "n"'),
    ({"template": '"narrow"', "contiguous": '"n"'}, 'template "narrow" needs at_most.m, of 16 or less'),
    ({"instructions": '"mmx"'}, 'contraction 1: instructions is "mmx"'),
    ({"numbers": "3"}, "contraction 1: numbers must be a table, not 3"),
    (
        {"numbers": numbers("columns = 4, lanes = 8")},
        "contraction 1: numbers.part_columns is missing",
    ),
    (
        {"numbers": numbers("columns = 4, lanes = 8, part_columns = 64, q = 1")},
        "unknown key numbers.q",
    ),
    (
        {"numbers": numbers("columns = 0, lanes = 8, part_columns = 64")},
        "numbers.columns must be a whole number from 1 to",
    ),
    (
        {"numbers": numbers("columns = true, lanes = 8, part_columns = 64")},
        "numbers.columns must be a whole number",
    ),
    (
        {"numbers": numbers("columns = 4.0, lanes = 8, part_columns = 64")},
        "numbers.columns must be a whole number",
    ),
    (
        {"numbers": numbers("columns = 4, lanes = 8, part_columns = 66")},
        "numbers.part_columns must be a multiple of columns, 4, not 66",
    ),
    ({"at_most": "{ x = 4 }"}, "unknown key at_most.x"),
    ({"at_most": "[4]"}, "at_most must be a table"),
    ({"at_least": "{ m = -1 }"}, "at_least.m must be a whole number"),
    ({"at_least": "{ m = 5 }", "at_most": "{ m = 4 }"}, "no size of m is at least 5 and at most 4"),
    ({"at_least": "{ m = 5 }", "dynamic": '["m"]'}, "the size of m cannot be both dynamic and known"),
    ({"saves": "0"}, "contraction 1: saves must be a whole number from 1 to 99, not 0"),
    ({"constant": "1"}, "contraction 1: constant must be true or false, not 1"),
    ({"dynamic": '["x"]'}, 'dynamic is "x"'),
    ({"dynamic": '"m"'}, "dynamic must be a list of loops"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_rows(changes: dict[str, str | None], message: str) -> None:
    row = {key: value for key, value in {**DOTS, **changes}.items() if value is not None}
    text = "\n".join(["[[contraction]]", *(f"{key} = {value}" for key, value in row.items())])
    with pytest.raises(OptionError, match=re.escape(message)) as caught:
        user_rows(text, "some/rows.toml")
    assert caught.value.message.startswith("some/rows.toml: contraction 1: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[product]]", "rows.toml: product: no kernel computes that"),
        ("contraction = 3", "rows.toml: contraction: must be rows, each below [[contraction]]"),
        ("contraction = [3]", "rows.toml: contraction 1: must be a table"),
        ("[[contraction]", "rows.toml:1:14: error: "),
        ("a = " + "[" * 100_000, "rows.toml:1:1: error: brackets are nested too deeply"),
    ],
)
def test_wrong_files(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        user_rows(text, "rows.toml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"instructions": "avx512"}, 'element bf16 needs instructions = "avx512_bf16"'),
        ({"columns": 24, "part_columns": 48}, "numbers.columns must be a multiple of 16 for bf16"),
        ({"depth": 3}, "numbers.depth must be a multiple of 2 for bf16"),
        (
            {"element": "i8", "instructions": "avx512_vnni", "steps": 6},
            "numbers.steps must be a multiple of 4 for i8",
        ),
    ],
)
def test_rows_that_no_kernel_of_words_can_be_made_with(changes: dict[str, Any], message: str) -> None:
    row = next(row for row in built_in_rows("avx512") if row.element == "bf16")
    numbers = {name: changes.get(name, number) for name, number in row.numbers.items()}
    numbers["most_columns"] = 16 * numbers["columns"]
    others = {name: changes[name] for name in ("element", "instructions") if name in changes}
    with pytest.raises(OptionError, match=re.escape(f"contraction 1: {message}")):
        user_rows(row_toml(replace(row, numbers=numbers, **others)), "rows.toml")


def test_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    for path, message in (
        (tmp_path, "Is a directory"),
        (tmp_path / "no", "No such file"),
        (tmp_path / "latin.toml", "not UTF-8"),
    ):
        with pytest.raises(OptionError, match=message):
            rows_text(str(path))


def test_conditions_of_rows() -> None:
    row = Row("contraction", "t", "f32", {}, {"m": 8}, {"m": 5}, ["n"], "k")
    assert row.holds("f32", {"m": 5, "n": None}, "k")
    assert row.holds("f32", {"m": 8, "n": None}, "k")
    for element, m, n, contiguous in (
        ("f64", 5, None, "k"),
        ("f32", 4, None, "k"),
        ("f32", 9, None, "k"),
        ("f32", None, None, "k"),
        ("f32", 5, 1, "k"),
        ("f32", 5, None, "n"),
    ):
        assert not row.holds(element, {"m": m, "n": n}, contiguous)
    of_constants = Row("contraction", "t", "f32", {}, constant=True)
    assert of_constants.holds("f32", {}, None, constant=True)
    assert not of_constants.holds("f32", {}, None)
    assert "\nconstant = true\n" in row_toml(of_constants)


def test_rows_for_other_instructions_are_left_out() -> None:
    rows = [Row("contraction", "t", "f32", {}, instructions=name) for name in (None, "avx2", "avx512")]
    assert Schedules(rows, "avx2").rows == rows[:2]


PRODUCT = """
func.func @main(%a: tensor<40x50xf32>, %b: tensor<50x60xf32>, %c: tensor<40x60xf32>) -> tensor<40x60xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<40x50xf32>, tensor<50x60xf32>)
    outs(%c : tensor<40x60xf32>) -> tensor<40x60xf32>
  return %r : tensor<40x60xf32>
}
"""


def test_rows_of_a_file_come_first(tmp_path: Path) -> None:
    """In the report, in the result and in the key of the cache; the file is read once."""
    (row,) = [row for row in built_in_rows("other") if row.template == "contraction" and row.element == "f32"][:1]
    path = tmp_path / "rows.toml"
    path.write_text(row_toml(row))
    options = CompileOptions(schedules=path)
    path.unlink()
    texts: list[str] = []
    compile_source(PRODUCT, options, lambda stage, seen: texts.append(str(seen)) if stage == "schedule" else None)
    assert "(rows.toml, contraction 1)" in texts[0]
    assert options.key() != CompileOptions().key()
    assert options.to_json()["schedules"] == str(path)
    path.write_text(row_toml(row))
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, 50), (50, 60), (40, 60)))
    with devscope.compile(PRODUCT, schedules=path, cache=False) as executable:
        np.testing.assert_allclose(executable(a, b, c), c + a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lanes", [1, 13])
def test_lines_that_are_packed_one_by_one(lanes: int, tmp_path: Path) -> None:
    numbers = {"rows": 2, "columns": 2, "lanes": lanes, "depth": 8, "part_rows": 32, "part_columns": 64}
    path = tmp_path / "rows.toml"
    path.write_text(row_toml(Row("contraction", "dots", "f32", numbers)))
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((40, 50), (50, 60), (40, 60)))
    with devscope.compile(PRODUCT, schedules=path, cache=False) as executable:
        np.testing.assert_array_equal(executable(a, b, c), c + a @ b)


def test_options_are_checked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.toml"
    path.write_text("[[contraction]]\n")
    with pytest.raises(OptionError, match=re.escape(f"{path}: contraction 1: template is missing")):
        CompileOptions(schedules=path)
    with pytest.raises(OptionError, match="'schedules' is 3, which is no path"):
        CompileOptions(schedules=3)  # pyright: ignore[reportArgumentType]


def test_every_number_is_documented() -> None:
    document = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text()
    for name, template in templates().items():
        section = document.partition(f"\nTemplate `{name}`: ")[2].partition("\nTemplate ")[0].partition("\n#")[0]
        cells = {
            number for row in re.findall(r"^\| (`.*?) \|", section, re.M) for number in re.findall(r"`(\w+)`", row)
        }
        assert cells == set(template.numbers), name


ODD = """
func.func @main(%a: tensor<131x150xf32>, %b: tensor<150x101xf32>, %x: tensor<3x150xf32>, %bt: tensor<101x150xf32>,
                %c: tensor<131x101xf32>, %y: tensor<3x101xf32>, %z: tensor<3x101xf32>)
    -> (tensor<131x101xf32>, tensor<3x101xf32>, tensor<3x101xf32>) {
  %0 = linalg.matmul ins(%a, %b : tensor<131x150xf32>, tensor<150x101xf32>)
    outs(%c : tensor<131x101xf32>) -> tensor<131x101xf32>
  %1 = linalg.matmul ins(%x, %b : tensor<3x150xf32>, tensor<150x101xf32>)
    outs(%y : tensor<3x101xf32>) -> tensor<3x101xf32>
  %2 = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %bt : tensor<3x150xf32>, tensor<101x150xf32>) outs(%z : tensor<3x101xf32>) -> tensor<3x101xf32>
  return %0, %1, %2 : tensor<131x101xf32>, tensor<3x101xf32>, tensor<3x101xf32>
}
"""


def test_every_legal_number_computes_the_same(tmp_path: Path) -> None:
    """Numbers that divide neither sizes nor each other, where a template does not need that."""
    rows: list[Row] = []
    for name in ("narrow", "dots", "contraction"):
        template = templates()[name]
        numbers = {
            number: min(max(legal.least, value), legal.most)
            for (number, legal), value in zip(
                template.numbers.items(), (5, 7, 3, 37, 3, 11, 2, 5) * 3, strict=False
            )
        }
        for number, legal in template.numbers.items():
            if legal.multiple_of:
                numbers[number] = 3 * numbers[legal.multiple_of]
        at_most = {"m": 4} if name != "contraction" else {}
        rows.append(Row("contraction", name, "f32", numbers, at_most, contiguous=template.must.contiguous))
    path = tmp_path / "odd.toml"
    path.write_text("\n".join(map(row_toml, rows)))
    texts: list[str] = []
    options = CompileOptions(schedules=path)
    compile_source(ODD, options, lambda stage, seen: texts.append(str(seen)) if stage == "schedule" else None)
    assert all(f"(odd.toml, contraction {number})" in texts[0] for number in (1, 2, 3)), texts[0]
    rng = np.random.default_rng(0)
    shapes = ((131, 150), (150, 101), (3, 150), (101, 150), (131, 101), (3, 101), (3, 101))
    a, b, x, bt, c, y, z = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    with devscope.compile(ODD, schedules=path, cache=False) as executable:
        for result, expected in zip(
            executable(a, b, x, bt, c, y, z), (c + a @ b, y + x @ b, z + x @ bt.T), strict=True
        ):
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("turned", ["", "a", "b"])
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_columns_that_tasks_pack_themselves(turned: str, element: str, tmp_path: Path) -> None:
    """On their stacks: several parts of k, and columns that fill neither the last panel nor the last task."""
    numbers = {name: legal.default or legal.least for name, legal in templates()["contraction"].numbers.items()}
    numbers |= {"rows": 3, "columns": 4, "block_rows": 66, "steps": 24, "depth": 8, "wide": 4, "part_columns": 12}
    numbers |= {"most_rows": 66, "most_columns": 4, "many_rows": 512, "tasks": 5, "stack": 8192}
    path = tmp_path / "stack.toml"
    path.write_text(row_toml(Row("contraction", "contraction", "f32", numbers)))
    shapes = {"a": (2, 40, 70), "b": (2, 70, 53)}
    shapes |= {name: (shape[0], *shape[:0:-1]) for name, shape in shapes.items() if name in turned}
    a, b, c = (f"tensor<{'x'.join(map(str, shape))}x{element}>" for shape in (*shapes.values(), (2, 40, 53)))
    maps = ["(b, m, k)" if turned != "a" else "(b, k, m)", "(b, k, n)" if turned != "b" else "(b, n, k)"]
    every = ", ".join(f"affine_map<(b, m, n, k) -> {one}>" for one in (*maps, "(b, m, n)"))
    text = f"""
func.func @main(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %0 = linalg.contract indexing_maps = [{every}] ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  return %0 : {c}
}}"""
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, shape).astype(element.replace("f", "float")) for shape in shapes.values()]
    start = rng.integers(-3, 4, (2, 40, 53)).astype(arrays[0].dtype)
    x, y = (v.swapaxes(1, 2) if name in turned else v for name, v in zip(shapes, arrays, strict=True))
    with devscope.compile(text, schedules=path, cache=False) as executable:
        np.testing.assert_array_equal(executable(*arrays, start), start + x @ y)


@pytest.mark.parametrize(
    ("element", "dtype", "numbers"),
    [
        ("f64", np.float64, {"columns": 32}),
        ("i64", np.int64, {"columns": 32}),
        ("f32", np.float32, {"depth": 3, "a_in_place": 0}),
        ("f32", np.float32, {"rows": 7, "block_rows": 7, "most_rows": 7, "a_in_place": 0}),
    ],
)
def test_rows_on_a_device(element: str, dtype: type, numbers: dict[str, int], tmp_path: Path) -> None:
    """Of elements of 64 bits, a vector of so many columns is wider than any register; odd numbers leave single
    elements beside vectors."""
    rows = [row for row in built_in_rows("opencl-cpu") if (row.template, row.element) == ("contraction", element)]
    path = tmp_path / "rows.toml"
    path.write_text(row_toml(replace(rows[-1], instructions=OPENCL_CPU, numbers={**rows[-1].numbers, **numbers})))
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((40, 50), (50, 60), (40, 60)))
    with devscope.compile(
        PRODUCT.replace("f32", element), default="opencl:0", schedules=path, cache=False
    ) as executable:
        np.testing.assert_array_equal(executable(a, b, c), c + a @ b)


TILES = "rows = 32, columns = 32, depth = 8, thread_rows = 4, thread_columns = 2"
WRONG_TILES = {
    TILES.replace("32, d", "48, d"): "numbers.columns must be a power of two, not 48",
    TILES.replace("rows = 4, thread_columns = 2", "rows = 16, thread_columns = 8"): "a workgroup of 8 work-items",
    TILES.replace("depth = 8", "depth = 64").replace("32", "64"): "the tiles take more than 49152 bytes",
    TILES.replace("depth = 8", "depth = 1"): "128 work-items cannot share the elements of a tile",
}


def tiles(numbers: str) -> str:
    return f'[[tiles]]\ntemplate = "tiles"\nelement = "f32"\ninstructions = "gpu"\nnumbers = {{ {numbers} }}\n'


@pytest.mark.parametrize("numbers", WRONG_TILES)
def test_numbers_that_no_kernel_of_a_gpu_can_be_made_with(numbers: str) -> None:
    with pytest.raises(OptionError, match=re.escape(f"a.toml: tiles 1: {WRONG_TILES[numbers]}")):
        user_rows(tiles(numbers), "a.toml")


def test_tasks_of_devices_have_no_stack() -> None:
    row, *_ = [row for row in built_in_rows("avx2") if row.template == "window" and row.element == "f32"]
    with pytest.raises(OptionError, match=r"a\.toml: window 1: numbers\.stack must be 0 on OpenCL devices"):
        user_rows(row_toml(replace(row, instructions="opencl-cpu-32")), "a.toml")


def test_rows_for_gpus_come_first(tmp_path: Path) -> None:
    """On devices of OpenCL and of CUDA; the host's do not get them."""
    path = tmp_path / "rows.toml"
    path.write_text(tiles(TILES))
    shown: dict[str, str] = {}
    for device, type_ in (("opencl", '{type = "gpu"}'), ("cuda", "{}"), ("cpu", "{}")):
        scope = f'#device.scope<"{device}", 0 : i64, #device.target<"{device}", {type_}>, "">'
        program = PRODUCT.replace("linalg.matmul ins", f"linalg.matmul {{device.scope = {scope}}} ins")
        assert program != PRODUCT
        seen: list[tuple[str, str]] = []
        record = partial(_record, seen)
        compile_source(program, CompileOptions(schedules=path), record)
        shown[device] = "".join(text for stage, text in seen if stage == "schedule")
    taken = [device for device, text in shown.items() if "(rows.toml, tiles 1)" in text]
    assert taken == ["opencl", "cuda"], shown


def _record(seen: list[tuple[str, str]], stage: str, payload: object) -> None:
    seen.append((stage, str(payload)))
