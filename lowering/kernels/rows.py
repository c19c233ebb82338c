"""Operations on buffers that go over the same rows (`row_groups`) become one pass over them.

The operations of a group become a function, which `row_passes` makes loops of; equal groups share it. Buffers that
are only used in between hold one row, of each task.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.buffer_users import used_buffers
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.row_groups import RowGroup, row_groups
from devscope.lowering.kernels.row_passes import ROWS, SCRATCH, is_on_stack
from devscope.lowering.kernels.table import Schedules
from devscope.lowering.memory.effects import elementwise_pairs, mark_pairs, mark_written
from devscope.lowering.mlir_util import Builder


def fuse_rows(
    module: Any,
    schedules: Schedules,
    library: KernelLibrary,
    pays: Callable[[RowGroup], bool] = lambda group: group.pays(),
) -> None:
    """Replace groups of operations of ``module``, bufferised code for one memory, by calls of functions of
    ``library``; ``pays``: which of them."""
    _, *ops = mlir_util.walk(module.operation)
    if sum(op.name == "memref.copy" or (op.name.startswith("linalg.") and len(op.regions) > 0) for op in ops) < 2:
        return
    groups = row_groups(ops, bindings.load("_mlir_libs._mlirDialectsLinalg"))
    found = [group for group in groups if pays(group)]
    # Before operations are replaced, which others may use the results of.
    pairs = [list(_shared_pairs(group)) for group in found]
    for group in found:
        group.write_results_once(library.loops["stream"])
    temporaries = [group.temporaries() for group in found]
    for group, rows_only, shared in zip(found, temporaries, pairs, strict=True):
        group.note(schedules)
        _replace(group, rows_only, shared, library)


def _replace(
    group: RowGroup, rows_only: Sequence[Any], shared: Sequence[tuple[Any, Any]], library: KernelLibrary
) -> None:
    nests, rows, code = group.nests, group.rows, group.code
    last = nests[-1].op
    ops: list[Any] = []
    for nest in nests:
        if nest.op.name == "memref.copy":
            source, target = nest.op.operands
            text = f"linalg.copy ins(%0 : {source.type}) outs(%1 : {target.type})"
            (copy,) = mlir_util.insert(nest.op, text, [source, target])
            last = copy if nest.op == last else last
            nest.op.erase()
            nest.op = copy
        ops.append(nest.op)
    used = list(dict.fromkeys(value for op in ops for value in mlir_util.captured_values(op)))
    used += [size for value in rows_only for size in code.makers[value].operands if size not in used]
    # Parts of a buffer are taken inside, so that it is one argument.
    in_parts = group.in_parts()
    views = [view for value in used if value in in_parts for view in reversed(code.views(value))]
    parts = list(dict.fromkeys(view.results[0] for view in views))
    used += [operand for view in views for operand in view.operands]
    used = [value for value in dict.fromkeys(used) if value not in parts]
    constants = [value for value in used if code.maker_name(value) == "arith.constant"]
    arguments = list(dict.fromkeys(value for value in used if value not in constants and value not in rows_only))
    pairs = [pair for pair in shared if set(pair) <= set(arguments)]
    written = {code.root(o.value) if o.value in in_parts else o.value for nest in nests for o in nest.results}

    build = Builder(last)
    scratch = [
        _scratch(build, code.makers[value], rows, library)
        for value in rows_only
        if not is_on_stack(value.type, rows)
    ]
    types = [value.type for value in (*arguments, *scratch)]
    attributes = f"{ROWS} = {rows} : i64, {SCRATCH} = {len(arguments)} : i64"
    parameters = ", ".join(f"%{number}: {type_}" for number, type_ in enumerate(types))
    text = f"func.func private @rows({parameters}) attributes {{{attributes}}} {{ return }}"
    function = mlir_util.append(library.of_operations(last.context), text, last.location)
    (end,) = mlir_util.children(function)
    inside = Builder(end)
    mapping = dict(zip(arguments, mlir_util.entry_block(function).arguments, strict=False))
    for value in (*constants, *rows_only, *parts):
        copy = inside.clone(code.makers[value])
        mlir_util.remap_operands(copy, mapping)
        mapping[value] = copy.results[0]
    for op in ops:
        mlir_util.remap_operands(inside.clone(op), mapping)
    symbol = library.add_function(function)
    operands = [*arguments, *scratch]
    library.declare(last, symbol, [str(type_) for type_ in types])
    call = build.call(symbol, operands)
    mark_written(call, [n for n, value in enumerate(operands) if n >= len(arguments) or value in written])
    mark_pairs(call, pairs)
    for op in ops:
        op.erase()
    for value in rows_only:
        code.makers[value].erase()


def _scratch(build: Builder, alloc: Any, rows: int, library: KernelLibrary) -> Any:
    """A buffer for one row of what ``alloc`` makes for each task."""
    type_ = ir.MemRefType(alloc.results[0].type)
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = list(alloc.operands)[sum(extent == dynamic for extent in type_.shape[:rows]) :]
    shape = [library.loops["row_tasks"], *type_.shape[rows:]]
    return build.alloc(mlir_util.buffer_type(shape, type_.element_type), sizes)


def _shared_pairs(group: RowGroup) -> Iterable[tuple[Any, Any]]:
    """Inputs with results that may be in their memory: of a row, all is read before anything is written."""
    nests, rows, root, in_parts = group.nests, group.rows, group.code.root, group.in_parts()
    several = {root(value) for value in in_parts}
    written = {root(o.value) for nest in nests for o in nest.results}
    for number, nest in enumerate(nests):
        for source, target in elementwise_pairs(nest.op):
            if (
                root(source) in written
                or root(target) in several
                or any(target in used_buffers(earlier) for earlier in nests[:number])
            ):
                continue
            if any(source in used_buffers(later) for later in nests[number + 1 :]):
                continue
            if all(group.is_by_rows(each, root(source), rows) for each in nests if source in used_buffers(each)):
                yield source, target
