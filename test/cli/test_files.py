"""Output files appear whole or not at all; modules of a split file keep their line numbers."""

import os
from pathlib import Path

import pytest

from devscope.cli.files import read_input, split_text, write_output
from devscope.errors import InputError


def test_write_and_replace(tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    write_output(str(target), "one\n")
    target.chmod(0o640)
    write_output(str(target), b"two\n")
    assert target.read_text() == "two\n"
    assert target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["out.mlir"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_output(str(link), "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_special_files_are_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_output(str(pipe), "text")
    assert os.read(reader, 8) == b"text"
    assert pipe.is_fifo()
    os.close(reader)
    reader, writer = os.pipe()  # as that of /dev/stdout, which is a link to what has no path
    write_output(f"/dev/fd/{writer}", "text")
    assert os.read(reader, 8) == b"text"
    os.close(reader)
    os.close(writer)


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write '.*absent/out': No such file or directory"):
        write_output(str(tmp_path / "absent" / "out"), "text")
    with pytest.raises(InputError, match=r"cannot write '.*': Is a directory"):
        write_output(str(tmp_path), "text")
    with pytest.raises(InputError, match=r"cannot write '.*': embedded null"):
        write_output("a\0b", "text")
    with pytest.raises(InputError, match=r"cannot read '.*absent': No such file or directory"):
        read_input(str(tmp_path / "absent"))


def test_split_keeps_line_numbers() -> None:
    text = "a\n// -----\nb\n\n  // ----- \nc // -----\n// -----// IR Dump //----- //\n"
    chunks = split_text(text)
    assert [chunk.strip("\n") for chunk in chunks] == ["a", "b", "c // -----\n// -----// IR Dump //----- //"]
    lines = text.split("\n")
    for chunk in chunks:
        for number, line in enumerate(chunk.split("\n")):
            assert line in ("", lines[number])


@pytest.mark.parametrize("text", ["", "x", "x\n"])
def test_one_part(text: str) -> None:
    assert split_text(text) == [text]
