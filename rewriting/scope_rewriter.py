"""Rewriting a planned module without losing the plan.

A pattern written for xDSL's `PatternRewriter` knows nothing of scopes. Run by `rewrite_keeping_scopes`, or wrapped
in `ScopePreserving`, it gets a `ScopePreservingRewriter`, which keeps the promises that ``device-verify`` checks:

* **New operations** run where the operation that is rewritten runs (where its first result with data is). They
  carry ``device.scope`` only if what stands around them does not imply it. One that names a scope itself is
  placed there. What stands in the regions of a new operation says itself where it runs, or its surroundings do:
  only what is inserted through the rewriter inherits.
* **Operands and replaced values** that are on another scope than they are used on get a ``device.device_copy``:
  one that stands already and serves, else a new one right after the definition, or on the path that needs it. No
  copy can stand for buffers and function values: these raise `VerifyError`.
* **Copies** keep their destination. The source follows the operand.
* **Moved operations** (`move`, `inline_block`, `inline_region`, `move_region_contents_to_new_regions`) run where
  they ran before, whatever stands around them now.

Operations that a pattern changes in place keep their scope; `notify_op_modified` looks after their operands.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

from xdsl.builder import InsertOpInvT
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue, Use
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriterListener, PatternRewriteWalker, RewritePattern
from xdsl.rewriter import BlockInsertPoint, InsertPoint, Rewriter

from devscope.analysis.scope_analysis import Need, ScopeAnalysis
from devscope.analysis.symbols import function_of
from devscope.analysis.value_flow import targets
from devscope.analysis.value_kinds import HOST, TENSOR, kind_of
from devscope.dialects.device import HOST_SCOPE, DeviceCopyOp, ScopeAttr
from devscope.dialects.location import error_at
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import drop_scopes, scope_on, write_scope
from devscope.errors import DevscopeError
from devscope.rewriting.copies import copies_of, dominates, place_of_copy

_Kept = list[tuple[Operation, ScopeAttr]]


class ScopePreservingRewriter(PatternRewriter):
    """A `PatternRewriter` for one match, of ``op``; see the module's docstring for what it keeps.

    ``listener`` is told of all changes, as ``scopes`` is.
    """

    def __init__(
        self, op: Operation, scopes: ScopeAnalysis, listener: PatternRewriterListener | None = None
    ) -> None:
        super().__init__(op)
        self.scopes = scopes
        self._root = op
        self._inherited: ScopeAttr | None = None
        # A pattern may take regions or operands away, and with them what says where these values are.
        self._before = {value: scopes.of_value(value) for value in _carried_by(op)}
        self.extend_from_listener(scopes.listener)
        if listener is not None:
            self.extend_from_listener(listener)

    # New operations

    @property
    def inherited(self) -> ScopeAttr:
        """The scope that new operations get."""
        if self._inherited is None:
            self._inherited = self._scope_of(self._root)
        return self._inherited

    def _scope_of(self, op: Operation) -> ScopeAttr:
        data = next((result for result in op.results if kind_of(result.type) != HOST), None)
        if data is not None:
            return self._of_value(data)
        return self.scopes.of_op(op) if self.scopes.executes(op) else self.scopes.lexical(op)

    def _of_value(self, value: SSAValue) -> ScopeAttr:
        return self._before.get(value) or self.scopes.of_value(value)

    def insert(self, op: InsertOpInvT, insertion_point: InsertPoint | None = None) -> InsertOpInvT:
        """Insert operations, and give them a scope; copies that their operands need are inserted, too."""
        scope = self.inherited
        super().insert(op, insertion_point)
        new = (op,) if isinstance(op, Operation) else op
        for one in new:
            if isinstance(one.location, UnknownLoc):
                one.location = self._root.location
            self._write_scopes([(one, scope_on(one) or scope)])
            if self.scopes.executes(one):
                for region in one.regions:
                    drop_scopes(region)
            elif one.regions and self._is_attached(one):
                self._write_scopes(self._kept(one.regions))
        for one in new:
            self._repair(one)
        return op

    def replace(
        self,
        op: Operation,
        new_ops: Operation | Sequence[Operation],
        new_results: Sequence[SSAValue | None] | None = None,
        safe_erase: bool = True,
    ) -> None:
        """Replace an operation; the new ones run where it did, and results are copied to where its were."""
        outer = self._inherited
        self._inherited = self._scope_of(op)
        try:
            super().replace(op, new_ops, new_results, safe_erase)
        finally:
            if op is not self._root:
                self._inherited = outer

    def erase(self, op: Operation, safe_erase: bool = True) -> None:
        """Erase an operation. What is inserted afterwards in its place still runs where it did."""
        if op is self._root:
            self._inherited = self.inherited
        super().erase(op, safe_erase)

    def place(self, op: Operation, scope: ScopeAttr) -> None:
        """Let an operation run on another scope: operands come, and results go back, by copies.

        Raises `VerifyError` for what has no scope of its own (`ScopeAnalysis.executes`), and for buffers.
        """
        if not self.scopes.executes(op):
            raise error_at(op, f"'{op_name(op)}' runs on the host, and cannot be placed")
        before = {result: self.scopes.of_value(result) for result in op.results if kind_of(result.type) != HOST}
        self._write_scopes([(op, scope)])
        for result, was in before.items():
            for user, index in [(use.operation, use.index) for use in result.uses]:
                if isinstance(user, DeviceCopyOp):
                    self._repair(user)
                else:
                    user.operands[index] = self._on(result, was, [user])
        self.notify_op_modified(op)

    # Values

    def replace_all_uses_with(
        self, from_value: SSAValue, to_value: SSAValue | None, safe_erase: bool = True
    ) -> None:
        """Replace a value, by a copy of ``to_value`` if that is on another scope."""
        if to_value is not None and from_value is not to_value:
            to_value = self._in_place_of(from_value, to_value, [use.operation for use in from_value.uses])
        super().replace_all_uses_with(from_value, to_value, safe_erase)

    def replace_uses_with_if(
        self, from_value: SSAValue, to_value: SSAValue, predicate: Callable[[Use], bool]
    ) -> None:
        """Replace some uses of a value, by a copy of ``to_value`` if that is on another scope."""
        chosen = {use for use in from_value.uses if predicate(use)}
        to_value = self._in_place_of(from_value, to_value, [use.operation for use in chosen])
        super().replace_uses_with_if(from_value, to_value, chosen.__contains__)

    def notify_op_modified(self, op: Operation) -> None:
        """Say that an operation was changed in place. Operands on other scopes get copies."""
        super().notify_op_modified(op)
        self._repair(op)

    def _in_place_of(self, old: SSAValue, new: SSAValue, users: Sequence[Operation]) -> SSAValue:
        if kind_of(old.type) == HOST or not users:
            return new
        return self._on(new, self._of_value(old), users)

    def _repair(self, op: Operation) -> None:
        """Insert the copies that an operation, and what stands in its regions, needs."""
        if not self._is_attached(op):
            return
        op = self.scopes.computation(op)
        inner = self._operations(op.regions) if facts_of(op).is_entered else ()
        for one in (op, *inner):
            for need in self._needs(one):
                value = need.op.operands[need.operand]
                actual = self._of_value(value)
                if actual == need.scope:
                    continue
                if isinstance(one, DeviceCopyOp) and one.dst != actual:
                    one.src = actual
                else:
                    need.op.operands[need.operand] = self._on(value, need.scope, [need.op])
                self.handle_operation_modification(need.op)

    def _needs(self, op: Operation) -> list[Need]:
        carried = {index: self._before[target] for index, target in targets(op) if target in self._before}
        needs = self.scopes.needs(op)
        return [need._replace(scope=carried[need.operand]) if need.operand in carried else need for need in needs]

    def _on(self, value: SSAValue, scope: ScopeAttr, users: Sequence[Operation]) -> SSAValue:
        """``value``, or a copy of it, on ``scope``, for ``users``, all of which it dominates."""
        if self._is_on(value, scope, users[0]):
            return value
        if isinstance(value, OpResult) and isinstance(value.op, DeviceCopyOp) and value.op.src == scope:
            return value.op.operand
        for copy in copies_of(value, scope):
            if all(dominates(copy, user) for user in users):
                return copy.result
        return self._copy(value, scope, place_of_copy(value, users))

    def _is_on(self, value: SSAValue, scope: ScopeAttr, user: Operation) -> bool:
        """Whether ``value`` is on ``scope``; raises `VerifyError` if it neither is nor can be copied there."""
        actual = self._of_value(value)
        if actual == scope:
            return True
        if kind_of(value.type) == TENSOR:
            return False
        problem = f"a {value.type} on {actual.short()} is used on {scope.short()}"
        remedy = "rewrite it to a value on the same scope"
        raise error_at(user, f"{problem}, and no device.device_copy can stand for it", remedy)

    def _copy(self, value: SSAValue, scope: ScopeAttr, place: InsertPoint) -> SSAValue:
        copy = DeviceCopyOp(value, self._of_value(value), scope)
        copy.location = self._root.location
        PatternRewriter.insert(self, copy, place)
        return copy.result

    # Moves

    def move(self, op: Operation, insertion_point: InsertPoint) -> None:
        """Move an operation to another place, where it runs as it ran before."""
        kept = self._kept([op])
        op.detach()
        Rewriter.insert_op(op, insertion_point)
        self._write_scopes(kept)
        self.has_done_action = True
        self.handle_operation_modification(op)

    def inline_block(
        self, block: Block, insertion_point: InsertPoint, arg_values: Sequence[SSAValue] = ()
    ) -> None:
        """Move the operations of a block; they run where they ran. ``arg_values`` are copied to where they ran."""
        values = [
            self._at(value, self._of_value(argument), insertion_point) if argument.first_use is not None else value
            for argument, value in zip(block.args, arg_values, strict=False)
        ]
        with self._moving(block):
            super().inline_block(block, insertion_point, values if arg_values else ())

    def inline_region(self, region: Region, insertion_point: BlockInsertPoint) -> None:
        """Move the blocks of a region; their operations run where they ran."""
        with self._moving(region):
            super().inline_region(region, insertion_point)

    def move_region_contents_to_new_regions(self, region: Region) -> Region:
        """Move the blocks of a region to a new one; their operations run where they ran."""
        with self._moving(region):
            return super().move_region_contents_to_new_regions(region)

    def insert_block_argument(self, block: Block, index: int, arg_type: Attribute) -> BlockArgument:
        """Insert a block argument."""
        argument = super().insert_block_argument(block, index, arg_type)
        self.scopes.invalidate()
        return argument

    def erase_block_argument(self, arg: BlockArgument, safe_erase: bool = True) -> None:
        """Erase a block argument."""
        super().erase_block_argument(arg, safe_erase)
        self.scopes.invalidate()

    def _at(self, value: SSAValue, scope: ScopeAttr, place: InsertPoint) -> SSAValue:
        """``value``, or a copy of it, on ``scope``, in front of ``place``."""
        if kind_of(value.type) == HOST or self._is_on(value, scope, self._root):
            return value
        return self._copy(value, scope, place)

    def _kept(self, within: Iterable[Operation | Block | Region]) -> _Kept:
        """The operations that run somewhere, with where they do now."""
        return [(op, self.scopes.lexical(op)) for op in self._operations(within) if self.scopes.executes(op)]

    def _operations(self, within: Iterable[Operation | Block | Region]) -> list[Operation]:
        found: list[Operation] = []
        stack: list[Operation | Block | Region] = list(within)
        while stack:
            current = stack.pop()
            if isinstance(current, Operation):
                found.append(current)
                stack += current.regions if facts_of(current).is_entered else ()
            else:
                stack += current.blocks if isinstance(current, Region) else current.ops
        return found

    @contextmanager
    def _moving(self, within: Block | Region) -> Generator[None]:
        """Moves operations, which run afterwards where they ran."""
        kept = self._kept([within])
        yield
        self.scopes.invalidate()
        self._write_scopes(kept)

    def _write_scopes(self, kept: _Kept) -> None:
        """Let each operation say where it runs, if it has a scope and its surroundings do not say so.

        What stands nowhere yet says it in any case; it is asked again when it is inserted.
        """
        for op, scope in kept:
            parent = op.parent_op()
            attached = parent is not None and self._is_attached(parent)
            implied = attached and parent is not None and self.scopes.lexical(parent) == scope
            write_scope(op, scope, implied or not self.scopes.executes(op))

    @staticmethod
    def _is_attached(op: Operation) -> bool:
        return isinstance(op, FuncOp) or function_of(op) is not None


class ScopePreserving(RewritePattern):
    """A pattern that runs ``pattern`` with a `ScopePreservingRewriter`.

    A `DevscopeError` in it ends the rewriting: nothing more is matched, and `failure` has the error.
    """

    def __init__(self, pattern: RewritePattern, scopes: ScopeAnalysis) -> None:
        self.pattern = pattern
        self.scopes = scopes
        self.failure: DevscopeError | None = None

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if self.failure is not None:
            return
        keeper = ScopePreservingRewriter(op, self.scopes, rewriter)
        try:
            self.pattern.match_and_rewrite(op, keeper)
        except DevscopeError as error:
            self.failure = error
        else:
            rewriter.has_done_action |= keeper.has_done_action


def rewrite_keeping_scopes(
    module: ModuleOp,
    pattern: RewritePattern,
    host: ScopeAttr = HOST_SCOPE,
    post_walk: Callable[[Region, PatternRewriterListener], bool] | None = None,
) -> bool:
    """Apply a pattern to a planned module until nothing changes; it stays planned. Whether anything changed.

    Raises the `DevscopeError` that the pattern or the rewriter raised. The module is then half rewritten.
    """
    scopes = ScopeAnalysis(module, host)
    keeper = ScopePreserving(pattern, scopes)
    changed = PatternRewriteWalker(keeper, listener=scopes.listener, post_walk_func=post_walk).rewrite_module(
        module
    )
    if keeper.failure is not None:
        raise keeper.failure
    return changed


def _carried_by(op: Operation) -> list[SSAValue]:
    """What control flow carries into or out of ``op``, or what ``op``, its end, carries."""
    inner = [a for region in op.regions for block in region.blocks for a in block.args]
    return [*op.results, *inner] if facts_of(op).is_entered else [target for _, target in targets(op)]
