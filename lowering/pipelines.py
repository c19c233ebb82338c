"""MLIR pass pipelines, as data: what upstream runs, in which order, for which stage.

Every string here goes to ``Session.run_passes`` unchanged. A new target adds strings, not branches.
"""

from __future__ import annotations

#: Named elementwise ops become ``linalg.generic`` so that producers fuse into consumers. Contractions,
#: convolutions and pooling keep their names: fusing a producer into their inner loops would recompute it.
ELEMENTWISE_NAMED_OPS = (
    "linalg.abs",
    "linalg.add",
    "linalg.broadcast",
    "linalg.ceil",
    "linalg.div",
    "linalg.div_unsigned",
    "linalg.elementwise",
    "linalg.erf",
    "linalg.exp",
    "linalg.floor",
    "linalg.log",
    "linalg.map",
    "linalg.max",
    "linalg.min",
    "linalg.mul",
    "linalg.negf",
    "linalg.powf",
    "linalg.reciprocal",
    "linalg.round",
    "linalg.rsqrt",
    "linalg.select",
    "linalg.sqrt",
    "linalg.square",
    "linalg.sub",
    "linalg.tanh",
    "linalg.transpose",
)

#: arith/math on tensors -> linalg.generic, so that every payload op is a linalg op from here on.
ELEMENTWISE_TO_LINALG = "builtin.module(func.func(convert-elementwise-to-linalg))"

#: The first round of fusion only makes unused inits empty, whose sizes are then asked of the producers: an extra
#: use that keeps producers from being fused until the sizes are traced back to the arguments.
FUSE = (
    "builtin.module(func.func(linalg-fuse-elementwise-ops),resolve-ranked-shaped-type-result-dims,"
    "func.func(canonicalize,cse,linalg-fuse-elementwise-ops,canonicalize,cse,"
    "linalg-fold-unit-extent-dims,canonicalize,cse))"
)

ALLOCATE = "builtin.module(eliminate-empty-tensors,func.func(empty-tensor-to-alloc-tensor))"

BUFFERIZE = (
    "builtin.module("
    "one-shot-bufferize{bufferize-function-boundaries=true allow-return-allocs-from-loops=true"
    " function-boundary-type-conversion=identity-layout-map},"
    "canonicalize,cse,func.func(buffer-loop-hoisting))"
)

#: Ownership based: works through scf loops and branches. cf loops must be lifted to scf first.
OWN = "builtin.module(ownership-based-buffer-deallocation,canonicalize,buffer-deallocation-simplification)"

CLEAN_UP = "builtin.module(canonicalize,cse)"

#: The first canonicalisation elides clones of what is freed right after.
LOWER_DEALLOCATIONS = (
    "builtin.module(canonicalize,buffer-deallocation-simplification,"
    "bufferization-lower-deallocations,convert-bufferization-to-memref,cse,canonicalize)"
)

DEALLOCATE = (
    "builtin.module("
    "ownership-based-buffer-deallocation,canonicalize,buffer-deallocation-simplification,"
    "bufferization-lower-deallocations,convert-bufferization-to-memref,cse,canonicalize)"
)

LIFT_CONTROL_FLOW = "builtin.module(func.func(lift-cf-to-scf),canonicalize)"
