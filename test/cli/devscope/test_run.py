"""``devscope run`` and ``build`` where all is well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli_case import SCOPES, TANH, Cli

X = np.array([0.0, 0.5, -1.0, 2.0], np.float32)


def test_result_of_an_input_file(cli: Cli, folder: Path) -> None:
    np.save(folder / "x.npy", X)
    outcome = cli("run", "tanh.mlir", "--input", "x.npy", "--output", "out.npz", "--check")
    assert (outcome.status, outcome.err, outcome.files) == (0, "", ["out.npz"])
    lines = outcome.out.splitlines()
    assert lines[0] == "result0: 4xf32"
    assert lines[-1].startswith("check: result0 agrees with the host")
    with np.load(folder / "out.npz") as saved:
        assert list(saved) == ["result0"]
        np.testing.assert_allclose(saved["result0"], np.tanh(X), rtol=1e-5)


def test_a_big_endian_file_is_read(cli: Cli, folder: Path) -> None:
    np.save(folder / "x.npy", X.astype(">f4"))
    assert cli("run", "tanh.mlir", "--input", "x.npy").status == 0


def test_random_inputs_are_the_same_every_time(cli: Cli) -> None:
    first = cli("run", "tanh.mlir", "--random", "7")
    assert first.status == 0
    assert cli("run", "tanh.mlir", "--random", "7", "--no-cache").out == first.out
    assert cli("run", "tanh.mlir", "--random", "8").out != first.out


def test_build_then_run(cli: Cli) -> None:
    assert cli("build", "tanh.mlir").files == ["tanh.dsx"]
    built = cli("run", "tanh.dsx", "--random", "7", "--devices", "opencl:0=opencl:0")
    assert (built.status, built.out) == (0, cli("run", "tanh.mlir", "--random", "7").out)


@pytest.mark.parametrize("physical", ["opencl:0", "cpu:0"])
def test_devices_are_mapped(cli: Cli, folder: Path, physical: str) -> None:
    (folder / "cuda.mlir").write_text(TANH.replace('"opencl", 0', '"cuda", 3'))
    outcome = cli("run", "cuda.mlir", "--random", "0", "--devices", f" cuda:3 = {physical},", "--check")
    assert (outcome.status, outcome.err) == (0, "")


def test_an_entry_is_chosen(cli: Cli, folder: Path) -> None:
    twice = TANH + TANH.replace(SCOPES, "").replace("@main", "@other").replace("math.tanh", "math.absf")
    (folder / "two.mlir").write_text(twice)
    assert cli("run", "two.mlir", "--random", "0").out == cli("run", "tanh.mlir", "--random", "0").out
    assert cli("run", "two.mlir", "--random", "0", "--entry", "other", "--check").status == 0


def test_every_dtype_is_made_and_checked(cli: Cli, folder: Path) -> None:
    dtypes = ["i1", "i8", "i16", "i32", "i64", "index", "f16", "bf16", "f32", "f64"]
    types = [text for dtype in dtypes for text in (f"tensor<?x2x{dtype}>", dtype)]
    arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(types))
    values = ", ".join(f"%a{number}" for number in range(len(types)))
    (folder / "all.mlir").write_text(
        f"func.func @main({arguments}) -> ({', '.join(types)}) {{\n  return {values} : {', '.join(types)}\n}}\n"
    )
    outcome = cli("run", "all.mlir", "--random", "1", "--size", "3", "--check", "--output", "all.npz")
    assert (outcome.status, outcome.err) == (0, "")
    assert "check: nothing runs on a device: this compares the host's code with itself" in outcome.out
    shown = [line.partition(": ")[2] for line in outcome.out.splitlines() if line.startswith("result")]
    assert shown == [text for dtype in dtypes for text in (f"3x2x{dtype}", dtype)]
    with np.load(folder / "all.npz") as saved:
        assert saved["result14"].dtype == np.uint16  # the bits of bf16
        assert saved["result12"].dtype == np.float16


def test_a_program_without_arguments_and_one_without_results(cli: Cli, folder: Path) -> None:
    (folder / "a.mlir").write_text(
        "func.func @main() -> i32 {\n  %0 = arith.constant 3 : i32\n  return %0 : i32\n}\n"
    )
    assert cli("run", "a.mlir").out == "result0: i32\n3\n"
    (folder / "b.mlir").write_text("func.func @main(%x: f32) {\n  return\n}\n")
    outcome = cli("run", "b.mlir", "--random", "0", "--check")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


@pytest.mark.parametrize("name", ["with blank.mlir", "größe ∑.mlir", "-dash.mlir", "no_suffix", "a=b,c.mlir"])
def test_file_names(cli: Cli, folder: Path, name: str) -> None:
    (folder / name).write_text(TANH)
    assert cli("run", f"./{name}", "--random", "0").status == 0


@pytest.mark.parametrize(
    "text",
    [
        TANH.replace("\n", "\r\n"),
        "// größer als ∑\n" + TANH,
        TANH.replace("@main", '@"größe ∑"'),
        TANH.replace("@main", '@"a \\"b\\" \\\\"'),
        # Names of the C library and of the runtime: compiled functions have others.
        TANH.replace("@main", "@malloc"),
        TANH.replace("@main", "@tanhf").replace("#dev}", "#host}"),
        TANH.replace("@main", "@devscope_host_buffer"),
    ],
    ids=["CRLF", "UTF-8 comment", "UTF-8 name", "quoted name", "malloc", "tanhf", "runtime's name"],
)
def test_texts_and_names(cli: Cli, folder: Path, text: str) -> None:
    (folder / "text.mlir").write_bytes(text.encode())
    outcome = cli("run", "text.mlir", "--random", "0", "--check")
    assert (outcome.status, outcome.err) == (0, "")


def test_a_wrong_result_is_an_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    import devscope.cli.arrays

    monkeypatch.setattr(devscope.cli.arrays, "TOLERANCE", {"f32": -1.0})
    outcome = cli("run", "tanh.mlir", "--random", "0", "--check")
    assert outcome.status == 1
    assert "check: result0 DIFFERS from the host" in outcome.out
    assert outcome.err == "error: result0: not what the host computes\n"
