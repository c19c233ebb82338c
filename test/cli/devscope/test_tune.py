"""Schedules that are searched for a program: found, kept, used, shown, removed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_case import Cli, assert_one_error, assert_usage_error

from devscope import tune
from devscope.compile_options import CompileOptions
from devscope.lowering.cpu.kernel_tables import built_in_rows, user_rows
from devscope.lowering.kernels.table import Choice, Row
from devscope.runtime.cache import DiskCache

PRODUCTS = """
func.func @main(%a: tensor<20x30xf32>, %b: tensor<30x40xf32>, %c: tensor<20x40xf32>, %d: tensor<?x40xf32>,
                %e: tensor<?x40xf32>) -> (tensor<20x40xf32>, tensor<?x40xf32>) {
  %r = linalg.matmul ins(%a, %b : tensor<20x30xf32>, tensor<30x40xf32>)
    outs(%c : tensor<20x40xf32>) -> tensor<20x40xf32>
  %f = tensor.empty() : tensor<40x40xf32>
  %t = tensor.extract_slice %f[0, 0] [40, 40] [1, 1] : tensor<40x40xf32> to tensor<40x40xf32>
  %g = arith.constant dense<1.0> : tensor<40x40xf32>
  %s = linalg.matmul ins(%d, %g : tensor<?x40xf32>, tensor<40x40xf32>)
    outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %r, %s : tensor<20x40xf32>, tensor<?x40xf32>
}
"""


@pytest.fixture(autouse=True)
def cache(folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("DEVSCOPE_CACHE_DIR", str(directory))
    (folder / "products.mlir").write_text(PRODUCTS)
    return directory


def ratios(*values: float | type[BaseException]) -> Callable[..., float]:
    """What `ratio_of_times` gives, call by call; the last one from then on."""
    left = list(values)

    def ratio(*_: object) -> float:
        value = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(value, type):
            raise value
        return value

    return ratio


def test_a_search_on_this_machine(cli: Cli) -> None:
    outcome = cli("tune", "products.mlir", "--time-limit", "1", "--size", "3", "-o", "rows.toml")
    assert outcome.status == 0, outcome
    lines = outcome.out.splitlines()
    assert [line.partition(": ")[0] for line in lines[:2]] == ["products.mlir:4:8", "products.mlir:9:8"]
    assert all(re.search(r"nothing faster than|times as fast", line) for line in lines[:2])
    assert len(user_rows(Path("rows.toml").read_text(), "rows.toml")) == outcome.out.count("times as fast")


def test_what_is_found_is_kept_and_used(cli: Cli, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    before = CompileOptions().key()
    monkeypatch.setattr(tune, "ratio_of_times", ratios(1.5, 1.5, 1.0, 1.5))
    monkeypatch.setattr(tune, "_candidates", first_candidates(2))
    outcome = cli("tune", "products.mlir", "--time-limit", "100", "-o", "rows.toml")
    assert outcome.status == 0, outcome
    assert "products.mlir:9:8: linalg.contract, b 1, m ?, n 40, k 40, f32: left out: give --size" in outcome.out
    assert (
        "products.mlir:4:8: linalg.contract, b 1, m 20, n 40, k 30, f32: 1.50 times as fast, 2 tried"
        in outcome.out
    )
    (kept,) = cache.rglob("schedules-*.toml")
    assert f"kept in {kept}" in outcome.out
    assert kept.read_text() == Path("rows.toml").read_text()
    assert "# 1.50 times as fast as " in kept.read_text()
    (row,) = user_rows(kept.read_text(), "kept")
    assert (row.at_least, row.at_most) == (
        {"b": 1, "m": 17, "n": 33, "k": 17},
        {"b": 1, "m": 32, "n": 64, "k": 32},
    )
    assert CompileOptions().key() != before
    shown = cli("lower", "products.mlir", "--stage", "schedule").out
    assert shown.count("(tuned on this machine, contraction 1)") == 1
    shown = cli("lower", "products.mlir", "--stage", "schedule", "--schedules", "rows.toml").out
    assert shown.count("(rows.toml, contraction 1)") == 1
    assert cli("cache", "--clear").status == 0
    assert cli("tune", "--show").out == f"{kept}:\n\n{kept.read_text()}"
    assert cli("tune", "--clear").out == f"{kept}: removed\n"
    assert cli("tune", "--show").out == f"{kept}: nothing was tuned on this machine\n"
    assert CompileOptions().key() == before


def first_candidates(count: int) -> Callable[..., list[Row]]:
    def candidates(path: Sequence[Row], of: tune.SizeClass, *_: object) -> list[Row]:
        numbers = path[0].numbers
        return [of.row("contraction", {**numbers, "tasks": 2 + number}) for number in range(count)]

    return candidates


def test_ctrl_c_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "ratio_of_times", ratios(1.5, 1.5, KeyboardInterrupt, 1.5))
    monkeypatch.setattr(tune, "_candidates", first_candidates(9))
    tuner = tune.Tuner(PRODUCTS, CompileOptions(), {}, 1)
    rng = np.random.default_rng(0)
    shapes = ((20, 30), (30, 40), (20, 40), (3, 40), (3, 40))
    values = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = list(tuner.tune(tuner.classes, lambda executable: executable(*values), 100, Quiet()))
    assert tuner.interrupted
    assert [(each.gain, each.tried, each.row.numbers["tasks"]) for each in found] == [(1.5, 2, 2)]


class Quiet:
    def begin(self, what: str, number: int, count: int) -> None:
        pass

    def tried(self, row: Row, ratio: float | None) -> None:
        pass


STATE = """
ml_program.global private mutable @total(dense<0.0> : tensor<20x40xf32>) : tensor<20x40xf32>
func.func @main(%a: tensor<20x30xf32>, %b: tensor<30x40xf32>) -> tensor<20x40xf32> {
  %c = ml_program.global_load @total : tensor<20x40xf32>
  %r = linalg.matmul ins(%a, %b : tensor<20x30xf32>, tensor<30x40xf32>)
    outs(%c : tensor<20x40xf32>) -> tensor<20x40xf32>
  ml_program.global_store @total = %r : tensor<20x40xf32>
  return %r : tensor<20x40xf32>
}
"""


def test_programs_that_keep_state(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "state.mlir").write_text(STATE)
    monkeypatch.setattr(tune, "ratio_of_times", ratios(1.0))
    monkeypatch.setattr(tune, "_candidates", first_candidates(1))
    outcome = cli("tune", "state.mlir")
    assert "; 1 tried" in outcome.out, outcome


def test_limits_of_time(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "; 0 tried" in cli("tune", "products.mlir", "--time-limit", "0").out
    monkeypatch.setattr(tune, "ratio_of_times", ratios(1.0))
    monkeypatch.setattr(tune, "_candidates", first_candidates(1))
    assert "; 1 tried" in cli("tune", "products.mlir", "--time-limit", "9" * 400).out


def test_what_two_searches_find_at_the_same_time_is_kept(cache: Path) -> None:
    store = DiskCache(cache)
    began = threading.Event()

    def slowly(old: str) -> str:
        began.set()
        time.sleep(0.1)
        return f"{old}one "

    first = threading.Thread(target=store.update_schedules, args=(slowly,))
    first.start()
    began.wait()
    store.update_schedules(lambda old: f"{old}two")
    first.join()
    assert store.load_schedules() == "one two"


def test_rows_that_compute_something_else_are_not_taken(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setattr(tune, "agree", lambda *_: False)
    monkeypatch.setattr(tune, "_candidates", first_candidates(1))
    outcome = cli("tune", "products.mlir", "--time-limit", "100")
    assert "nothing faster than" in outcome.out
    assert "not taken: contraction with rows" in outcome.err
    assert "other results" in outcome.err


def test_what_is_no_row_is_left_out_with_a_warning(cli: Cli, cache: Path) -> None:
    from devscope.runtime.cache import open_cache

    store = open_cache()
    assert store is not None
    store.update_schedules(lambda old: old + "[[contraction]]\n")
    assert store.load_schedules() == "[[contraction]]\n"
    outcome = cli("lower", "products.mlir", "--stage", "schedule")
    assert outcome.status == 0, outcome
    said = "warning: tuned schedules are not used: tuned on this machine: contraction 1: template"
    assert said in outcome.err, outcome


def test_errors(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_usage_error(cli("tune"), "error: a program is missing", "--show")
    assert_usage_error(cli("tune", "products.mlir", "--show"), "error: --show does not go with a program")
    Path("sum.mlir").write_text("func.func @main(%x: f32) -> f32 {\n  return %x : f32\n}\n")
    outcome = cli("tune", "sum.mlir")
    assert outcome.err == "error: the program has no kernels: there is nothing to tune\n"
    Path("sum.mlir").unlink()
    Path("rows.toml").write_text("[[contraction]]\n")
    outcome = cli("run", "products.mlir", "--schedules", "rows.toml", "--random", "0")
    Path("rows.toml").unlink()
    assert_one_error(outcome, "error: rows.toml: contraction 1: template is missing")
    monkeypatch.setenv("DEVSCOPE_CACHE_DIR", "/proc/none")
    assert_one_error(cli("tune", "products.mlir"), "error: cannot write '/proc/none/v2'", "DEVSCOPE_CACHE_DIR")
    monkeypatch.setenv("DEVSCOPE_CACHE_DIR", "off")
    assert_usage_error(cli("tune", "products.mlir"), "error: the cache is off", "--output")
    assert_usage_error(cli("tune", "--show"), "error: the cache is off")


def test_classes_and_candidates() -> None:
    row = next(row for row in built_in_rows("avx2") if row.template == "narrow" and row.element == "f32")
    location: Any = Location()
    sizes = [
        {"m": 3, "n": 1000, "k": None},
        {"m": 4, "n": 600, "k": None},
        {"m": 5, "n": 1000, "k": None},
        {"m": 0},
    ]
    chosen = [Choice(location, "linalg.contract", "contraction", "f32", size, "n", row) for size in sizes]
    few, more = sorted(tune.size_classes(chosen, "avx2"), key=lambda each: each.pattern.at_most["m"])
    assert (few.pattern.at_least, few.pattern.at_most) == ({"m": 3, "n": 513}, {"m": 4, "n": 1024})
    assert (few.pattern.dynamic, few.dynamic, few.pattern.instructions) == (["k"], True, "avx2")
    assert (more.pattern.at_least["m"], more.pattern.at_most["m"]) == (5, 8)


@pytest.mark.parametrize("kind", ["contraction", "convolution"])
def test_what_has_instructions_of_its_own_keeps_them(kind: str) -> None:
    row = next(row for row in built_in_rows("avx512") if (row.kind, row.element) == (kind, "bf16"))
    sizes = {"m": 64, "n": 64, "k": 64} if kind == "contraction" else {"pixels": 64, "filters": 64, "sums": 64}
    (found,) = tune.size_classes([Choice(Location(), kind, kind, "f32", sizes, None, row)], "avx512")
    assert (found.pattern.element, found.pattern.instructions) == ("bf16", "avx512_bf16")
    assert found.row(row.template, row.numbers).numbers == row.numbers
    assert row in built_in_rows(found.table)


class Location:
    """Of no operation."""

    typeid = None
