"""``device-move-copies``: copies run as seldom as the paths of a planned module allow.

Tensors are values, so a copy makes the same wherever it stands. What is moved, and where: the modules of
``copy_motion``. Works on any module for which ``device-verify`` holds. Copies that users wrote move like others.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from devscope.passes.copy_motion import move_copies


@dataclass(frozen=True)
class DeviceMoveCopiesPass(ModulePass):
    """Share copies, sink them into the branches that need them, and take them out of loops."""

    name = "device-move-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        move_copies(op)
