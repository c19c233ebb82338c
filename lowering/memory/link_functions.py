"""Links host functions and launchers into one program: inlined, their buffers freed, under names of their own."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.entries import separate_names
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.call_graph import CallGraph
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline

_MOST_OPERATIONS = 2000
"""What the copies of one inlined function's body may have together."""

_DEALLOC, _CLONE = "bufferization.dealloc", "bufferization.clone"
_HANDLES_BUFFERS = frozenset({"memref.alloc", "memref.dealloc", _DEALLOC, _CLONE})


def link_functions(module: Any, run_passes: RunPasses) -> dict[str, Any]:
    """Returns the functions of ``module`` with a body by the names that they had, less those inlined everywhere.

    Of host functions the ownership of buffers is computed, but what frees them not lowered yet.
    """
    _inline_functions(module)
    with hidden_launches(module):
        _lower_deallocations(module, run_passes)
    return separate_names(module)


def _inline_functions(module: Any) -> None:
    """Inline private functions with a single block that are called once, or are small.

    One function then shows the lifetimes of all its buffers. Only functions that allocate, free or return buffers:
    for the others LLVM decides. MLIR's inliner has no budget for all copies of a body together, and verifies the
    module, in which launches have no kernels yet.
    """
    graph = CallGraph(module)
    for name in graph.order:
        func, sites = graph.functions[name], graph.calls[name]
        visibility = str(func.attributes["sym_visibility"]) if "sym_visibility" in func.attributes else ""
        if name in graph.recursive or visibility != '"private"':
            continue
        if sites and len(func.regions[0].blocks) == 1:
            _inline(func, sites)


def _inline(func: Any, sites: list[Any]) -> None:
    ops = mlir_util.walk(func)[1:]
    returns_buffers = any(mlir_util.is_memref(result.type) for result in sites[0].results)
    if not returns_buffers and _HANDLES_BUFFERS.isdisjoint(op.name for op in ops):
        return
    if (len(sites) - 1) * len(ops) > _MOST_OPERATIONS:
        return
    for site in sites[:-1]:
        _copy_body(func, site)
    _move_body(func, sites[-1])
    func.erase()


def _move_body(func: Any, site: Any) -> None:
    for argument, operand in zip(mlir_util.entry_block(func).arguments, list(site.operands), strict=True):
        argument.replace_all_uses_with(operand)
    *body, return_ = mlir_util.children(func)
    for op in body:
        op.move_before(site)
    results = list(return_.operands)
    return_.erase()
    mlir_util.replace_op(site, results)


def _copy_body(func: Any, site: Any) -> None:
    mapping = dict(zip(mlir_util.entry_block(func).arguments, site.operands, strict=True))
    *body, return_ = mlir_util.children(func)
    for op in body:
        copy = op.clone(ip=ir.InsertionPoint(site)).operation
        mlir_util.remap_operands(copy, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))
    mlir_util.replace_op(site, [mapping.get(value, value) for value in return_.operands])


def merge_modules(target: Any, source: Any) -> None:
    """Move all operations of ``source`` into ``target``; definitions replace declarations of their name."""
    present = {
        mlir_util.symbol_name(op): op for op in mlir_util.children(target.operation) if "sym_name" in op.attributes
    }
    for op in mlir_util.children(source.operation):
        old = present.get(mlir_util.symbol_name(op))
        if old is not None and old.name == "func.func" and not mlir_util.has_body(old):
            old.erase()
        elif old is not None and (op.name != "memref.global" or op.attributes["type"] == old.attributes["type"]):
            continue  # a shared helper or constant that stands there already
        elif old is not None:
            # A constant may be in several memories: then it is several globals.
            name = mlir_util.symbol_name(op)
            ir.SymbolTable.replace_all_symbol_uses(name, f"{name}_{len(present)}", source.operation)
            ir.SymbolTable.set_symbol_name(op, f"{name}_{len(present)}")
        target.body.append(op)


@contextmanager
def hidden_launches(module: Any) -> Generator[None]:
    """Only declarations of the functions that launch kernels: MLIR does not accept a launch without its kernel."""
    hidden: list[tuple[Any, Any]] = []
    for func in mlir_util.functions(module):
        if any(op.name == "gpu.launch_func" for op in mlir_util.walk(func)):
            func.detach_from_parent()
            name, type_ = mlir_util.symbol_name(func), mlir_util.function_type(func)
            hidden.append((func, mlir_util.declare(module, name, type_, func.location)))
    yield
    for func, declaration in hidden:
        module.body.append(func)
        declaration.erase()


def _lower_deallocations(module: Any, run_passes: RunPasses) -> None:
    """``bufferization.dealloc``, which the ownership pass left in ``module``, -> ``memref.dealloc``.

    That pass asks at run time which of several buffers are the same where it cannot tell; inlined, and with what
    is known of calls, it mostly can be told. A function never returns its arguments (it returns what it owns), so
    what a call returns is new memory.
    """
    left = False
    for func in mlir_util.functions(module):
        if mlir_util.has_body(func):
            left |= _Ownership(func).free_known()
    run_passes(module, pipeline("lower_deallocations" if left else "clean_up"))


class _Ownership:
    def __init__(self, func: Any) -> None:
        self._origins: dict[Any, Any] = {a: a for a in mlir_util.entry_block(func).arguments}
        self._fresh: dict[Any, Any] = {}
        self._true: set[Any] = set()
        self._deallocs: list[Any] = []
        self._clones = False
        for op in mlir_util.walk(func):
            self._visit(op)

    def _visit(self, op: Any) -> None:
        source = facts(op.name).view_of
        if source is not None:
            origin = self._origins.get(op.operands[source])
            if origin is not None:
                self._origins[op.results[0]] = origin
        elif op.name == "memref.get_global":
            self._origins[op.results[0]] = op.results[0]
        elif op.name == "memref.alloc":
            self._fresh[op.results[0]] = self._origins[op.results[0]] = op.results[0]
        elif op.name == "func.call":
            buffers = [result for result in op.results if mlir_util.is_memref(result.type)]
            # Results of one call may be the same buffer.
            for result in buffers:
                self._origins[result] = buffers[0]
            if len(buffers) == 1:
                self._fresh[buffers[0]] = buffers[0]
        elif op.name == "arith.constant" and op.results[0].type == ir.IntegerType.get_signless(1, op.context):
            if ir.IntegerAttr(op.attributes["value"]).value:
                self._true.add(op.results[0])
        elif op.name == _DEALLOC:
            self._deallocs.append(op)
        self._clones |= op.name == _CLONE

    def free_known(self) -> bool:
        """Whether operations of ``bufferization`` are left."""
        left = [self._free_known(op) for op in self._deallocs]
        return self._clones or any(left)

    def _free_known(self, op: Any) -> bool:
        buffers, conditions, retained = mlir_util.operand_groups(op)
        others = [self._origins.get(value) for value in (*buffers, *retained)]
        if any(origin is None for origin in others):
            return True
        kept: list[int] = []
        for position, condition in enumerate(conditions):
            origin = others[position]
            if condition in self._true and origin in self._fresh and others.count(origin) == 1:
                mlir_util.Builder(op).op("memref.dealloc", [origin])
            else:
                kept.append(position)
        if not kept:
            # Nothing that it retains was among what it freed: none of it is owned on its account.
            build = mlir_util.Builder(op)
            mlir_util.replace_op(op, [build.constant(0, result.type) for result in op.results])
            return False
        if len(kept) < len(buffers):
            groups = [buffers[k] for k in kept], [conditions[k] for k in kept], retained
            types = [result.type for result in op.results]
            mlir_util.replace_op(op, mlir_util.Builder(op).grouped(_DEALLOC, groups, types).results)
        return True
