"""Operations that xDSL's definitions, made for another version of MLIR, do not accept, or that it does not know.

MLIR has verified an imported module, so where xDSL refuses an operation, its definition is out of date. Such
operations become `UnregisteredOp`s, which any pass can carry along.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import cache

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, OpTrait

Signature = tuple[Hashable, ...]
"""The class of an operation, the types of its operands and results, and which attributes it has."""

REAL_NAME = "op_name__"
"""The attribute in which an `UnregisteredOp` keeps its name."""

_STRUCTURE = (ModuleOp, FuncOp)
"""Never unregistered: no pass works without them. Verifying them would mean a walk over all they hold."""


class UnregisterIncompatible:
    """Finds and unregisters the operations that xDSL's definitions do not accept.

    One operation of each signature is verified; verifying all would take several times as long as the import. What
    was found holds for the session: signatures compare types by identity, as one `AttributeBridge` allows.
    """

    def __init__(self, is_registered: Callable[[str], bool]) -> None:
        """``is_registered`` says whether MLIR knows an operation."""
        self._is_registered = is_registered
        self._accepted: set[Signature] = set()
        self._refused: set[Signature] = set()

    def run(self, root: Operation, samples: dict[Signature, Operation]) -> None:
        """Unregister what xDSL refuses under ``root``; ``samples`` has one operation of each signature there."""
        refused = samples.keys() & self._refused
        pending = {found: op for found, op in samples.items() if found not in self._accepted | refused}
        while True:
            refused |= {found for found, op in pending.items() if not _accepts(op)}
            if not refused:
                break
            ops = [root]  # which grows: xDSL's walk recurses
            for op in ops:
                ops += (inner for region in op.regions for block in region.blocks for inner in block.ops)
                found = signature(type(op), op.operands, op.result_types, op.properties, op.attributes)
                if not isinstance(op, UnregisteredOp) and found in refused:
                    self._unregister(op)
            self._refused |= refused
            # Again: what a verifier accepts can depend on the classes of the operations around.
            pending = {found: op for found, op in pending.items() if found not in refused}
            refused = set()
        self._accepted |= pending.keys()

    def _unregister(self, op: Operation) -> None:
        """Turn ``op`` into an unregistered operation of the same name, in place, so that its uses stay."""
        if self._is_registered(op.name):  # then MLIR tells properties from attributes on export
            op.attributes |= op.properties
            op.properties = {}
        op.attributes[REAL_NAME] = StringAttr(op.name)
        op.__class__ = foreign_class(op.name)


def signature(
    cls: type[Operation],
    operands: Iterable[SSAValue],
    result_types: Iterable[Attribute],
    properties: Iterable[str],
    attributes: Iterable[str],
) -> Signature:
    """The signature of an operation that xDSL knows, from its parts."""
    operand_types = [id(operand.type) for operand in operands]
    return (cls, len(operand_types), *operand_types, *map(id, result_types), *properties, *attributes)


def _accepts(op: Operation) -> bool:
    """Whether the definition of ``op`` accepts it, leaving aside what its bodies hold."""
    if isinstance(op, _STRUCTURE):
        return True
    # Verifiers written for another version fail in many ways (IndexError, AssertionError, VerifyException).
    try:
        op.verify_()
    except Exception:
        return False
    return True


_RESTRICTING = (IsolatedFromAbove, IsTerminator, NoTerminator)
"""Traits that forbid more than they permit to a pass that moves, merges or folds operations."""


@cache
def foreign_class(name: str) -> type[Operation]:
    """The class of unregistered operations ``name``: an `UnregisteredOp` that admits only to restricting traits.

    xDSL's own claims every trait. Its passes then take it for a constant, for one, and move it out of the loop
    that computes its operands.
    """

    class ForeignOp(UnregisteredOp.with_name(name)):
        @classmethod
        def has_trait(cls, trait: type[OpTrait] | OpTrait, *, value_if_unregistered: bool = True) -> bool:
            kind = trait if isinstance(trait, type) else type(trait)
            return value_if_unregistered and issubclass(kind, _RESTRICTING)

    return ForeignOp
