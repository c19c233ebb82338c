"""Processes are killed while they store: nothing half-written is loaded, and nothing is left over for ever."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from outcome import Outcome

from devscope.errors import DevscopeError
from devscope.runtime.cache import DiskCache
from devscope.runtime.file_format import read_program

KEY = "0123456789abcdef"
KILLS = 6

# Stores the program that it is given over and over, to the cache and as a file.
_STORE = """
import sys
from pathlib import Path
import devscope
from devscope.runtime.cache import DiskCache
from devscope.runtime.file_format import read_program, save_program

program = read_program(sys.argv[1])
cache, out = DiskCache(Path(sys.argv[2])), Path(sys.argv[3])
print("ready", flush=True)
while True:
    cache.store_program(sys.argv[4], program)
    cache.store_blob(sys.argv[4], program.host_object)
    save_program(program, out)
"""


def check(seed: int, folder: Path) -> Outcome:
    from part_files import original

    rng = random.Random(seed)
    source, out, root = folder / "source.dsx", folder / "saved" / "out.dsx", folder / "cache"
    out.parent.mkdir()
    source.write_bytes(original()[0])
    program = read_program(source)
    for _ in range(KILLS):
        command = [sys.executable, "-c", _STORE, *map(str, (source, root, out)), KEY]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        cache = DiskCache(root)
        for found in (cache.load_program(KEY), cache.load_blob(KEY)):
            good = (
                found is None or (found if isinstance(found, bytes) else found.host_object) == program.host_object
            )
            if not good:
                return Outcome("wrong", "an entry of the cache is not what was stored")
        if out.exists():
            try:
                read_program(out)
            except DevscopeError as error:
                return Outcome("wrong", f"a file that was being saved is damaged: {error.message}")
    DiskCache(root).store_blob(KEY, b"")
    if left := [path.name for path in root.rglob("*") if path.is_file() and not path.name.startswith(KEY)]:
        return Outcome("wrong", f"left over in the cache: {left}")
    read_program(source)
    from devscope.runtime.file_format import save_program

    save_program(program, out)
    if left := [path.name for path in out.parent.iterdir() if path != out]:
        return Outcome("wrong", f"left over beside a saved file: {left}")
    return Outcome("right", trials=KILLS)
