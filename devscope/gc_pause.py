"""Python's cyclic garbage collector, held off where it can only cost time."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Generator[None]:
    """Hold it off while many objects are made that all stay: it would look through all of them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:
                # To the oldest generation at once; else the next collection of the youngest looks at them all.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
