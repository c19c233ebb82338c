"""Rules that place operations: an ordered list, the first that fits counts, the last one may be the default.

`placement_file` reads them from TOML, docs/placing.md explains them, and the pass ``device-place`` applies them.
Needs no xDSL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from devscope.analysis.amounts import parse_size
from devscope.dialects.target import check_device_type
from devscope.errors import OptionError, SourceLocation

AUTO = "auto"
"""In place of a device, in a default: wherever it costs least."""

SIZES = ("elements", "bytes", "flops")
LIMITS = tuple(f"{end}_{size}" for size in SIZES for end in ("min", "max"))
PATTERNS = ("match", "op", "location", "function")

_SCOPE = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)(:[0-9]+)?(@[A-Za-z0-9_.-]+)?")
_LINES = re.compile(r"(.*):([0-9]+)-([0-9]+)")
_WRAPPED = re.compile(r"[\w.<>-]+\((.*)\)")


@dataclass(frozen=True)
class Rule:
    """Operations that fit all conditions go to ``device``: ``"opencl:0"``, or ``"auto"`` in a default.

    Conditions, each a glob (``*``, ``?``, ``[abc]``) or a sequence of globs of which one has to fit:

    * ``op``: the operation's name, ``"linalg.matmul"``, that of what it was made of, ``"stablehlo.dot_general"``,
      or what follows the dot of either;
    * ``location``: a name in its location (module path, ``named_scope``, node, MLIR's ``loc("name")``), or a
      position, ``"model.py:12"``, ``"model.py:10-20"``. A glob fits a whole name and any part of one between
      ``/`` and ``.``: ``"layer1"`` is all of ``jit(f)/layer1/dot_general``, and ``"layer1.*"`` the same;
    * ``match``: as ``op`` or as ``location``;
    * ``function``: the name of the function that it stands in.

    ``min_elements`` to ``max_flops`` bound its largest result, the bytes that it reads and writes, and what it
    computes; dimensions that are known at run time only count as 1,024. ``when`` is called with an
    `OperationView`. A rule without conditions is the default, and the last.

    Raises OptionError for what is no device, pattern or number.
    """

    device: str
    match: str | Sequence[str] | None = None
    op: str | Sequence[str] | None = None
    location: str | Sequence[str] | None = None
    function: str | Sequence[str] | None = None
    when: Callable[[Any], bool] | None = None
    min_elements: float | None = None
    max_elements: float | None = None
    min_bytes: float | str | None = None
    max_bytes: float | str | None = None
    min_flops: float | None = None
    max_flops: float | None = None
    name: str = field(default="", compare=False)
    """What messages call it; by default, its number."""
    at: SourceLocation | None = field(default=None, compare=False)
    """Where it stands, if in a file."""

    def __post_init__(self) -> None:
        _check_device(self.device)
        for key in PATTERNS:
            if (value := getattr(self, key)) is not None:
                object.__setattr__(self, key, _globs(key, value))
        for key in LIMITS:
            if (value := getattr(self, key)) is not None:
                object.__setattr__(self, key, _limit(key, value))
        if self.when is not None and not callable(self.when):
            raise OptionError(f"'when' is {self.when!r}", notes=["it is called with an operation's view"])
        if self.match == ("*",):
            object.__setattr__(self, "match", None)
        if self.device == AUTO and not self.is_default:
            raise OptionError("'auto' is no device", notes=["only a default, without conditions, may be 'auto'"])

    @property
    def is_default(self) -> bool:
        return all(getattr(self, key) is None for key in (*PATTERNS, *LIMITS, "when"))

    @property
    def conditions(self) -> str:
        """In words: ``location 'layer1.*', flops >= 1e+06``."""
        patterns = [(key, " or ".join(map(repr, value))) for key, value in self._given(PATTERNS)]
        parts = [text if key == "match" else f"{key} {text}" for key, text in patterns]
        for key, value in self._given(LIMITS):
            end, _, size = key.partition("_")
            parts.append(f"{size} {'>=' if end == 'min' else '<='} {value:,g}")
        if self.when is not None:
            parts.append(f"when '{getattr(self.when, '__name__', type(self.when).__name__)}'")
        return ", ".join(parts) or "the default"

    @property
    def text(self) -> str:
        """``rule 2 of place.toml: location 'layer1.*'``."""
        return f"{self.name}: {self.conditions}"

    def _given(self, keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
        for key in keys:
            if (value := getattr(self, key)) is not None:
                yield key, value

    def fits(self, view: Any) -> bool:
        """Whether all conditions hold of an operation, given as an `OperationView`."""
        if self.function is not None and not _any_glob(self.function, [view.function]):
            return False
        if self.op is not None and not fits_op(self.op, view.kinds):
            return False
        if self.location is not None and not fits_location(self.location, view.locations):
            return False
        if self.match is not None and not (
            fits_op(self.match, view.kinds) or fits_location(self.match, view.locations)
        ):
            return False
        for key, limit in self._given(LIMITS):
            end, _, size = key.partition("_")
            found = getattr(view, size)
            if found < limit if end == "min" else found > limit:
                return False
        return self.when is None or bool(self.when(view))


@dataclass(frozen=True)
class Placement:
    """Rules in order. ``devices``: what the numbers of devices mean that a program names, the first is 0.

    ``rules`` may be dictionaries of what `Rule` takes. Raises OptionError, also for a default before others.
    """

    rules: Sequence[Rule] = ()
    devices: Sequence[str] = ()

    def __post_init__(self) -> None:
        rules = tuple(_as_rule(rule, number) for number, rule in enumerate(self.rules, 1))
        for rule in rules[:-1]:
            if rule.is_default:
                raise OptionError(
                    f"{rule.name} fits every operation and is not the last: those behind it would do nothing",
                    rule.at,
                    ["a rule without conditions is the default: put it at the end"],
                )
        for device in self.devices:
            _check_device(device)
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "devices", tuple(self.devices))

    @property
    def default(self) -> Rule | None:
        """The last rule, if it has no conditions."""
        return self.rules[-1] if self.rules and self.rules[-1].is_default else None

    @property
    def conditional(self) -> Sequence[Rule]:
        return [rule for rule in self.rules if not rule.is_default]

    @property
    def needs_kinds(self) -> bool:
        """Whether rules ask what operations were made of."""
        return any(rule.op is not None or rule.match is not None or rule.when is not None for rule in self.rules)

    @property
    def key(self) -> str | None:
        """For caches: equal for equal rules; None where a function decides, which nothing can be said of."""
        if any(rule.when is not None for rule in self.rules):
            return None
        return repr((self.rules, self.devices, [rule.name for rule in self.rules]))

    def to_json(self) -> list[str]:
        return [f"{rule.text}: {rule.device}" for rule in self.rules]


def _as_rule(rule: Any, number: int) -> Rule:
    if isinstance(rule, Mapping):
        legal = ("device", *PATTERNS, "when", *LIMITS, "name")
        for key in rule:
            if key not in legal:
                raise OptionError(
                    f"rule {number}: '{key}' is no part of a rule", notes=[f"legal: {', '.join(legal)}"]
                )
        if "device" not in rule:
            raise OptionError(
                f"rule {number} has no 'device'", notes=['such as {"op": "linalg.matmul", "device": "opencl:0"}']
            )
        try:
            rule = Rule(**rule)
        except OptionError as error:
            raise OptionError(f"rule {number}: {error.message}", notes=error.notes) from None
    if not isinstance(rule, Rule):
        raise OptionError(
            f"rule {number} is {rule!r}", notes=["give a devscope.Rule, or a dictionary of what it takes"]
        )
    return rule if rule.name else replace(rule, name=f"rule {number}")


def _check_device(device: Any) -> None:
    match = _SCOPE.fullmatch(device) if isinstance(device, str) else None
    if match is None:
        raise OptionError(f"{device!r} is not a device", notes=["write TYPE:NUMBER, such as opencl:0"])
    if device != AUTO:
        check_device_type(match[1])


def _globs(key: str, value: Any) -> tuple[str, ...]:
    globs = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()
    if not globs or not all(isinstance(glob, str) and glob for glob in globs):
        raise OptionError(
            f"'{key}' is {value!r}", notes=["it is a pattern such as 'layer1.*', or a list of patterns"]
        )
    return globs


def _limit(key: str, value: Any) -> float:
    if isinstance(value, str) and key.endswith("_bytes"):
        return float(parse_size(value))
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise OptionError(f"'{key}' is {value!r}", notes=["it is a number, 0 or more"])
    return float(value)


# Patterns


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    whole = pattern.removesuffix(".*").removesuffix("/*")  # what is in a scope, and the scope itself
    globs = "|".join(map(_regex, dict.fromkeys(filter(None, (pattern, whole)))))
    return re.compile(rf"(?:^|(?<=[/.]))(?:{globs})(?=$|[/.])", re.DOTALL)


def _regex(pattern: str) -> str:
    """A glob as a regular expression, without its end."""
    from fnmatch import translate

    return translate(pattern).removesuffix(r"\Z").removesuffix(r"\z")


@cache
def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(_regex(pattern), re.DOTALL)


def _any_glob(globs: Sequence[str], names: Sequence[str]) -> bool:
    return any(_whole(glob).fullmatch(name) for glob in globs for name in names)


def fits_op(globs: Sequence[str], kinds: Sequence[str]) -> bool:
    """Whether a glob fits the name of an operation, or what follows the name of its dialect."""
    return _any_glob(globs, kinds) or _any_glob(globs, [kind.partition(".")[2] for kind in kinds])


def fits_location(globs: Sequence[str], locations: Sequence[str | SourceLocation]) -> bool:
    return any(_fits_part(glob, part) for glob in globs for part in locations)


def _fits_part(glob: str, part: str | SourceLocation) -> bool:
    if isinstance(part, SourceLocation):
        return _fits_position(glob, part)
    return _glob(glob).search(part) is not None or (
        "(" in part and _glob(glob).search(unwrapped(part)) is not None
    )


@cache
def _file(glob: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|.*/)(?:{_regex(glob)})", re.DOTALL)


def _fits_position(glob: str, where: SourceLocation) -> bool:
    """``model.py:12``, ``model.py:12:3``, ``model.py:10-20``, ``model.py``; of a path, any end will do."""
    if (lines := _LINES.fullmatch(glob)) is not None:
        return int(lines[2]) <= where.line <= int(lines[3]) and _file(lines[1]).fullmatch(where.file) is not None
    position = f"{where.file}:{where.line}"
    texts = (where.file, position, f"{position}:{where.column}")
    return any(_file(glob).fullmatch(text) is not None for text in texts)


@cache
def unwrapped(name: str) -> str:
    """A path without what JAX wraps around its parts: ``transpose(jvp(layer1))/mul`` is ``layer1/mul``."""
    parts: list[str] = []
    for part in name.split("/"):
        while (inner := _WRAPPED.fullmatch(part)) is not None:
            part = inner[1]
        parts.append(part)
    return "/".join(parts)
