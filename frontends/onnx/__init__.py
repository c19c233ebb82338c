"""ONNX models: paths, bytes, ``onnx.ModelProto``."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from devscope.errors import DevscopeWarning, InputError, LoweringError
from devscope.frontends import DeferredSource, Examples, ImportedSource

if TYPE_CHECKING:
    from devscope.frontends.onnx.types import Imported

_ENTRY = "main"


def read_file(path: str | os.PathLike[str], examples: Examples | None = None) -> DeferredSource:
    """The program in an ``.onnx`` file."""
    place = Path(path)

    def read() -> Any:
        from devscope.frontends.onnx.weights import mapped, read_model

        try:
            data = mapped(place)
        except OSError as error:
            raise InputError(f"cannot read '{place}': {error.strerror}") from None
        return read_model(data, str(place), place.parent)

    return _deferred(str(place), read, examples)


def read_bytes(data: bytes, examples: Examples | None = None) -> DeferredSource:
    """The program in the bytes of a model."""

    def read() -> Any:
        from devscope.frontends.onnx.weights import read_model

        return read_model(memoryview(data), _NAME)

    return _deferred(_NAME, read, examples)


def read_model(model: Any, examples: Examples | None = None) -> DeferredSource:
    """The program of an ``onnx.ModelProto``, which stays as it is."""

    def read() -> Any:
        from devscope.frontends.onnx.weights import take_apart

        return take_apart(model, _NAME)

    return _deferred(_NAME, read, examples)


_NAME = "<ONNX model>"


def _deferred(name: str, read: Callable[[], Any], examples: Examples | None) -> DeferredSource:
    """The model is read once, whether its digest is asked for or not."""
    _require_onnx()
    models: list[Any] = []

    def model() -> Any:
        if not models:
            models.append(read())
        return models[0]

    def digest() -> str:
        found = model()
        said = hashlib.sha256(f"{metadata.version('onnx')} {_shapes(found.proto, examples)}".encode())
        said.update(found.proto.SerializeToString(deterministic=True))
        for key, data in found.outside.items():
            said.update(f"{key} {data.nbytes}".encode())
            said.update(data)
        return said.hexdigest()

    return DeferredSource(name, digest, lambda: _import(model(), name, _shapes(model().proto, examples)))


def _shapes(proto: Any, examples: Examples | None) -> dict[str, tuple[int, ...]]:
    """The shapes of example arguments, by name. Raises InputError."""
    if examples is None:
        return {}
    if isinstance(examples, Mapping):
        return {name: _shape(name, value) for name, value in examples.items()}
    initialised = {tensor.name for tensor in proto.graph.initializer}
    names = [one.name for one in proto.graph.input if one.name not in initialised]
    return {name: _shape(name, value) for name, value in zip(names, examples, strict=False)}


def _shape(name: str, value: Any) -> tuple[int, ...]:
    try:
        return tuple(np.shape(value))
    except ValueError:
        raise InputError(f"argument '{name}' is no array: its rows differ in length") from None


def _require_onnx() -> None:
    if find_spec("onnx") is None:
        raise InputError(
            "the program is an ONNX model, and the package onnx is not installed",
            notes=["install it: pip install 'devscope[onnx]'"],
        )


def _import(model: Any, name: str, examples: Mapping[str, tuple[int, ...]]) -> ImportedSource:
    from devscope.frontends.onnx.lower import is_static
    from devscope.frontends.onnx.prepare import prepare
    from devscope.frontends.onnx.types import Refused
    from devscope.frontends.onnx.validity import complaint

    if said := complaint(model.proto, model.outside):
        raise InputError(f"'{name}' is no valid ONNX model: {said}")
    proto = prepare(model.proto)
    initialised = {tensor.name for tensor in proto.graph.initializer}
    names = [one.name for one in proto.graph.input if one.name not in initialised]
    results = [one.name for one in proto.graph.output]
    try:
        made = _routed(proto, model.outside)
    except Refused as refused:
        if not examples or is_static(proto):
            raise _refusal(name, str(refused), () if is_static(proto) else (_HINT,)) from None
        shapes = ", ".join(f"{one}: {'x'.join(map(str, examples[one]))}" for one in names if one in examples)
        try:
            made = _routed(prepare(model.proto, examples), model.outside)
        except Refused as second:
            raise _refusal(name, str(second)) from None
        text = f"'{name}' is compiled for the shapes of the example arguments ({shapes}) only: {refused}"
        warnings.warn(DevscopeWarning(text), stacklevel=2)
    entry = {_ENTRY: (names, results)}
    return ImportedSource(name, made.text.encode(), entry, dtypes={_ENTRY: made.dtypes}, literals=made.literals)


_HINT = "with example arguments, it is compiled for their shapes if need be: example_arguments=(x, ...)"


def _refusal(name: str, why: str, notes: Sequence[str] = ()) -> LoweringError:
    return LoweringError(f"cannot import '{name}': {why}", notes=notes)


def _routed(proto: Any, outside: Mapping[str, memoryview]) -> Imported:
    """Static shapes are lowered here, what has others by torch-mlir. Raises `Refused`."""
    from devscope.frontends.onnx.contributed import without_contributed
    from devscope.frontends.onnx.folding import with_known_branches
    from devscope.frontends.onnx.inference import inferred
    from devscope.frontends.onnx.lower import is_static, lower
    from devscope.frontends.onnx.prepare import converted, expanded
    from devscope.frontends.onnx.sequences import without_sequences
    from devscope.frontends.onnx.torch_route import import_with_torch
    from devscope.frontends.onnx.types import Refused, UnknownShape

    def by_torch() -> Imported:
        written = without_contributed(with_known_branches(expanded(proto), outside), outside)
        flat = without_sequences(written)
        return import_with_torch(converted(written if flat is written else inferred(flat)), outside)

    if not is_static(proto):
        return by_torch()
    try:
        return lower(proto, outside)
    except UnknownShape as unknown:
        try:
            return by_torch()
        except Refused:
            raise unknown from None
