"""Checks a user's ``cpu`` and ``features`` for host code.

LLVM has no way to ask: it prints a warning and goes on without an unknown name, and ends the process at a
malformed list of features. So another process tries them.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache

from devscope.errors import OptionError

_TRY = """
import sys
import llvmlite.binding as llvm

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
llvm.Target.from_default_triple().create_target_machine(cpu=sys.argv[1], features=sys.argv[2])
"""


@cache
def check_host_options(cpu: str, features: str) -> None:
    """Raise OptionError unless LLVM knows this processor and these features; ``""`` asks for the default."""
    if not cpu and not features:
        return
    for feature in filter(None, features.split(",")):
        if feature[0] not in "+-" or not feature[1:]:
            raise OptionError(
                f"option 'features' of target kind 'cpu': '{feature}' is not a feature",
                notes=["write features like +avx2,-fma"],
            )
    command = [sys.executable, "-I", "-c", _TRY, cpu, features]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode or "not a recognized" in result.stderr:
        first = (result.stderr.strip().splitlines() or ["no message"])[0]
        raise OptionError(
            "LLVM refuses option 'cpu' or 'features' of target kind 'cpu'",
            notes=[first.partition(" (ignoring")[0], "they are those of llc's -mcpu and -mattr"],
        )
