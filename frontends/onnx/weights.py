"""Models whose large initializers stay where they are: in the mapped file, or in the bytes that were given.

A ``ModelProto`` is protobuf: fields, each a key (number and kind) and its value. ``raw_data`` of the tensors in
``graph.initializer`` is cut out before the protobuf library reads the rest, which is small.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devscope.errors import InputError

LEAST_BYTES = 1 << 12
"""Smaller initializers stay in the model: shapes and axes are among them."""

_GRAPH, _INITIALIZER, _RAW_DATA, _NAME, _LOCATION = 7, 5, 9, 8, 14
_BYTES = 2


@dataclass
class Model:
    """A ``ModelProto`` without the data of large initializers, and that data by the initializers' names."""

    proto: Any
    outside: dict[str, memoryview] = field(default_factory=dict[str, memoryview])


class _Damaged(Exception):
    pass


def read_model(data: memoryview, name: str, folder: Path | None = None) -> Model:
    """The model in ``data``. Initializers in files of their own are mapped, from ``folder``. Raises InputError."""
    import onnx
    from google.protobuf.message import DecodeError

    outside: dict[str, memoryview] = {}
    try:
        text = _without_data(data, (_GRAPH,), outside)
        proto = onnx.ModelProto.FromString(text)
    except (_Damaged, DecodeError, IndexError):
        raise InputError(f"'{name}' is not an ONNX model that can be read") from None
    if not proto.graph.node and not proto.graph.output:
        raise InputError(f"'{name}' is not an ONNX model that can be read", notes=["it has no graph"])
    model = Model(proto, outside)
    maps: dict[Path, memoryview] = {}
    for tensor in proto.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _map(tensor, model, maps, name, folder)
    return model


def take_apart(proto: Any, name: str) -> Model:
    """A model given as an object, which stays as it is; of large initializers one copy is made."""
    return read_model(memoryview(proto.SerializeToString()), name)


def _fields(data: memoryview, position: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Number and kind of each field, where it begins, where its value begins, where it ends."""
    while position < end:
        start = position
        key, position = _number(data, position)
        kind = key & 7
        if kind == 0:
            _, after = _number(data, position)
        elif kind == 1:
            after = position + 8
        elif kind == 5:
            after = position + 4
        elif kind == _BYTES:
            size, position = _number(data, position)
            after = position + size
        else:
            raise _Damaged
        if after > end:
            raise _Damaged
        yield key >> 3, kind, start, position, after
        position = after


def _number(data: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        result |= (byte & 0x7F) << shift
        position += 1
        if not byte & 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise _Damaged


def _written(number: int) -> bytes:
    pieces = bytearray()
    while number > 0x7F:
        pieces.append(number & 0x7F | 0x80)
        number >>= 7
    pieces.append(number)
    return bytes(pieces)


def _without_data(data: memoryview, path: tuple[int, ...], outside: dict[str, memoryview]) -> bytes:
    pieces: list[bytes | memoryview] = []
    for number, kind, start, begin, end in _fields(data, 0, len(data)):
        if kind != _BYTES or number != path[0]:
            pieces.append(data[start:end])
            continue
        inner = data[begin:end]
        if path == (_GRAPH,):
            inner = _without_data(inner, (_INITIALIZER,), outside)
        elif len(inner) >= LEAST_BYTES:
            inner = _tensor_without_data(inner, outside)
        pieces += [_written(number << 3 | _BYTES), _written(len(inner)), inner]
    return b"".join(pieces)


def _tensor_without_data(data: memoryview, outside: dict[str, memoryview]) -> bytes:
    name, raw, pieces = "", None, []
    for number, kind, start, begin, end in _fields(data, 0, len(data)):
        if number == _RAW_DATA and kind == _BYTES and end - begin >= LEAST_BYTES:
            raw = data[begin:end]
            continue
        if number == _NAME:
            name = bytes(data[begin:end]).decode()
        pieces.append(data[start:end])
    if raw is None:
        return bytes(data)
    outside[name] = raw
    return b"".join(pieces)


def _map(tensor: Any, model: Model, maps: dict[Path, memoryview], name: str, folder: Path | None) -> None:
    """Data in another file, which must be in the model's folder: a model may not read elsewhere."""
    said = {entry.key: entry.value for entry in tensor.external_data}
    where = said.get("location", "")
    if folder is None:
        raise InputError(
            f"'{name}' has the data of '{tensor.name}' in the file '{where}', and is no file itself",
            notes=["give the model's path"],
        )
    path = (folder / where).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"'{name}' has the data of '{tensor.name}' outside of its folder: '{where}'")
    try:
        if path not in maps:
            maps[path] = mapped(path)
        start = int(said.get("offset", 0))
        size = int(said["length"]) if "length" in said else len(maps[path]) - start
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read '{path}', which '{name}' needs: {reason}") from None
    if start < 0 or size < 0 or start + size > len(maps[path]):
        raise InputError(
            f"'{path}' is too short: '{name}' has the data of '{tensor.name}' at {start}, {size} bytes"
        )
    data = maps[path][start : start + size]
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    if size >= LEAST_BYTES:
        model.outside[tensor.name] = data
    else:
        tensor.raw_data = bytes(data)


def mapped(path: Path) -> memoryview:
    """The contents of a file, mapped. Raises OSError."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
