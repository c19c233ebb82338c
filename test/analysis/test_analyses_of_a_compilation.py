"""How often each analysis is computed for one program, from parsing to the split module: deterministic counts.

Before there was a manager, a program such as these met 8 to 15 scope analyses and 14 to 18 tables of symbols.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from devscope import pipeline
from devscope.analysis.call_graph import CallGraph
from devscope.analysis.effects import Effects
from devscope.analysis.function_values import FunctionValues
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import Symbols
from devscope.api import CompileOptions

PROGRAMS = Path(__file__).parents[1] / "e2e" / "programs"
MOST = {Symbols: 9, ScopeAnalysis: 7, CallGraph: 5, FunctionValues: 4, Effects: 1}


class _Split(Exception):
    """The module is split: what follows works on the parts of it, one by one."""


def stop(*_: object) -> None:
    raise _Split


@pytest.mark.parametrize("name", ["own_kernels", "calls_on_two_devices", "calls_in_kernels", "for_mixed_body"])
def test_analyses_are_kept_between_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[type] = Counter()
    for analysis in MOST:
        monkeypatch.setattr(analysis, "__init__", counted(analysis, counts))
    text = (PROGRAMS / f"{name}.mlir").read_text(encoding="utf-8")
    monkeypatch.setattr(pipeline, "compile_split_module", stop)
    with pytest.raises(_Split):
        pipeline.compile_source(text, CompileOptions("opencl:0"))
    assert not {a.__name__: counts[a] for a, most in MOST.items() if counts[a] > most}


def counted(analysis: type, counts: Counter[type]) -> object:
    original = analysis.__init__

    def init(self: object, *args: object, **options: object) -> None:
        counts[analysis] += 1
        original(self, *args, **options)

    return init
