"""Functions over tensors -> functions over buffers: the stages that the code of every target goes through."""

from collections.abc import Callable
from typing import Any

from devscope.dialects.op_facts import Control, facts
from devscope.lowering import mlir_util, tosa
from devscope.lowering.angles import guard_angles
from devscope.lowering.checks.demands import JOINED, keep_demands
from devscope.lowering.checks.indices import check_accesses, check_divisions
from devscope.lowering.checks.labels import Checks
from devscope.lowering.checks.shapes import check_moved_casts, check_shapes
from devscope.lowering.constants import ConstantTable, constant_value, extract_constants, fill_instead
from devscope.lowering.copies import is_contiguous
from devscope.lowering.divisions import guard_equal_operands
from devscope.lowering.empty_parts import drop_empty_parts, make_empty
from devscope.lowering.expansions import expand, scan
from devscope.lowering.fusion_rounds import fuse
from devscope.lowering.initial_values import drop_empty_loops, keep_initial_values, release_initial_values
from devscope.lowering.interop.bindings import dictionary_items, ir
from devscope.lowering.kernels.accumulators import fills_with_zero
from devscope.lowering.kernels.biases import add_biases_behind
from devscope.lowering.kernels.folded_scales import fold_scales
from devscope.lowering.kernels.nest_bodies import neutral
from devscope.lowering.kernels.normalise import normalise_contractions
from devscope.lowering.kernels.one_hot import read_rows
from devscope.lowering.kernels.operands_apart import join_operands, keep_operands_apart
from devscope.lowering.kernels.repeated_extensions import repeat_extensions
from devscope.lowering.legal import check_module
from devscope.lowering.lift_control_flow import lift_control_flow
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.moved_constants import fold_moved_constants
from devscope.lowering.pipelines import SCHEDULE, apply_schedule, pipeline
from devscope.lowering.placed_results import place_results
from devscope.lowering.separate_results import separate_empty, separate_results
from devscope.lowering.small_powers import simplify_powers
from devscope.lowering.target import Options, Rule, Schedule, Target, choose
from devscope.lowering.truth_bytes import store_truths_as_bytes
from devscope.lowering.whole_windows import reduce_whole_windows
from devscope.lowering.windows import cut_windows

#: Operations that upstream decomposes into generics through an interface, not through a pass.
_DECOMPOSED = ("linalg.softmax",)

#: Named elementwise ops become ``linalg.generic`` so that producers fuse into consumers. Contractions,
#: convolutions and pooling keep their names: fusing a producer into their inner loops would recompute it.
_ELEMENTWISE = """
    abs add broadcast ceil div div_unsigned elementwise erf exp floor log map max min mul negf powf reciprocal
    round rsqrt select sqrt square sub tanh transpose
"""

#: What holds for all targets, after the rules of their own.
_SCHEDULES = (
    Rule(Schedule("linalg", "decompose"), _DECOMPOSED),
    Rule(Schedule("linalg", "pack"), ["linalg.pack"]),
    Rule(Schedule("linalg", "unpack"), ["linalg.unpack"]),
    Rule(Schedule("linalg", "generalize"), [f"linalg.{name}" for name in _ELEMENTWISE.split()]),
)

_GREATER, _NAN_IF_ANY = "arith.maxnumf", "arith.maximumf"
_CAST = "memref.cast"
_GIVEN = "devscope.given"
"""On a cast of the program's own, which says what it knows of strides."""
_MASKED = "devscope.masked"


def to_buffers(
    module: Any,
    target: Target,
    options: Options,
    run_passes: RunPasses,
    constants: ConstantTable,
    checks: Checks,
    before: Callable[[Any], None] | None = None,
    for_kernels: bool = False,
) -> None:
    """Lower ``module``; nobody frees the buffers yet. ``before`` is called right before one-shot bufferisation.

    ``checks``: what is checked as the program runs. ``for_kernels``: whether operations become calls of kernels,
    which want them in certain forms.

    Raises LoweringError for what ``target`` cannot compile.
    """
    _legalize(module, run_passes)
    check_module(module, target.name)
    check_shapes(module, checks.labels)
    guard_equal_operands(module)
    guard_angles(module)
    simplify_powers(module)
    if checks.indices:
        check_accesses(module)
    for function in mlir_util.functions(module):
        if mlir_util.has_body(function):
            _protect_arguments(function)
    lift_control_flow(module, run_passes)
    extract_constants(module, constants, target.inline_elements)
    fold_moved_constants(module, constants)
    _prepare_tensors(module, run_passes, target, options, constants, checks, for_kernels)
    check_moved_casts(module, checks.labels)
    make_empty(module)
    separate_results(module)
    separate_empty(module)
    _read_where_copied(module)
    run_passes(module.operation, pipeline("allocate"))
    if before is not None:
        before(module)
    given = mlir_util.named(module.operation, _CAST)
    for op in given:
        op.attributes[_GIVEN] = ir.UnitAttr.get(module.context)
    run_passes(module.operation, pipeline("bufferize"))
    _make_dense(module)
    store_truths_as_bytes(module.operation)
    run_passes(module.operation, pipeline("simplify_buffers"))
    place_results(module)


def _legalize(module: Any, run_passes: RunPasses) -> None:
    """Lower operations of input dialects to linalg, tensor, arith and math, with the passes that they bring."""
    names = {op.name for op in mlir_util.walk(module.operation)}
    used = {name.partition(".")[0] for name in names}
    if not names.isdisjoint(JOINED):
        keep_demands(module)
    if "tosa" in used:
        tosa.prepare(module)
        guard_equal_operands(module)
        run_passes(module.operation, pipeline("tosa"))
        tosa.finish(module)
    if any(name.startswith("linalg.winograd_") for name in names):
        apply_schedule(module, "linalg", "winograd")  # before constants are extracted: its matrices are some
    if "vector" in used:
        _keep_masks_apart(module)
        expand(mlir_util.named(module.operation, "vector.scan"), {"vector.scan": scan})
        run_passes(module.operation, pipeline("vectors"))
    if "tensor.bitcast" in names:
        _lower_bit_casts(module)
    if "tensor.reshape" in names:
        _reshape_by_indices(module)


def _keep_masks_apart(module: Any) -> None:
    """Upstream takes what is masked for equal to the same operation outside, which has no mask."""
    for mask in mlir_util.named(module.operation, "vector.mask"):
        for op in mlir_util.children(mask):
            op.attributes[_MASKED] = ir.UnitAttr.get(module.context)


def _lower_bit_casts(module: Any) -> None:
    """Bufferisation does not know those of tensors; those of elements are for signless ones."""
    for op in mlir_util.named(module.operation, "tensor.bitcast"):
        if all(_is_signless(value.type) for value in (op.operands[0], op.results[0])):
            cast = mlir_util.Builder(op).value("arith.bitcast", op.operands, op.results[0].type)
            mlir_util.replace_op(op, [cast])


def _reshape_by_indices(module: Any) -> None:
    """Upstream's lowering of ``memref.reshape`` forgets to convert the elements of a shape that are no indices."""
    for op in mlir_util.named(module.operation, "tensor.reshape"):
        shape = ir.RankedTensorType(op.operands[1].type)
        if isinstance(shape.element_type, ir.IntegerType) and shape.has_static_shape:
            build = mlir_util.Builder(op)
            places = [build.constant(number) for number in range(shape.shape[0])]
            elements = [build.value("tensor.extract", [op.operands[1], n], shape.element_type) for n in places]
            sizes = [build.value("arith.index_cast", [element], build.index) for element in elements]
            type_ = ir.RankedTensorType.get(shape.shape, build.index, loc=op.location)
            op.operands[1] = build.value("tensor.from_elements", sizes, type_)


def _is_signless(type_: Any) -> bool:
    element = ir.ShapedType(type_).element_type
    return isinstance(element, ir.FloatType) or (isinstance(element, ir.IntegerType) and element.is_signless)


def _prepare_tensors(
    module: Any,
    run_passes: RunPasses,
    target: Target,
    options: Options,
    constants: ConstantTable,
    checks: Checks,
    for_kernels: bool,
) -> None:
    """Schedule, generalise and fuse the tensor code of ``module``.

    Afterwards all payload is linalg (or ``tensor``), and producers that cost nothing to recompute are fused into
    their consumers.
    """
    _pad_with_zeros(module)
    drop_empty_loops(module)
    if for_kernels:
        add_biases_behind(module)
        normalise_contractions(module)
    numbers = set(mlir_util.named(module.operation, _GREATER))
    rules = (*target.schedules, *_SCHEDULES)
    chosen: dict[Schedule, None] = {}
    for op in mlir_util.walk(module.operation):
        schedule = choose(rules, op, options)
        if schedule is not None:
            chosen[schedule] = None
            op.attributes[SCHEDULE] = ir.StringAttr.get(schedule.mark, module.context)
    for schedule in chosen:
        apply_schedule(
            module, schedule.file, schedule.sequence, mark=schedule.mark, order=str(list(schedule.order))
        )
    for op in mlir_util.walk(module.operation) if chosen else ():
        if SCHEDULE in op.attributes:  # what is made from a marked operation keeps its attributes
            del op.attributes[SCHEDULE]
        if op.name == _GREATER and op not in numbers:
            _keep_nan(op)
    cut_windows(module)
    reduce_whole_windows(module)
    guard_equal_operands(module)
    _choose_whole_tensors(module)
    if checks.indices:
        run_passes(module.operation, pipeline("elementwise"))
        check_divisions(module)
    keep_initial_values(module)
    repeat_extensions(module)
    keep_operands_apart(module)
    fuse(module, run_passes)
    if for_kernels:
        fold_scales(module, constants)
    if read_rows(module, constants):
        run_passes(module.operation, pipeline("fuse"))
    join_operands(module)
    run_passes(module.operation, pipeline("fold_ones"))
    release_initial_values(module)
    _fill_splat_constants(module)
    _begin_apart(module)
    if drop_empty_parts(module):
        run_passes(module.operation, pipeline("resolve_sizes"))


def _keep_nan(op: Any) -> None:
    """Let the maximum of a softmax that upstream has decomposed, which is no NaN and begins with one, be NaN for
    NaN, of which all of the row becomes NaN anyway: parts of that are combined by vectors."""
    type_ = op.results[0].type
    fill = mlir_util.maker(op.parent.operands[-1], "linalg.fill")
    assert fill is not None
    fill.operands[0] = neutral(mlir_util.Builder(fill), _NAN_IF_ANY, type_)
    mlir_util.replace_op(op, [mlir_util.Builder(op).value(_NAN_IF_ANY, op.operands, type_)])


def _choose_whole_tensors(module: Any) -> None:
    """``arith.select`` by a scalar between tensors that may differ in size becomes an ``scf.if``.

    Upstream takes it for elementwise and both for as large as the first. Canonicalisation makes a select of it
    again, later, which is then one of buffers.
    """
    for op in mlir_util.walk(module.operation):
        if op.name != "arith.select" or isinstance(op.operands[0].type, ir.ShapedType):
            continue
        type_ = op.results[0].type
        if isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape:
            branch = mlir_util.Builder(op).op("scf.if", list(op.operands)[:1], [type_], regions=2)
            for region, value in zip(branch.regions, list(op.operands)[1:], strict=True):
                with op.location, ir.InsertionPoint(ir.Block.create_at_start(region, [])):
                    ir.Operation.create("scf.yield", operands=[value])
            mlir_util.replace_op(op, branch.results)


def _pad_with_zeros(module: Any) -> None:
    """Upstream pads what is packed with zero if nothing else is said, and ends the process for complex numbers.

    Right before the schedules: canonicalisation takes away a padding that no size needs.
    """
    for op in mlir_util.named(module.operation, "linalg.pack"):
        type_ = op.results[0].type
        part = getattr(type_.element_type, "element_type", None)
        source, destination, padding, tiles = mlir_util.operand_groups(op)
        if part is not None and not padding:
            text = f"%zero = complex.constant [0.0 : {part}, 0.0 : {part}] : {type_.element_type}"
            padding = list(mlir_util.insert(op, text)[0].results)
            attributes = dict(op.attributes.items())
            packed = mlir_util.Builder(op).grouped(
                op.name, [source, destination, padding, tiles], [type_], attributes
            )
            mlir_util.replace_op(op, packed.results)


def _begin_apart(module: Any) -> None:
    """What writes over a filled or an empty tensor gets one of its own: of equal ones, one has become.

    Bufferisation would copy what is filled, and put results that are not needed at the same time into one buffer:
    that of a layer into that of the layer before, which is still read while a kernel computes both the contraction
    and what follows. What is in the memory of what, the memory planner decides, once kernels are chosen; but of
    buffers that are moved out of loops it knows less.
    """
    for name in ("linalg.fill", "tensor.empty"):  # fills that are cloned share what they fill
        for op in mlir_util.named(module.operation, name):
            if not op.results:
                continue
            uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
            written = [(user, number) for user, number in uses if _writes_over(user, number)]
            if name == "tensor.empty":
                written = [(user, number) for user, number in written if _has_place(user)]
            # Fills stand right in front of what writes over them, so that passes over rows can take them along.
            kept = len(uses) == len(written) and name != "linalg.fill"
            for user, number in written[kept:]:
                user.operands[number] = op.clone(ip=ir.InsertionPoint(user)).results[0]
            if uses and not kept and len(uses) == len(written):
                op.erase()


def _writes_over(op: Any, number: int) -> bool:
    if op.name == "tensor.insert_slice":
        return number == 1
    return op.name.startswith("linalg.") and number >= len(op.operands) - len(op.results)


def _has_place(op: Any) -> bool:
    """Whether ``op`` writes to a buffer of its own: also in a loop what fills with zeros, which kernels leave out,
    and what follows a contraction."""
    if op.name == "linalg.fill":
        return fills_with_zero(op)
    makers = [value.owner.operation for value in op.operands if not isinstance(value.owner, ir.Block)]
    return not _is_in_loop(op) or any(
        kind in maker.name for maker in makers for kind in ("contract", "conv", "mat")
    )


def _is_in_loop(op: Any) -> bool:
    while op.name != "func.func":
        op = op.parent
        if facts(op.name).control in (Control.COUNTED, Control.WHILE) or op.name in ("scf.forall", "scf.parallel"):
            return True
    return False


def _fill_splat_constants(module: Any) -> None:
    """Splat tensor constants become fills: they then cost no memory in the executable and no copy."""
    for op in mlir_util.walk(module.operation):
        if op.name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType):
            value = constant_value(op)
            if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
                fill_instead(op, value)


def _make_dense(module: Any) -> None:
    """Copies parts of buffers for functions that take, and return, whole ones.

    So does bufferisation itself, but for parts with strides that are known as the program runs: these it casts,
    since those of a buffer with dynamic extents are, too (`castOrReallocMemRefValue`).
    """
    for op in mlir_util.named(module.operation, _CAST):
        source, type_ = op.operands[0], op.results[0].type
        if _GIVEN in op.attributes:
            del op.attributes[_GIVEN]
        elif all(map(mlir_util.is_memref, (source.type, type_))) and (
            mlir_util.is_whole_buffer(type_) and not is_contiguous(source.type)
        ):
            mlir_util.replace_op(op, [mlir_util.Builder(op).copy(source, type_)])


def _read_where_copied(module: Any) -> None:
    """Put the read of a tensor that is copied to a device right before the copy.

    Bufferisation takes ``to_buffer`` for the place of the read, and reuses the memory of a tensor that is not
    read any more. CSE leaves one ``to_buffer`` for all copies of a tensor, in front of the first. One that is not
    ``read_only`` is no read: the program may have written to the buffer.
    """
    for op in mlir_util.walk(module.operation):
        if op.name != "memref.copy":
            continue
        source = op.operands[0]
        if isinstance(source.owner, ir.Block) or source.owner.operation.name != "bufferization.to_buffer":
            continue
        read = source.owner.operation
        if "read_only" in read.attributes:
            op.operands[0] = read.clone(ip=ir.InsertionPoint(op)).results[0]


def _protect_arguments(func: Any) -> None:
    """Arguments belong to the caller: bufferisation must not write into them."""
    context = func.context
    types = mlir_util.function_type(func).inputs
    attributes: list[dict[str, Any]] = [{} for _ in types]
    if "arg_attrs" in func.attributes:
        attributes = [dictionary_items(entry) for entry in ir.ArrayAttr(func.attributes["arg_attrs"])]
    for named, type_ in zip(attributes, types, strict=True):
        if isinstance(type_, ir.RankedTensorType):
            named["bufferization.writable"] = ir.BoolAttr.get(False, context)
    new = [ir.DictAttr.get(named, context) for named in attributes]
    func.attributes["arg_attrs"] = ir.ArrayAttr.get(new, context)
