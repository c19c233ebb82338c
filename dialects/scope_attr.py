"""`ScopeAttr`, the attribute that says where data is stored and code runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.utils.exceptions import VerifyException

from devscope.dialects.target import check_device_type
from devscope.dialects.target_attr import TargetAttr, parse_with_defaults, raise_verify_exception
from devscope.errors import OptionError

SCOPE_ATTR = "device.scope"
"""Name of the attribute that says where an operation runs or an argument or result is stored."""

PLACED_BY_ATTR = "device.placed_by"
"""Name of the attribute that says, in words, whose ``device.scope`` an operation has: a rule's, a pragma's."""

OPEN_ID = -1
"""The virtual device id of a scope that leaves it open."""

_MEMORY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_SHORT_SCOPE = re.compile(r"(?P<type>[^:@]+)?(:(?P<id>[0-9]+))?(@(?P<memory>[^:@]+))?")

_Fields = tuple[str, int, TargetAttr | None, str]
_OPEN: _Fields = ("", OPEN_ID, None, "")


@irdl_attr_definition
class ScopeAttr(ParametrizedAttribute):
    """Where data is stored or code runs. Each of the four fields may be open (``""``, and ``-1`` for the id).

    ```mlir
    #device.scope<"cuda", 0 : i64, #device.target<"cuda", {arch = "sm_90"}>, "global">
    ```

    Trailing open fields may be left out when xDSL parses; they are always printed. A scope prints as it was
    written, so that it is the same attribute in MLIR, but compares by meaning: the name of a target kind
    equals a target of that kind without options, and a target closes the device type. Scopes that devscope
    builds have the shortest form and the device type filled in.

    The rules are those of TVM's VirtualDevice, except that ids and memory scopes never flow between device
    types and that targets are compared structurally.
    """

    name = "device.scope"

    device_type: StringAttr
    device_id: IntegerAttr
    target: StringAttr | TargetAttr
    memory: StringAttr

    @classmethod
    def get(
        cls,
        device_type: str = "",
        device_id: int = OPEN_ID,
        target: TargetAttr | str | None = None,
        memory: str = "",
    ) -> ScopeAttr:
        """The scope with these fields. Raises `OptionError` that says what is legal."""
        known = TargetAttr.get(target) if isinstance(target, str) and target else target or None
        assert not isinstance(known, str)
        _check_scope(device_type, device_id, known, memory)
        return cls._from_fields((device_type, device_id, known, memory))

    @classmethod
    def _from_fields(cls, fields: _Fields) -> ScopeAttr:
        device_type, device_id, target, memory = fields
        if target is not None:
            device_type = target.device_type
        shortest = target if target is not None and target.options.data else None
        name = StringAttr(target.kind_name if target is not None else "")
        return cls.new(
            (StringAttr(device_type), IntegerAttr(device_id, i64), shortest or name, StringAttr(memory))
        )

    @property
    def _written(self) -> _Fields:
        """The parameters as Python values; raises `OptionError` for an unknown target kind."""
        target = self.target
        if isinstance(target, StringAttr):
            target = TargetAttr.get(target.data) if target.data else None
        return self.device_type.data, self.device_id.value.data, target, self.memory.data

    @property
    def _fields(self) -> _Fields:
        """The meaning: device type, id, target, memory scope. Computed once; the attribute is immutable."""
        fields: _Fields | None = self.__dict__.get("_fields_cache")
        if fields is None:
            device_type, device_id, target, memory = self._written
            fields = (target.device_type if target is not None else device_type, device_id, target, memory)
            object.__setattr__(self, "_fields_cache", fields)
        return fields

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ScopeAttr) and self._fields == other._fields)

    def __hash__(self) -> int:
        return hash(self._fields)

    @classmethod
    def parse_text(cls, text: str) -> ScopeAttr:
        """The scope written ``[TYPE][:ID][@MEMORY]``, as in ``cpu``, ``opencl:0`` and ``opencl:0@global``.

        Raises `OptionError` when ``text`` has another form or names an unknown device type.
        """
        match = _SHORT_SCOPE.fullmatch(text.strip())
        if match is None or not match[0]:
            raise OptionError(
                f"'{text}' is not a scope",
                notes=["a scope is TYPE, TYPE:ID or TYPE:ID@MEMORY, such as cpu, opencl:0, opencl:0@global"],
            )
        device_id = int(match["id"]) if match["id"] else OPEN_ID
        return cls.get(match["type"] or "", device_id, memory=match["memory"] or "")

    @property
    def type_name(self) -> str:
        """The device type, ``""`` when open. A target closes it."""
        return self._fields[0]

    @property
    def id_value(self) -> int:
        """The virtual device id, -1 when open."""
        return self._fields[1]

    @property
    def target_attr(self) -> TargetAttr | None:
        """The target, None when open."""
        return self._fields[2]

    @property
    def memory_name(self) -> str:
        """The memory scope, ``""`` when open."""
        return self._fields[3]

    @property
    def is_open(self) -> bool:
        """Whether all four fields are open: the scope demands nothing."""
        return self._fields == _OPEN

    @property
    def memory_location(self) -> ScopeAttr:
        """Device and memory scope: where data is, apart from how code is compiled.

        Code of several targets can share one device, and then shares its memory.
        """
        if self.target_attr is None:
            return self
        return ScopeAttr.get(self.type_name, self.id_value, memory=self.memory_name)

    @property
    def symbol_name(self) -> str:
        """The device as a part of a symbol: ``opencl1``."""
        return f"{self.type_name}{max(self.id_value, 0)}"

    def same_device(self, other: ScopeAttr) -> bool:
        """Whether both name the same device type and id; targets and memory scopes may differ."""
        return self._fields[:2] == other._fields[:2]

    def join(self, other: ScopeAttr) -> ScopeAttr | None:
        """The weakest scope that satisfies both, field by field; None when two closed fields differ."""
        if self == other:
            return self
        for left, right, opened in zip(self._fields, other._fields, _OPEN, strict=True):
            if left != right and opened not in (left, right):
                return None
        return self._closed_from(other)

    def default_from(self, other: ScopeAttr) -> ScopeAttr:
        """This scope with its open fields taken from ``other``; never fails.

        Id, target and memory scope mean something on one device type only: they are taken only when the
        resulting device type is that of ``other``.
        """
        return self._closed_from(other) if self.type_name in ("", other.type_name) else self

    def _closed_from(self, other: ScopeAttr) -> ScopeAttr:
        mine, theirs = self._fields, other._fields
        device_id = theirs[1] if mine[1] == OPEN_ID else mine[1]
        fields = (mine[0] or theirs[0], device_id, mine[2] or theirs[2], mine[3] or theirs[3])
        if fields == mine:
            return self
        return other if fields == theirs else ScopeAttr._from_fields(fields)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        form = (
            "a scope is written #device.scope<TYPE, ID, TARGET, MEMORY> with a string, an i64, a "
            'string or #device.target, and a string; "" and -1 are open, and trailing open fields '
            "may be left out"
        )
        return parse_with_defaults(cls, parser, OPEN_SCOPE.parameters, form)

    def verify(self) -> None:
        if self.device_id.type != i64:
            raise VerifyException(f"a device id is an i64, such as 0 : i64, not {self.device_id}")
        try:
            _check_scope(*self._written)
        except OptionError as error:
            raise_verify_exception(error)

    def short(self) -> str:
        """The scope for tables and messages, such as ``opencl:0``, ``cuda:1@global``, or ``open``.

        A target follows in angle brackets. Without one, and not all open, `parse_text` reads the text back.
        """
        device_id = f":{self.id_value}" if self.id_value != OPEN_ID else ""
        memory = f"@{self.memory_name}" if self.memory_name else ""
        target = self.target_attr
        shown = f"<{target.short()}>" if target is not None else ""
        return f"{self.type_name}{device_id}{memory}{shown}" or "open"


def _check_scope(device_type: str, device_id: int, target: TargetAttr | None, memory: str) -> None:
    """Raise `OptionError` unless the fields are legal by themselves and agree."""
    if device_type:
        check_device_type(device_type)
    if not OPEN_ID <= device_id < 2**63:
        raise OptionError(
            f"{device_id} is not a device id",
            notes=[f"an id is 0 or more and fits an i64; {OPEN_ID} is open"],
        )
    if memory and not _MEMORY_NAME.fullmatch(memory):
        raise OptionError(
            f"'{memory}' is not a memory scope",
            notes=["a memory scope is a name of letters, digits, '_', '.' and '-', such as global"],
        )
    if target is not None and device_type and target.device_type != device_type:
        raise OptionError(
            f"target '{target.kind_name}' compiles for devices of type '{target.device_type}', "
            f"not '{device_type}'",
            notes=[f"a scope on '{device_type}' needs a target of that device type, or an open target"],
        )


OPEN_SCOPE = ScopeAttr.get()
"""The scope with all fields open."""


HOST_SCOPE = ScopeAttr.get("cpu", 0)
"""Where scalars, shapes and control flow are."""
