"""Answers to "why is this there?" about one value, a line of the source, or a part of a model."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from devscope.analysis.placement import fits_location, fits_op
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import function_of
from devscope.analysis.value_kinds import HOST, byte_size, kind_of
from devscope.dialects.device import DeviceCopyOp
from devscope.dialects.location import (
    source_kinds,
    source_location,
    source_name,
    source_parts,
    value_location,
)
from devscope.errors import InputError, Note, OptionError, SourceLocation
from devscope.passes.device_plan.capture import Part
from devscope.passes.device_plan.domains import HOST_NODE, REMATERIALISED
from devscope.passes.device_plan.report.plan import Plan
from devscope.passes.device_plan.system import System

_QUERY = re.compile(
    r"(?:@(?P<function>[^:]+):)?(?P<name>%[A-Za-z0-9$._-]+(?:#[0-9]+)?)|(?:(?P<file>.+):)?(?P<line>[0-9]+)"
)


@dataclass(frozen=True)
class Query:
    """A name, if need be in one function; a line, if need be of one file; or what a model calls a part of it."""

    text: str
    name: str | None = None
    function: str | None = None
    file: str | None = None
    line: int = 0

    @classmethod
    def parse(cls, text: str) -> Query:
        """``%5``, ``%r#1``, ``@f:%5``, ``7``, ``model.mlir:7``, else a pattern of rules: ``layer1.*``, ``Conv``.

        Raises OptionError.
        """
        match = _QUERY.fullmatch(text)
        if match is not None:
            return cls(text, match["name"], match["function"], match["file"], int(match["line"] or 0))
        if not text or text[0] in "%@":
            raise OptionError(
                f"'{text}' names neither a value nor a line",
                notes=[
                    "write %name, @function:%name, LINE or FILE:LINE",
                    "or the name of a module, a node, a scope or an argument of the model, or what it is made of",
                ],
            )
        return cls(text)

    @property
    def is_pattern(self) -> bool:
        """Whether it is what a model calls a part of itself."""
        return self.name is None and not self.line

    def fits(self, op: Operation) -> bool:
        """Whether a pattern fits what the source says of an operation, as rules do that place it."""
        globs = (self.text,)
        return fits_location(globs, source_parts(op)) or fits_op(globs, source_kinds(op))

    def is_on_line(self, where: SourceLocation | None) -> bool:
        if where is None or where.line != self.line:
            return False
        return self.file is None or where.file == self.file or where.file.endswith(f"{os.sep}{self.file}")

    def has_name(self, name: str | None) -> bool:
        """Whether the query means this name: ``%r`` means ``%r#1`` too."""
        return name is not None and self.name in (name, name.partition("#")[0])


def explain(plan: Plan, module: ModuleOp, query: Query) -> str:
    """Why everything that ``query`` means is where it is. Raises InputError when it means nothing."""
    return _Answer(plan, module, query).text()


@dataclass(frozen=True)
class _Entry:
    """A value and the part of the plan that it belongs to, None for a scalar."""

    value: SSAValue
    part: Part | None


class _Answer:
    def __init__(self, plan: Plan, module: ModuleOp, query: Query) -> None:
        self._plan, self._module, self._query = plan, module, query
        self._names = plan.names
        self._originals = {clone.name: clone.original for clone in plan.clones}
        self._made = {copy.op for part in plan.parts for copy in part.copies if copy.user is not None}
        self._analysis = ScopeAnalysis(module)
        self._home = {signature.op: part for part in plan.parts for signature in part.system.signatures.values()}

    def text(self) -> str:
        if self._query.name is not None:
            paragraphs = self._of_name()
        elif self._query.is_pattern:
            paragraphs = self._of_pattern()
        else:
            paragraphs = self._of_line()
        if not paragraphs:
            raise self._nothing()
        return "\n".join(paragraphs)

    # Finding

    def _entries(self) -> Iterator[_Entry]:
        """Every value of the program: those that planning knows, then scalars."""
        for part in self._plan.parts:
            for value in part.system.nodes:
                if value.owner not in self._made:
                    yield _Entry(value, part)
        for value in _values(self._module):
            if kind_of(value.type) == HOST:
                yield _Entry(value, None)

    def _of_name(self) -> list[str]:
        found = [entry for entry in self._entries() if self._query.has_name(self._names.name(entry.value))]
        wanted = self._query.function
        if wanted is not None:
            found = [e for e in found if wanted in (name := self._function(e), self._originals.get(name))]
        return [self._about_values([entry]) for entry in found]

    def _of_line(self) -> list[str]:
        def is_there(value: SSAValue) -> bool:
            return self._query.is_on_line(value_location(value)) and self._is_own_position(value)

        return self._of(is_there, lambda op: self._query.is_on_line(source_location(op)))

    def _of_pattern(self) -> list[str]:
        """What planning places; else, what follows its users, and scalars."""

        def is_meant(value: SSAValue) -> bool:
            if isinstance(value.owner, Operation):
                return self._query.fits(value.owner)
            return self._names.of_argument(value) == self._query.text

        return self._of(is_meant, self._query.fits, placed_alone=True) or self._of(is_meant, self._query.fits)

    def _of(
        self,
        is_meant: Callable[[SSAValue], bool],
        is_op_meant: Callable[[Operation], bool],
        placed_alone: bool = False,
    ) -> list[str]:
        """Values that are meant, then operations that define none."""
        groups: dict[tuple[object, int], list[_Entry]] = {}
        for entry in self._entries():
            is_placed = self._node(entry) not in (HOST_NODE, REMATERIALISED)
            if (is_placed or not placed_alone) and is_meant(entry.value):
                owner = entry.value.owner
                key = (owner if isinstance(owner, Operation) else entry.value, self._node(entry))
                groups.setdefault(key, []).append(entry)
        paragraphs = [self._about_values(entries) for entries in groups.values()]
        for func, part in self._home.items():
            if is_op_meant(func):
                paragraphs += self._about_results(func, part)
            for op in func.walk():
                if op is not func and op not in self._made and is_op_meant(op):
                    paragraphs += self._about_operation(op, part)
        return paragraphs

    def _is_own_position(self, value: SSAValue) -> bool:
        """Arguments without a position of their own stand where their operation does: they are not meant."""
        return not isinstance(value.owner, Block) or self._names.name(value) is not None

    def _nothing(self) -> InputError:
        query = self._query
        if query.is_pattern:
            return self._no_part()
        if query.name is None:
            return InputError(
                f"nothing that planning places stands in line {query.line}"
                + (f" of '{query.file}'" if query.file is not None else ""),
                notes=["give a line on which an operation or argument begins"],
            )
        names = sorted({name for e in self._entries() if (name := self._names.name(e.value)) is not None})
        where = f" in @{query.function}" if query.function is not None else ""
        close = difflib.get_close_matches(query.name, names, n=3)
        notes = [f"did you mean {' or '.join(close)}?"] if close else []
        if query.function is not None:
            functions = [func.sym_name.data for func in self._module.ops if isinstance(func, FuncOp)]
            functions = [name for name in functions if name not in self._originals]
            if query.function not in functions:
                notes = [f"the functions are: {', '.join(f'@{name}' for name in functions)}"]
        elif not names:
            notes = ["names come from the text of the program: of bytecode, ask for lines"]
        return InputError(f"no value is called {query.name}{where}", notes=notes)

    def _no_part(self) -> InputError:
        """No part of the model is called so, nor an argument."""
        ops = [op for part in self._plan.parts for op, _, _ in part.placed]
        names = {part for op in ops for part in (source_name(op), *source_kinds(op)) if part is not None}
        arguments = (self._names.of_argument(entry.value) for entry in self._entries())
        names.update(name for name in arguments if name is not None)
        close = difflib.get_close_matches(self._query.text, sorted(names), n=3)
        notes = [f"did you mean {' or '.join(close)}?"] if close else []
        if not names:
            notes = ["this program has no such names: write %name, @function:%name, LINE or FILE:LINE"]
        return InputError(f"no part of the program is called '{self._query.text}'", notes=notes)

    # Saying

    def _about_values(self, entries: Sequence[_Entry]) -> str:
        """A paragraph about values of one node."""
        first = entries[0]
        names = ", ".join(self._plan.formatter.value(entry.value) for entry in entries)
        where = value_location(first.value)
        place = f" ({where})" if where is not None and str(where) not in names else ""
        function = self._called(self._function(first))
        head = f"{names} in {function}{place} {'is' if len(entries) == 1 else 'are'}"
        if first.part is None:
            return self._about_scalar(head, first.value)
        node = self._node(first)
        if node == REMATERIALISED:
            return f"{head} made again on every scope that needs it\n{self._remade(first)}"
        chain = self._plan.explainer.chain_of_value(first.part.system, first.value)
        copies = (line for entry in entries for line in self._copies(entry))
        return _paragraph(f"{head} on {self._scope(first.part, node)}", *_indented(chain), *copies)

    def _about_scalar(self, head: str, value: SSAValue) -> str:
        """A scalar or vector: of a computation's body, read back from a device, or the host's own."""
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        around = self._analysis.computation(op) if op is not None else None
        if around is not None and around in self._plan.places and (around is not op or isinstance(owner, Block)):
            system, node = self._plan.places[around]
            where = self._scope_of(system, node)
            head = f"{head} computed in the body of {self._plan.formatter.op(around)}, which runs on {where}"
            return _paragraph(head, *_indented(self._plan.explainer.chain(system, node)))
        if op is not None and op in self._plan.places:
            system, node = self._plan.places[op]
            if (where := self._scope_of(system, node)) != system.host.short():
                often = str(self._plan.repetitions.of(op))
                head = f"{head} read back from {where} to the host{f', {often}' if often else ''}"
                return _paragraph(head, *_indented(self._plan.explainer.chain(system, node)))
        return f"{head} on the host: scalars always are\n"

    def _scope_of(self, system: System, node: int) -> str:
        if node == REMATERIALISED:
            return "every scope that needs it"
        return system.scopes.short(system.domains.scope_of(node)) if node >= 0 else "the host"

    def _copies(self, entry: _Entry) -> Iterator[str]:
        """What is copied of a value, and why it is needed elsewhere."""
        assert entry.part is not None
        root = entry.part.system.root(entry.value)
        for copy in entry.part.copies:
            if copy.value not in (entry.value, root):
                continue
            size = byte_size(copy.value.type)
            amount = f"{size:,} bytes" if size is not None else "a size known at run time only"
            users = dict.fromkeys(use.operation for use in copy.op.result.uses)
            names = self._plan.formatter.operations([*users]) or "nobody"
            often = str(self._plan.repetitions.of(copy.op))
            yield f"  copied to {copy.op.dst.short()} ({amount}{f', {often}' if often else ''}) for {names}"
            if copy.use is not None:
                yield from _indented(self._plan.why_needed(entry.part.system, copy.use), 4)

    def _remade(self, entry: _Entry) -> str:
        part = entry.part
        assert part is not None
        lines: dict[str, None] = {}
        for use in part.system.remat_uses:
            operand = use.value
            if operand is entry.value or _is_clone(operand, entry.value):
                scope = self._scope(part, use.dst)
                lines[f"  on {scope} for {self._plan.formatter.op(use.op)}"] = None
                lines.update(dict.fromkeys(_indented(self._plan.explainer.chain(part.system, use.dst), 4)))
        return _paragraph(*lines)

    def _about_results(self, func: FuncOp, part: Part) -> Iterator[str]:
        """The results of a function, when its first line was asked for."""
        signature = part.system.signatures.get(self._originals.get(func.sym_name.data, func.sym_name.data))
        for index, node in enumerate(signature.results if signature is not None else ()):
            for number in part.system.domains.first_order(node):
                yield self._placed(f"result #{index} of @{func.sym_name.data} is", part, number)

    def _about_operation(self, op: Operation, part: Part) -> Iterator[str]:
        """An operation without results of its own to speak of: where it runs, or what it uses where."""
        if any(value in part.system.nodes for value in op.results) or isinstance(op, DeviceCopyOp):
            return
        place = self._plan.places.get(op)
        if place is not None and place[1] == REMATERIALISED:
            return  # A clone of what the line defines.
        if place is not None:
            head = f"{self._plan.formatter.op(op)} in {self._called(self._function_of(op))} runs"
            yield self._placed(head, part, place[1])
            return
        for index in range(len(op.operands)):
            node = self._plan.explainer.provenance(part.system).destination(op, index)
            if node is not None and node != HOST_NODE:
                yield self._placed(f"{self._plan.formatter.reason(('use', op, index))},", part, node)

    def _placed(self, what: str, part: Part, node: int) -> str:
        """A paragraph that says where something is, and why."""
        chain = self._plan.explainer.chain(part.system, node)
        return _paragraph(f"{what} on {self._scope(part, node)}", *_indented(chain))

    def _called(self, function: str) -> str:
        original = self._originals.get(function)
        return f"@{function}" + (f", a clone of @{original}," if original is not None else "")

    # Looking up

    def _node(self, entry: _Entry) -> int:
        if entry.part is None:
            return HOST_NODE
        system = entry.part.system
        node = system.nodes[entry.value]
        # A function value is where its first part is.
        return node if node < 0 else next(iter(system.domains.first_order(node)), HOST_NODE)

    def _scope(self, part: Part, node: int) -> str:
        return self._scope_of(part.system, node)

    def _function(self, entry: _Entry) -> str:
        value = entry.value
        while True:
            # What planning has erased stood for another value.
            value = entry.part.system.root(value) if entry.part is not None else value
            owner = value.owner
            block = owner if isinstance(owner, Block) else owner.parent
            if block is not None or isinstance(owner, Block) or not owner.operands:
                return self._function_of(block.parent_op() if block is not None else None)
            value = owner.operands[0]

    def _function_of(self, op: Operation | None) -> str:
        function = op if isinstance(op, FuncOp) or op is None else function_of(op)
        return function.sym_name.data if function is not None else "?"


def _is_clone(value: SSAValue, other: SSAValue) -> bool:
    """Whether both are results of what the source has once: planning clones what is made again."""
    op, original = value.owner, other.owner
    if not isinstance(op, Operation) or not isinstance(original, Operation) or op.name != original.name:
        return False
    return op.location == original.location and bool(source_parts(op))


def _paragraph(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _indented(notes: Iterable[Note], depth: int = 2) -> list[str]:
    return [f"{' ' * depth}{note}" for note in notes]


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    """Every value of a module, in order."""
    for op in module.walk():
        for region in op.regions:
            for block in region.blocks:
                yield from block.args
        yield from op.results
