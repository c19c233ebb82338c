"""Operations on buffers become calls of kernels: in which order, the same for the host and for devices."""

from typing import Any

from devscope.lowering.kernels.assertions_apart import keep_assertions_apart
from devscope.lowering.kernels.borders import fill_borders
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.normalise import contractions_of
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.rows import fuse_rows
from devscope.lowering.kernels.split_reductions import split_reductions
from devscope.lowering.kernels.table import Schedules
from devscope.lowering.kernels.transposes import call_transposes
from devscope.lowering.kernels.wide_sums import call_wide_sums
from devscope.lowering.windows import windowed_operations


def call_kernels(module: Any, schedules: Schedules, library: KernelLibrary, packed: PackedConstants) -> None:
    """What ``schedules`` have rows for, in the bufferised functions of ``module``."""
    keep_assertions_apart(module)
    if contractions := contractions_of(module):
        from devscope.lowering.kernels.contractions import call_contractions

        call_contractions(contractions, schedules, library, packed, in_parts=True)
    if windowed := windowed_operations(module):
        from devscope.lowering.kernels.convolutions import call_convolutions

        call_convolutions(windowed, schedules, library, packed)
    call_wide_sums(module, schedules, library, packed)
    packed.finish()
    call_transposes(module, schedules, library)
    split_reductions(module, library.loops)
    fill_borders(module)
    fuse_rows(module, schedules, library)
