"""Operations on tensors in the forms that kernels are made for.

Contractions, whatever they are called, become ``linalg.contract``, in whose indexing maps the transposes and
broadcasts of their operands are folded: packing reads any layout. So are extensions of elements, which it does,
too: tensors and constants of fewer bits are read. Convolutions whose windows have one element are contractions,
and contractions that sum one product elementwise operations.
"""

from collections.abc import Collection, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_match import EXTENSIONS, WIDE_SUMS, sums_products
from devscope.lowering.windows import sum_of_loops

_SIGNED = {"arith.extsi": "cast_signed", "arith.extui": "cast_unsigned"}


def contractions_of(module: Any) -> list[Any]:
    """Those of two operands, on tensors or on buffers."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    ops = [op for op in mlir_util.walk(module.operation) if op.name.startswith("linalg.")]
    found = [op for op in ops if len(op.operands) == 3 and linalg.isa_contraction_op(op)]
    return [op for op in found if _sums_both(op, linalg)]


def _sums_both(op: Any, linalg: Any) -> bool:
    """Whether the loops of the sums are in both operands; upstream asks for one that is."""
    *read, written = (ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op))
    summed = set(range(written.n_dims)) - set(_loops(written))
    return all(summed <= set(_loops(map_)) for map_ in read)


def normalise_contractions(module: Any) -> None:
    """Rewrite the contractions on tensors of ``module`` that compute with real numbers."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in contractions_of(module):
        if len(op.results) == 1 and isinstance(op.results[0].type, ir.RankedTensorType):
            _normalise(op, linalg)
    convolutions = [op for op in mlir_util.walk(module.operation) if op.name.startswith("linalg.conv_")]
    for op in convolutions:
        if len(op.operands) == 3 and len(op.results) == 1:
            _without_windows(op, linalg)


def _normalise(op: Any, linalg: Any) -> None:
    cast = _cast(op)
    # Upstream takes for a contraction whatever is done to elements and to products, too.
    if (
        cast is None
        or sums_products(op) is None
        or any(isinstance(_element(value), ir.ComplexType) for value in op.operands)
    ):
        return
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
    operands = list(op.operands)
    summed = set(range(maps[2].n_dims)) - set(_loops(maps[2]))
    for number in (0, 1):
        operands[number], maps[number] = _source(operands[number], maps[number], summed, linalg)
    is_wide = all(_element(value) == _element(op.results[0]) for value in operands)
    pairs = zip(operands[:2], maps, strict=False) if is_wide else ()
    extended = [found for pair in pairs if (found := _extended(*pair, linalg)) is not None]
    if len(extended) == 2 and len({(kind, _element(value)) for kind, value, _ in extended}) == 1:
        for number, (kind, value, map_) in enumerate(extended):
            operands[number], maps[number] = _source(value, map_, summed, linalg)
            cast = _cast_text(kind)
    shape = ir.RankedTensorType(operands[0].type).shape
    if all(shape[axis] == 1 for axis, loop in enumerate(_loops(maps[0])) if loop in summed):
        _multiply(op, operands, maps, cast, summed)
    else:
        _contract(op, operands, maps, cast)


def _multiply(op: Any, operands: Sequence[Any], maps: Sequence[Any], cast: str, summed: Collection[int]) -> None:
    """Replace a contraction all of whose loops ``summed`` have one iteration; it rounds as one with more does."""
    kept = [loop for loop in range(maps[0].n_dims) if loop not in summed]
    read, spaces = list[Any](), list[str]()
    for value, map_ in zip(operands, maps, strict=True):
        axes = [axis for axis, loop in enumerate(_loops(map_)) if loop in summed]
        read.append(_drop(op, value, axes) if axes else value)
        spaces.append(f"({', '.join(f'd{loop}' for loop in _loops(map_) if loop not in summed)})")
    result, element = op.results[0].type, str(_element(op.results[0]))
    wide = WIDE_SUMS.get(element, element)
    is_float = not isinstance(_element(op.results[0]), ir.IntegerType)
    extend = "arith.extf" if is_float else "arith.extui" if "unsigned" in cast else "arith.extsi"
    elements = [str(_element(value)) for value in read]
    names = [f"%e{number}" if of == wide else f"%w{number}" for number, of in enumerate(elements)]
    body = [
        f"{name} = {extend} %e{number} : {elements[number]} to {wide}"
        for number, name in enumerate(names)
        if elements[number] != wide
    ]
    suffix = "f" if is_float else "i"
    body += [
        f"%product = arith.mul{suffix} {names[0]}, {names[1]} : {wide}",
        f"%sum = arith.add{suffix} {names[2]}, %product : {wide}",
    ]
    if wide != element:
        body.append(f"%rounded = arith.truncf %sum : {wide} to {element}")
    unknown = [axis for axis in range(result.rank) if result.is_dynamic_dim(axis)]
    lines = [f"%axis{axis} = arith.constant {axis} : index" for axis in unknown]
    lines += [f"%size{axis} = tensor.dim %2, %axis{axis} : {result}" for axis in unknown]
    loops = f"({', '.join(f'd{loop}' for loop in kept)})"
    all_maps = ", ".join(f"affine_map<{loops} -> {space}>" for space in (*spaces, spaces[-1]))
    text = f"""
        %empty = tensor.empty({", ".join(f"%size{axis}" for axis in unknown)}) : {result}
        %made = linalg.generic {{indexing_maps = [{all_maps}],
            iterator_types = [{", ".join(['"parallel"'] * len(kept))}]}}
          ins(%0, %1, %2 : {", ".join(str(value.type) for value in read)}) outs(%empty : {result}) {{
        ^bb0(%e0: {elements[0]}, %e1: {elements[1]}, %e2: {elements[2]}, %old: {element}):
          {" ".join(body)}
          linalg.yield {"%rounded" if wide != element else "%sum"} : {element}
        }} -> {result}
    """
    made = mlir_util.insert(op, "\n".join([*lines, text]), read)
    mlir_util.replace_op(op, made[-1].results)


def _contract(op: Any, operands: Sequence[Any], maps: Sequence[Any], cast: str) -> None:
    text = f"""
        %made = linalg.contract indexing_maps = [{", ".join(f"affine_map<{map_}>" for map_ in maps)}] {cast}
          ins(%0, %1 : {operands[0].type}, {operands[1].type})
          outs(%2 : {operands[2].type}) -> {op.results[0].type}
    """
    (made,) = mlir_util.insert(op, text, operands)
    mlir_util.replace_op(op, made.results)


def _without_windows(op: Any, linalg: Any) -> None:
    """Rewrite a convolution if each of its windows is one element, and no padding is read."""
    image, filters, result = op.operands
    if not isinstance(image.owner, ir.Block) and image.owner.operation.name == "tensor.pad":
        return  # made by nobody, if a kernel for convolutions reads it
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
    of_filters = {ir.AffineDimExpr(loop).position: axis for axis, loop in enumerate(maps[1].results)}
    shape = ir.RankedTensorType(filters.type).shape
    loops: list[int] = []
    windows: set[int] = set()
    for index in maps[0].results:
        (loop, factor), *rest = sum_of_loops(index) or [(-1, 0)]
        if rest:
            sums = [each for each, _ in ((loop, factor), *rest) if each in of_filters]
            ((loop, factor),) = [each for each in ((loop, factor), *rest) if each[0] not in of_filters] or [
                (-1, 0)
            ]
            if len(sums) != 1 or shape[of_filters[sums[0]]] != 1:
                return
            windows.update(sums)
        if factor != 1:
            return
        loops.append(loop)
    kept = [loop for loop in range(maps[0].n_dims) if loop not in windows]
    if not windows or set(kept) <= set(_loops(maps[2])):
        return  # the latter: nothing is summed, which is no contraction
    named = {loop: ir.AffineDimExpr.get(number, op.context) for number, loop in enumerate(kept)}
    all_loops = [loops, [loop for loop in of_filters if loop not in windows], _loops(maps[2])]
    contracted = [ir.AffineMap.get(len(kept), 0, [named[x] for x in each], op.context) for each in all_loops]
    _contract(op, [image, _drop(op, filters, [of_filters[loop] for loop in windows]), result], contracted, "")


def _loops(map_: Any) -> list[int]:
    return [ir.AffineDimExpr(loop).position for loop in map_.results]


def _drop(op: Any, tensor: Any, axes: Collection[int]) -> Any:
    """``tensor`` without ``axes``, which have one element."""
    type_ = ir.RankedTensorType(tensor.type)
    groups, shape = [list[int]()], list[str]()
    for axis, extent in enumerate(type_.shape):
        if axis not in axes:
            if len(shape) == len(groups):
                groups.append([])
            shape.append("?" if type_.is_dynamic_dim(axis) else str(extent))
        groups[-1].append(axis)
    to = f"tensor<{'x'.join([*shape, str(type_.element_type)])}>"
    text = f"%made = tensor.collapse_shape %0 {groups if shape else []} : {type_} into {to}"
    return mlir_util.insert(op, text, [tensor])[0].results[0]


def _element(value: Any) -> Any:
    return ir.ShapedType(value.type).element_type if isinstance(value.type, ir.ShapedType) else value.type


def _cast(op: Any) -> str | None:
    """How the elements are extended, as ``linalg.contract`` says it; None if it cannot say so."""
    casts = {inner.name for inner in mlir_util.children(op) if inner.name in _SIGNED}
    if len(casts) > 1:
        return None
    return "".join(map(_cast_text, casts))


def _cast_text(name: str) -> str:
    return f"{{cast = #linalg.type_fn<{_SIGNED[name]}>}}" if name in _SIGNED else ""


def only_extends(op: Any) -> bool:
    """Whether ``op`` computes the same elements in a wider type, and nothing else."""
    if op.name in EXTENSIONS:
        return True
    if op.name != "linalg.generic" or len(op.operands) != 2:
        return False
    return [inner.name in EXTENSIONS for inner in mlir_util.children(op)] == [True, False]


def _extended(tensor: Any, map_: Any, linalg: Any) -> tuple[str, Any, Any] | None:
    """How ``tensor`` is extended, what of, and the map for that."""
    op = None if isinstance(tensor.owner, ir.Block) else tensor.owner.operation
    if op is None or not only_extends(op):
        return None
    if op.name in EXTENSIONS:
        return op.name, op.operands[0], map_
    maps = _maps(op, linalg)
    if maps is None or not maps[0].is_permutation:
        return None
    return mlir_util.children(op)[0].name, op.operands[0], _composed(map_, *maps)


def _source(tensor: Any, map_: Any, summed: Collection[int], linalg: Any) -> tuple[Any, Any]:
    """What ``tensor`` is a transpose or a broadcast of, and the map for that.

    A broadcast along one of the loops ``summed`` stays: both operands of ``linalg.contract`` have them all.
    """
    while not isinstance(tensor.owner, ir.Block):
        op = tensor.owner.operation
        maps = _moved(op, linalg)
        if maps is None:
            break
        made = _composed(map_, *maps)
        kept = set(_loops(made))
        if any(loop in summed and loop not in kept for loop in _loops(map_)):
            break
        tensor, map_ = op.operands[0], made
    return tensor, map_


def _composed(map_: Any, source: Any, target: Any) -> Any:
    """The map for what an operation reads by ``source``, and ``map_`` for what it writes by ``target``."""
    by_loop = dict(zip(_loops(target), map_.results, strict=True))
    results = [by_loop[loop] for loop in _loops(source)]
    return ir.AffineMap.get(map_.n_dims, 0, results, map_.context)


def moved_axes(op: Any, linalg: Any) -> dict[int, int] | None:
    """Of a transpose or a broadcast, whatever it is called: for axes of its result, those of what it reads."""
    maps = _moved(op, linalg)
    if maps is None:
        return None
    source, target = (_loops(map_) for map_ in maps)
    return {axis: source.index(loop) for axis, loop in enumerate(target) if loop in source}


def _moved(op: Any, linalg: Any) -> tuple[Any, Any] | None:
    """The maps of an operation that puts elements elsewhere and does nothing else."""
    if op.name not in ("linalg.transpose", "linalg.broadcast", "linalg.generic") or len(op.operands) != 2:
        return None
    if not isinstance(op.operands[0].type, ir.RankedTensorType):
        return None
    if op.name == "linalg.generic":
        block = mlir_util.entry_block(op)
        (end,) = [inner for inner in mlir_util.children(op)][-1:]
        if len(mlir_util.children(op)) != 1 or end.operands[0] != block.arguments[0]:
            return None
    return _maps(op, linalg)


def _maps(op: Any, linalg: Any) -> tuple[Any, Any] | None:
    """Those of what is read and written; None if elements are not read where others are not."""
    source, target = (ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op))
    return (source, target) if source.is_projected_permutation and target.is_permutation else None
