"""Every code block and every command of README and docs does what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import DOCUMENTS, LANGUAGES, ROOT, Block, agrees, blocks, commands

from devscope.analysis.machine import Device, Link, Machine
from devscope.analysis.machine_file import parse_machine
from devscope.analysis.placement_file import parse_placement
from devscope.cli import main, opt
from devscope.dialects import op_facts
from devscope.lowering import target
from devscope.lowering.cpu.kernel_tables import templates, user_rows
from devscope.passes.device_partition.cost_file import parse_costs

KINDS = {template.kind for template in templates().values()}
INPUTS = Path(__file__).parent / "Inputs"
_PAIR = ("cpu:0", "opencl:0")
MACHINE = Machine(
    {name: Device(name, 1e10, 1e10, 1e-6) for name in _PAIR},
    {pair: Link(*pair, 1e10, 1e-6) for pair in (_PAIR, _PAIR[::-1])},
    "cpu:0",
    source="this machine",
)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEVSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def test_every_block_says_what_it_is() -> None:
    wrong = [str(block) for document in DOCUMENTS for block in blocks(document) if block.language not in LANGUAGES]
    assert not wrong, f"fenced, with one of {LANGUAGES} behind ```, and not indented"


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for link, anchor in re.findall(r"\]\((?!https?:)([\w./-]*)(#[\w-]+)?\)", document.read_text()):
            linked = document.parent / link if link else document
            assert linked.exists(), f"{document.name}: {link}"
            if anchor:
                titles = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
                assert anchor[1:] in {re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles}, anchor


def test_readme_names_the_dialect_first() -> None:
    assert re.findall(r"\]\(docs/(\w+\.md)", DOCUMENTS[0].read_text().partition("\nMore: ")[2])[0] == "dialect.md"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.relative_to(ROOT).as_posix())
def test_document(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In one folder, in order; a document that shows no model.mlir means README's."""
    if document.name in ("jax.md", "placing.md"):
        pytest.importorskip("jax")
    if document.name == "torch.md":
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("devscope.measure.measure_machine", lambda: MACHINE)  # it takes long
    monkeypatch.setattr(op_facts, "OPERATIONS", dict(op_facts.OPERATIONS))  # plugins add to these
    monkeypatch.setattr(target, "_registered", {})
    shutil.copytree(INPUTS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = {block.name: block.text for block in blocks(DOCUMENTS[0])}
    (tmp_path / "model.mlir").write_text(shown["model.mlir"])
    found = list(blocks(document))
    names: dict[str, object] = {"__name__": "example"}
    not_run: list[str] = []
    for block, behind in zip(found, [*found[1:], None], strict=False):
        capfd.readouterr()
        if not block.runs:
            continue
        if block.language == "console":
            not_run += run_commands(block, capfd)
        elif block.language == "mlir":
            (tmp_path / (block.name or "block.mlir")).write_text(block.text)
            status = opt.main([block.name or "block.mlir", "--verify-diagnostics"])
            assert status == 0, f"{block}: {capfd.readouterr().err}"
        elif block.language == "toml":
            (tmp_path / (block.name or "block.toml")).write_text(block.text)
            check_toml(block)
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, document, "exec"), names)
            if behind is not None and behind.language == "text":
                out = capfd.readouterr().out
                assert agrees(out, behind.text), f"{behind}: {out}"
    op_facts.facts.cache_clear()
    if not_run:
        pytest.skip(f"all but {', '.join(not_run)}")


def check_toml(block: Block) -> None:
    """Reads the file as what it is, by its keys."""
    keys = tomllib.loads(block.text).keys()
    if keys <= KINDS:
        user_rows(block.text, block.name)
    elif "rule" in keys:
        parse_placement(block.text, block.name)
    elif "cost" in keys:
        parse_costs(block.text, block.name)
    else:
        parse_machine(block.text, block.name)


TOOLS = {"devscope": main.main, "devscope-opt": opt.main}


def run_commands(block: Block, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Returns why the rest of the block did not run, if it did not: a tool that is not there."""
    for command, (tool, *arguments), expected in commands(block.text):
        if tool not in TOOLS and shutil.which(tool) is None:
            return [f"{block}: there is no {tool}"]
        try:
            status = TOOLS[tool](arguments) if tool in TOOLS else subprocess.call(["bash", "-c", command])
        except SystemExit as end:
            status = end.code
        out, err = capfd.readouterr()
        assert (status != 0) == ("error: " in expected), f"{block}: {command}: {err}"
        if expected:
            assert agrees(out + err, expected), f"{block}: {command} prints:\n{out}{err}"
    return []
