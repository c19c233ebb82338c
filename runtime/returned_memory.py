"""Memory of results on its way back into the program that made it."""

from __future__ import annotations

from typing import Any

from devscope.runtime.arrays import free_memory
from devscope.runtime.native.layout import RETURNED_BLOCKS


class ReturnedMemory:
    """Blocks of results whose arrays are gone; the next call of the program uses them again.

    Arrays go away in any thread and at any time, also while a call runs and after the executable was closed: the
    list is only touched by single operations, which the interpreter does not interrupt.
    """

    def __init__(self) -> None:
        self._blocks: list[int] = []
        self._open = True

    def give(self, block: int, most: int = RETURNED_BLOCKS) -> None:
        """Takes a block over."""
        self._blocks.append(block)
        if not self._open:
            self._free(0)
        elif len(self._blocks) > most:
            self._free(most)

    def hand_over(self, context: Any) -> None:
        """Puts what there is where the next call looks for it."""
        while self._blocks and context.returned_count < RETURNED_BLOCKS:
            try:
                context.returned[context.returned_count] = self._blocks.pop()
            except IndexError:  # another thread was faster
                return
            context.returned_count += 1

    def close(self) -> None:
        """Frees what there is, and from now on what comes."""
        self._open = False
        self._free(0)

    # Bound as a default: at interpreter exit the module's names are gone before the last arrays.
    def _free(self, most: int, free: Any = free_memory) -> None:
        while len(self._blocks) > most:
            try:
                free(self._blocks.pop())
            except IndexError:  # another thread was faster
                return
