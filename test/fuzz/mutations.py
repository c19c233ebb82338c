"""Damage to the text of modules: of single tokens, of attributes, of lines, of blocks."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Damage = Callable[[random.Random, str], str]

ELEMENTS = ["f32", "f64", "f16", "bf16", "i1", "i8", "i32", "i64", "index", "i4", "i128", "f80", "none",
            "complex<f32>", "vector<4xf32>", "!foo.bar", "si8", "f8E4M3FN"]  # fmt: skip
SIZES = ["?", "0", "1", "2", "5", "1000", "4611686018427387904"]
NUMBERS = ["0", "1", "2", "100", "-1", "9223372036854775807", "-9223372036854775808", "99999999999999999999"]
REALS = ["1.0e30", "-0.5", "0.0", "0x7FC00000", "1.0e400"]
OPERATIONS = ["math.tanh", "math.exp", "math.ctlz", "arith.addf", "arith.mulf", "arith.divsi", "arith.remf",
              "foo.bar", "math.sincos", "math.fpowi", "tensor.rank", "linalg.exp",
              "complex.abs", "arith.select"]  # fmt: skip
SCOPES = [
    '#device.scope<"cpu", 0 : i64, "", "">',
    '#device.scope<"cpu", 1 : i64, "", "">',
    '#device.scope<"opencl", 0 : i64, "", "shared">',
    '#device.scope<"opencl", 1 : i64, "", "">',
    '#device.scope<"opencl", -1 : i64, "", "">',
    '#device.scope<"opencl", 0>',
    '#device.scope<"", -1 : i64, "", "">',
    '#device.scope<"opencl", 0 : i64, #device.target<"opencl", {fp64 = false, workgroup = 7 : i64}>, "">',
    '#device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 0 : i64}>, "">',
    '#device.scope<"cuda", 0 : i64, "", "">',
    "1 : i32",
    '"opencl:0"',
]
ATTRIBUTES = [
    "{device.scope = 1 : i32}",
    "{scope = true}",
    '{device.target = "opencl"}',
    "{foo = dense<1> : tensor<2xi32>}",
    "{device.scope}",
    '{sym_name = "main"}',
    "{operandSegmentSizes = array<i32: 1, 1>}",
    "{overflowFlags = 1}",
    "{value = dense<(1.0,2.0)> : tensor<2xcomplex<f32>>}",
]
_TOKEN = re.compile(r'"[^"]*"|[%@#!^]?[A-Za-z_][\w.]*|\d+(?:\.\d+)?|->|\s+|.', re.DOTALL)


def _replace_one(pattern: str, news: list[str]) -> Damage:
    def damage(rng: random.Random, text: str) -> str:
        found = list(re.finditer(pattern, text))
        if not found:
            return text
        place = rng.choice(found)
        return text[: place.start()] + rng.choice(news) + text[place.end() :]

    return damage


def _replace_all(pattern: str, news: list[str]) -> Damage:
    """All places with the same text get the same new text: more of the programs are well typed."""

    def damage(rng: random.Random, text: str) -> str:
        found = sorted(set(re.findall(pattern, text)))
        old, new = rng.choice(found) if found else "", rng.choice(news)
        return re.sub(pattern, lambda match: new if match[0] == old else match[0], text)

    return damage


def _same_kind(pattern: str) -> Damage:
    """One name becomes another of the module."""

    def damage(rng: random.Random, text: str) -> str:
        found = list(re.finditer(pattern, text))
        if not found:
            return text
        place = rng.choice(found)
        return text[: place.start()] + rng.choice(found)[0] + text[place.end() :]

    return damage


def _drop_lines(rng: random.Random, text: str) -> str:
    lines = text.splitlines()
    start = rng.randrange(len(lines) + 1)
    del lines[start : start + rng.choice([1, 1, 1, 3])]
    return "\n".join(lines) + "\n"


def _repeat_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines() or [""]
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return "\n".join(lines) + "\n"


def _swap_lines(rng: random.Random, text: str) -> str:
    lines = text.splitlines() or [""]
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return "\n".join(lines) + "\n"


def _tokens(rng: random.Random, text: str) -> str:
    tokens = _TOKEN.findall(text) or [""]
    first, second = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[first] = rng.choice(["", tokens[first] * 2, tokens[second]])
    return "".join(tokens)


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _region(rng: random.Random, text: str) -> str:
    """A block in braces is dropped or stands in another's place."""
    found = list(re.finditer(r"\{[^{}]*\}", text))
    if not found:
        return text
    place, other = rng.choice(found), rng.choice(["", "{}", rng.choice(found)[0]])
    return text[: place.start()] + other + text[place.end() :]


def _annotate(rng: random.Random, text: str) -> str:
    """An attribute on an operation that has none."""
    found = list(re.finditer(r"(?<=[\w)\]])(?= : )", text))
    if not found:
        return text
    place = rng.choice(found).start()
    attribute = rng.choice([*ATTRIBUTES, *(f"{{device.scope = {scope}}}" for scope in SCOPES)])
    return f"{text[:place]} {attribute}{text[place:]}"


def _bytes(rng: random.Random, text: str) -> str:
    data = bytearray(text.encode(errors="surrogateescape"))
    for _ in range(rng.randint(1, 3)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return data.decode(errors="surrogateescape")


def _wrap(rng: random.Random, text: str) -> str:
    """The module in others, or beside itself."""
    return rng.choice([f"module {{\n{text}\n}}", f"module @m {{\n{text}\n}}", f"{text}\n{text}"])


DAMAGES: list[Damage] = [
    _replace_all(r"(?<=x)[fi]\d+\b|(?<=: )[fi]\d+\b", ELEMENTS),
    _replace_one(r"(?<=x)[fi]\d+\b|(?<=: )[fi]\d+\b", ELEMENTS),
    _replace_all(r"(?<=[<x])[0-9?]+(?=x)", SIZES),
    _replace_one(r"(?<=constant )\d+(?= )|(?<=[\[,] )\d+|\d+(?=[\],])", NUMBERS),
    _replace_one(r"(?<=constant )\d+\.\d+", REALS),
    _replace_one(r"(?:math|arith|linalg|tensor)\.(?!constant|yield)\w+", OPERATIONS),
    _replace_one(r'#device\.scope<[^>]*>|(?<=scope = )#\w+', SCOPES),
    _same_kind(r"%[\w#]+"),
    _same_kind(r"@\w+"),
    _same_kind(r"tensor<[^<>]*>"),
    _same_kind(r"#\w+\b"),
    _drop_lines,
    _repeat_line,
    _swap_lines,
    _tokens,
    _region,
    _annotate,
    _annotate,
    _cut,
    _bytes,
    _wrap,
]  # fmt: skip


def mutated(rng: random.Random, text: str) -> str:
    """Once most of the time, so that much of the module still means something."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        text = rng.choice(DAMAGES)(rng, text)
    return text
