"""``--timing``: where the wall time goes."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager


class Timer:
    """Wall time by label, in the order of first use; a repeated label adds up."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, label: str) -> Generator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[label] = self._seconds.get(label, 0.0) + time.perf_counter() - start

    def table(self) -> str:
        """Seconds and share of the total, one line per label."""
        total = sum(self._seconds.values())
        lines = [f"{'seconds':>10}  {'share':>6}  name"]
        for label, seconds in [*self._seconds.items(), ("total", total)]:
            share = seconds / total if total > 0.0 else 0.0
            lines.append(f"{seconds:10.4f}  {share:6.1%}  {label}")
        return "\n".join(lines) + "\n"
