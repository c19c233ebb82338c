"""Programs that cannot be compiled: one message each, with the user's line and column, and nothing left behind.

``devscope build`` compiles without a device. Every text begins with the two lines of `SCOPES`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_case import SCOPES, TANH, Cli, assert_one_error

import devscope
from devscope.errors import LoweringError, ParseError

T4 = "tensor<4xf32>"


def main(body: str, arguments: str = f"%x: {T4}", results: str = T4) -> str:
    """A program whose first operation stands in line 4."""
    return f"{SCOPES}func.func @main({arguments}) -> {results} {{\n  {body}\n}}\n"


def scoped(scope: str) -> str:
    return TANH.replace("= #dev}", f"= {scope}}}")


CANNOT_LOWER = "place the operation on another device, or rewrite it with linalg, arith, math or tensor"

#: name: text, message with its position, part of a note
PARSE_ERRORS = {
    "syntax": (TANH.replace("%0 :", "%0"), "5:12: error: expected ':'", ""),
    "end of file": (SCOPES + "func.func @main(", "3:16: error: ", ""),
    "operation": (
        main(f"%0 = arith.foo %x : {T4}"),
        "4:8: error: custom op 'arith.foo' is unknown",
        "",
    ),
    "operation, generic": (
        main(f'%0 = "arith.foo"(%x) : ({T4}) -> {T4}'),
        "4:8: error: unregistered operation 'arith.foo' found in dialect ('arith')",
        "",
    ),
    "two functions of one name": (
        TANH + TANH.replace(SCOPES, ""),
        "7:1: error: redefinition of symbol named 'main'",
        "bad.mlir:3:1: see existing symbol definition here",
    ),
    "no such function": (
        main(f"%0 = call @f(%x) : ({T4}) -> {T4}\n  return %0 : {T4}"),
        "4:8: error: 'func.call' op 'f' does not reference a valid function",
        "",
    ),
    "byte order mark": ("\ufeff" + TANH, "1:1: error: unexpected character", "save it as UTF-8 without one"),
    "name that is not UTF-8": (
        TANH.replace("@main", '@"a\\FFb"'),
        "3:1: error: a name in this operation is not",
        "",
    ),
    "alias": (scoped("#nothing"), "4:45: error: undefined symbol alias id 'nothing'", ""),
}

SCOPE_ERRORS = {
    "device type": (
        scoped('#device.scope<"tpu", 0 : i64, "", "">'),
        "4:8: error: math.tanh: ",
        "",
    ),
    "target kind": (scoped('#device.scope<"opencl", 0 : i64, "vulkan", "">'), "4:8: error: math.tanh: ", ""),
    "target option": (
        scoped('#device.scope<"opencl", 0 : i64, #device.target<"opencl", {wg = 8 : i64}>, "">'),
        "4:8: error: math.tanh: ",
        "",
    ),
    "type of a target option": (
        scoped('#device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = "8"}>, "">'),
        "4:8: error: math.tanh: ",
        "",
    ),
    "value of a target option": (
        scoped('#device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 0 : i64}>, "">'),
        "4:8: error: math.tanh: ",
        "",
    ),
    "target of another device type": (
        scoped('#device.scope<"opencl", 0 : i64, "cuda", "">'),
        "4:8: error: math.tanh: ",
        "",
    ),
    "integer": (scoped("3 : i64"), "4:8: error: math.tanh: attribute 'device.scope' must be a scope", ""),
    "string": (scoped('"opencl:0"'), "4:8: error: math.tanh: attribute 'device.scope' must be a scope", ""),
    "misspelt name": (
        TANH.replace("device.scope =", "device.scpoe ="),
        "4:8: error: math.tanh: attribute 'device.scpoe' has no meaning; legal names are: "
        "device.scope, device.target, device.host_target; did you mean 'device.scope'?",
        "",
    ),
    "on an argument": (
        TANH.replace("%x: tensor<4xf32>", "%x: tensor<4xf32> {device.scope = 1 : i32}"),
        "3:1: error: func.func: argument 0, attribute 'device.scope' must be a scope",
        "",
    ),
    "device operation": (
        main(
            f'"device.region"() ({{\n    "device.yield"(%x) : ({T4}) -> ()\n  }}) {{scope = #dev}} : () -> ()'
            f"\n  return %x : {T4}"
        ),
        f"4:3: error: device.region: the body yields ({T4}), but the results are ()",
        "",
    ),
    "host part of a target for a device": (
        TANH.replace(
            "-> tensor<4xf32> {",
            '-> tensor<4xf32> attributes {device.target = #device.target<"opencl", {}>, '
            'device.host_target = #device.target<"opencl", {}>} {',
        ),
        "3:1: error: the host part of the target of 'main' is 'opencl', a device's",
        "'device.host_target' is of kind 'cpu'",
    ),
}

#: What a message about a scope must say that the position does not.
LEGAL = {
    "device type": "unknown device type 'tpu'; legal device types are: cpu, cuda, opencl, rocm",
    "target kind": "unknown target kind 'vulkan'; legal target kinds are: cpu, cuda, opencl, rocm",
    "target option": "unknown option 'wg' of target kind 'opencl'; legal options are: calls (bool)",
    "type of a target option": "option 'workgroup' of target kind 'opencl' must be an i64",
    "value of a target option": "must be an i64, such as 1, from 1 on, not 0",
    "target of another device type": "target 'cuda' compiles for devices of type 'cuda', not 'opencl'",
}

SIGNATURE_ERRORS = {
    type_: (
        main("return", f"%x: {type_}", "()"),
        f"3:17: error: argument 0 of public function 'main' has type {type_}, which cannot be passed",
        "public functions take and return scalars and dense ranked tensors of i1, i8, i16, i32, i64",
    )
    for type_ in (
        "memref<4xf32>",
        "tensor<*xf32>",
        "vector<4xf32>",
        "tuple<f32>",
        "complex<f16>",
        "none",
        "!foo.bar",
        "tensor<4xi3>",
        "tensor<4xi128>",
        "tensor<4xf80>",
        'tensor<4xf32, "encoding">',
    )
}

V2 = "vector<2xf32>"
LOWERING_ERRORS = {
    "function as an argument": (
        main("return", "%x: (f32) -> f32", "()"),
        "3:1: error: public function 'main' takes or returns a function",
        "add a public function of tensors and scalars that calls it with a func.constant",
    ),
    "integers of a width that the device gets wrong": (
        main(
            f"%0 = arith.fptosi %x {{device.scope = #dev}} : {T4} to tensor<4xi4>\n"
            f"  %1 = arith.sitofp %0 {{device.scope = #dev}} : tensor<4xi4> to {T4}\n  return %1 : {T4}"
        ),
        "4:8: error: target 'opencl' cannot compute with i4",
        "compute with integers of 1, 8, 16, 32, 64 bits, or place the operation on another device",
    ),
    "floats that the host does not compute with": (
        main(f"%0 = arith.truncf %x : {T4} to tensor<4xf8E5M2>\n  return %x : {T4}"),
        "4:8: error: target 'cpu' cannot compute with f8E5M2",
        "compute with f32, which holds all of its numbers, and store its bits as integers",
    ),
    "vectors as elements on the device": (
        main(
            f"%v = vector.broadcast %s : f32 to {V2}\n"
            f"  %0 = tensor.splat %v {{device.scope = #dev}} : tensor<4x{V2}>\n"
            "  %c = arith.constant 1 : index\n"
            f"  %1 = tensor.extract %0[%c] {{device.scope = #dev}} : tensor<4x{V2}>\n"
            f"  %2 = vector.extract %1[0] : f32 from {V2}\n  return %2 : f32",
            "%s: f32",
            "f32",
        ),
        "5:8: error: target 'opencl' cannot hold elements of type vector<2xf32>",
        "make the vector a dimension of the tensor",
    ),
    "foreign operation on the host": (
        main(f'%0 = "foo.bar"(%x) : ({T4}) -> {T4}\n  return %0 : {T4}'),
        "4:8: error: target 'cpu' cannot lower operation 'foo.bar'",
        CANNOT_LOWER,
    ),
    "foreign operation on the device": (
        main(f'%0 = "foo.bar"(%x) {{device.scope = #dev}} : ({T4}) -> {T4}\n  return %0 : {T4}'),
        "4:8: error: target 'opencl' cannot lower operation 'foo.bar'",
        CANNOT_LOWER,
    ),
    "foreign operation in a body": (
        main(
            f"%0 = linalg.map ins(%x : {T4}) outs(%x : {T4}) {{device.scope = #dev}} (%a: f32, %b: f32) {{\n"
            f'      %c = "foo.bar"(%a) : (f32) -> f32\n      linalg.yield %c : f32\n    }}\n  return %0 : {T4}'
        ),
        "5:12: error: target 'opencl' cannot lower operation 'foo.bar'",
        CANNOT_LOWER,
    ),
    "code that is not known": (
        main(f"%0 = stablehlo.custom_call @lapack_dgesdd(%x) : ({T4}) -> {T4}\n  return %0 : {T4}"),
        "4:8: error: target 'cpu' cannot lower operation 'stablehlo.custom_call @lapack_dgesdd'",
        CANNOT_LOWER,
    ),
    "code that is not known, on the device": (
        main(
            f'%0 = stablehlo.custom_call @"my code"(%x) {{device.scope = #dev, backend_config = "a"}} '
            f": ({T4}) -> {T4}\n  return %0 : {T4}"
        ),
        "4:8: error: target 'opencl' cannot lower operation 'stablehlo.custom_call @my code'",
        CANNOT_LOWER,
    ),
    "data for another program": (
        main(
            "%t = stablehlo.create_token : !stablehlo.token\n"
            f'  %0 = "stablehlo.outfeed"(%x, %t) : ({T4}, !stablehlo.token) -> !stablehlo.token\n'
            f"  return %x : {T4}"
        ),
        "5:8: error: target 'cpu' cannot lower operation 'stablehlo.outfeed'",
        CANNOT_LOWER,
    ),
    "side effect": (
        main(f'"foo.bar"() : () -> ()\n  return %x : {T4}'),
        "4:3: error: target 'cpu' cannot lower operation 'foo.bar'",
        "",
    ),
    "printing": (
        main(f'vector.print str "hello"\n  return %x : {T4}'),
        "4:3: error: target 'cpu' cannot lower operation 'vector.print'",
        "",
    ),
    "a shape on the host for the device": (
        main(
            f"%0 = tensor.reshape %x(%s) {{device.scope = #dev}} : ({T4}, tensor<2xindex>)"
            " -> tensor<*xf32>\n  return %0 : tensor<*xf32>",
            f"%x: {T4}, %s: tensor<2xindex>",
            "tensor<*xf32>",
        ),
        "4:8: error: 'tensor.reshape' on opencl:0 takes a shape that is a tensor on the host",
        "leave it to the host",
    ),
    "a global of any size that changes": (
        "ml_program.global private mutable @n(dense<0.0> : tensor<4xf32>) : tensor<?xf32>\n"
        + main(
            "%0 = ml_program.global_load @n : tensor<?xf32>\n"
            f"  ml_program.global_store @n = %0 : tensor<?xf32>\n  return %x : {T4}"
        ),
        "1:1: error: the global 'n' has type tensor<?xf32>",
        "a dense tensor of static shape",
    ),
    "a global that nobody knows and that changes": (
        f"ml_program.global private mutable @n(#ml_program.extern : {T4}) : {T4}\n"
        + main(f"ml_program.global_store @n = %x : {T4}\n  return %x : {T4}"),
        "1:1: error: what the global 'n' is at first is not in the program",
        "",
    ),
    "a global that two public functions change": (
        f"ml_program.global private mutable @n : {T4}\n"
        + main(f"ml_program.global_store @n = %x : {T4}\n  return %x : {T4}")
        + main(f"%0 = ml_program.global_load @n : {T4}\n  return %0 : {T4}")
        .replace("@main", "@other")
        .removeprefix(SCOPES),
        "1:1: error: the global 'n' is used by the public functions @main and @other",
        "make the others private",
    ),
    "a global that work in parallel changes": (
        f"ml_program.global private mutable @n : {T4}\n"
        + main(
            "%c1 = arith.constant 1 : index\n"
            "  scf.parallel (%i) = (%c1) to (%c1) step (%c1) {\n"
            f"    ml_program.global_store @n = %x : {T4}\n"
            f"  }}\n  return %x : {T4}"
        ),
        "6:3: error: 'scf.parallel' writes the global 'n'",
        "store behind it",
    ),
    "a global and branches": (
        f"ml_program.global private mutable @n : {T4}\n"
        + main(f"ml_program.global_store @n = %x : {T4}\n  cf.br ^end\n^end:\n  return %x : {T4}"),
        "4:1: error: @main uses globals that the program writes, and branches",
        "only control flow of 'scf'",
    ),
    "a parallel reduction on the device": (
        main(
            '%r = affine.parallel (%i) = (0) to (4) reduce ("addf") -> (f32) {\n'
            f"      %e = tensor.extract %x[%i] : {T4}\n      affine.yield %e : f32\n"
            "    } {device.scope = #dev}\n  return %r : f32",
            results="f32",
        ),
        "4:8: error: 'affine.parallel' on opencl:0 reduces to scalars, which parallel loops on devices cannot",
        "linalg.reduce",
    ),
    "f80 on the device": (
        main(
            f"%0 = arith.extf %x {{device.scope = #dev}} : {T4} to tensor<4xf80>\n"
            "  %1 = arith.mulf %0, %0 : tensor<4xf80>\n"
            f"  %2 = arith.truncf %1 {{device.scope = #dev}} : tensor<4xf80> to {T4}\n  return %2 : {T4}",
        ),
        "4:8: error: target 'opencl' cannot compute with f80",
        "compute with f32, or place the operation on another device",
    ),
    "i128 on the device": (
        main(
            "%0 = arith.extsi %x : tensor<4xi32> to tensor<4xi128>\n"
            "  %1 = arith.muli %0, %0 {device.scope = #dev} : tensor<4xi128>\n"
            "  %2 = arith.trunci %1 : tensor<4xi128> to tensor<4xi32>\n  return %2 : tensor<4xi32>",
            "%x: tensor<4xi32>",
            "tensor<4xi32>",
        ),
        "5:8: error: target 'opencl' cannot compute with i128",
        "integers of up to 64 bits",
    ),
    "f64 on a device without": (
        main(
            "%0 = arith.addf %x, %x {device.scope = #device.scope<"
            '"opencl", 0 : i64, #device.target<"opencl", {fp64 = false}>, "">} : tensor<4xf64>\n'
            "  return %0 : tensor<4xf64>",
            "%x: tensor<4xf64>",
            "tensor<4xf64>",
        ),
        "4:8: error: target 'opencl' cannot compute with f64 on this device",
        "",
    ),
    "SPIR-V": (
        main(
            "%0 = linalg.map ins(%x : tensor<4xi64>) outs(%x : tensor<4xi64>) (%a: i64, %o: i64) {\n"
            "    %v = vector.broadcast %a : i64 to vector<4xi64>\n"
            "    %low, %high = arith.mului_extended %v, %v : vector<4xi64>\n"
            "    %r = vector.extract %high[0] : i64 from vector<4xi64>\n"
            "    linalg.yield %r : i64\n  }\n  return %0 : tensor<4xi64>",
            "%x: tensor<4xi64> {device.scope = #dev}",
            "(tensor<4xi64> {device.scope = #dev})",
        ),
        "4:8: error: LLVM's SPIR-V backend refused the kernels",
        "",
    ),
    "sparse constant": (
        main(f"%0 = arith.constant sparse<[[1]], [2.0]> : {T4}\n  return %0 : {T4}"),
        "4:8: error: a sparse constant cannot be compiled",
        "dense<",
    ),
    "resource without data": (
        main(f"%0 = arith.constant dense_resource<gone> : {T4}\n  return %0 : {T4}"),
        "4:8: error: the data of dense_resource<gone>",
        "",
    ),
    "resource with too little data": (
        main(f"%0 = arith.constant dense_resource<short> : {T4}\n  return %0 : {T4}")
        + '{-# dialect_resources: {builtin: {short: "0x04000000AABB"}} #-}',
        "4:8: error: the data of dense_resource<short> : tensor<4xf32> has 2 bytes, its type needs 16",
        "",
    ),
    "no such dimension": (
        main(
            "%c = arith.constant 3 : index\n  %0 = tensor.dim %x, %c : tensor<?xf32>\n  return %0 : index",
            "%x: tensor<?xf32>",
            "index",
        ),
        "5:8: error: tensor<?xf32> has no dimension 3",
        "",
    ),
    "index": (
        main(
            "%c = arith.constant 4 : index\n"
            f"  %0 = tensor.extract %x[%c] {{device.scope = #dev}} : {T4}\n  return %0 : f32",
            results="f32",
        ),
        "5:8: error: index 4 is outside of tensor<4xf32>",
        "",
    ),
    "too large": (
        main("%0 = tensor.empty() : tensor<4611686018427387904x8xf32>\n  return %x : tensor<4xf32>").replace(
            "return %x", "%1 = math.tanh %0 : tensor<4611686018427387904x8xf32>\n  return %x"
        ),
        "4:8: error: tensor<4611686018427387904x8xf32> has more bytes than can be addressed",
        "",
    ),
    "device function calls host function": (
        main(
            f"%0 = linalg.map ins(%x : {T4}) outs(%x : {T4}) {{device.scope = #dev}} (%a: f32, %b: f32) {{\n"
            f"      %c = func.call @g(%a) : (f32) -> f32\n      linalg.yield %c : f32\n    }}\n  return %0 : {T4}"
        )
        + "func.func private @g(f32) -> f32\n",
        "5:12: error: 'g' is called by code for opencl:0, but runs on the host",
        "",
    ),
    "kernel calls recursive function": (
        main(
            f"%0 = linalg.map ins(%x : {T4}) outs(%x : {T4}) {{device.scope = #dev}} (%a: f32, %b: f32) {{\n"
            f"      %c = func.call @g(%a) : (f32) -> f32\n      linalg.yield %c : f32\n    }}\n  return %0 : {T4}"
        )
        + "func.func private @g(%a: f32) -> f32 {\n"
        + "  %0 = call @g(%a) : (f32) -> f32\n  return %0 : f32\n}\n",
        "11:8: error: kernels cannot call, and a recursive function cannot be inlined: 'g' -> 'g'",
        "write it as a loop",
    ),
    "packed vectors": (
        "func.func @f(%x: tensor<8xi1>) -> i1 {\n  %c = arith.constant 0 : index\n  %no = arith.constant false\n"
        "  %v = vector.transfer_read %x[%c], %no : tensor<8xi1>, vector<8xi1>\n"
        "  %0 = vector.extract %v[1] : i1 from vector<8xi1>\n  return %0 : i1\n}\n",
        "4:8: error: 'vector.transfer_read': vectors of i1 are packed in memory, elements of tensor<8xi1> are not",
        "keep such elements as i8 in memory",
    ),
    "no code generator": (
        TANH.replace('"opencl"', '"rocm"'),
        "4:8: error: no code generator for target 'rocm', which 'rocm:0' asks for",
        "--devices rocm:0=opencl:0",
    ),
    "CUDA architecture": (
        TANH.replace('"opencl", 0 : i64, ""', '"cuda", 0 : i64, #device.target<"cuda", {arch = "sm_42"}>'),
        "4:8: error: option 'arch' of target kind 'cuda': 'sm_42' is not known",
        "legal: sm_75, sm_80",
    ),
    "PTX version": (
        TANH.replace(
            '"opencl", 0 : i64, ""', '"cuda", 0 : i64, #device.target<"cuda", {arch = "sm_90", ptx = "6.3"}>'
        ),
        "4:8: error: option 'ptx' of target kind 'cuda': sm_90 has no PTX 6.3",
        "legal: 7.8, 8.0",
    ),
    "sub-group": (
        TANH.replace('"opencl", 0 : i64, ""', '"opencl", 0 : i64, #device.target<"opencl", {subgroup = 12}>'),
        "4:8: error: option 'subgroup' of target kind 'opencl' is 12",
        "legal: powers of two",
    ),
    "reserved name": (
        TANH + "func.func private @devscope_alloc(i64, i64) -> index\n",
        "7:1: error: 'devscope_alloc': names that begin with 'devscope_' are reserved",
        "",
    ),
    "no body": (
        TANH + f"func.func private @g({T4})\nfunc.func private @sinf(f32) -> f32\n"
        f"func.func @f(%x: {T4}) {{\n  call @g(%x) : ({T4}) -> ()\n  return\n}}\n",
        "7:1: error: function 'g' has no body",
        "C's functions on numbers",
    ),
    "null in a name": (TANH.replace("@main", '@"a\\00b"'), "3:1: error: 'a\\x00b' cannot be the name", "none of"),
    "endless name": (TANH.replace("main", "m" * 10001), f"3:1: error: '{'m' * 40}'... cannot be", "10,000"),
    "no name": (TANH.replace("@main", '@""'), "3:1: error: '' cannot be the name of code", ""),
    "module in the module": (
        TANH + "module @inner {\n}\n",
        "7:1: error: target 'cpu' cannot lower operation 'builtin.module'",
        "",
    ),
}

ALL = {
    f"{group}: {name}": case
    for group, cases in (
        ("parse", PARSE_ERRORS),
        ("scope", SCOPE_ERRORS),
        ("signature", SIGNATURE_ERRORS),
        ("lowering", LOWERING_ERRORS),
    )
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", ALL)
def test_one_message_at_the_line(cli: Cli, folder: Path, name: str) -> None:
    text, message, note = ALL[name]
    (folder / "bad.mlir").write_text(text)
    outcome = cli("build", "bad.mlir", "-o", "out.dsx")
    assert_one_error(outcome, f"bad.mlir:{message}", note)
    assert LEGAL.get(name.removeprefix("scope: "), "") in outcome.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "error: 'bad.mlir' is an empty program"),
        ("// nothing\n", "error: 'bad.mlir' is an empty program"),
        ("module {\n}\n", "error: 'bad.mlir' is an empty program"),
        ("memref.global @g : memref<4xf32>", "error: 'bad.mlir' has no function"),
        (
            TANH.replace("@main", "private @main"),
            "bad.mlir:3:1: error: the module has no public function with a body",
        ),
        ("module {\n  module {\n  }\n}\n", "error: the module has no public function with a body"),
    ],
    ids=["empty", "comment", "empty module", "global", "private", "nested"],
)
def test_nothing_to_call(cli: Cli, folder: Path, text: str, message: str) -> None:
    (folder / "bad.mlir").write_text(text)
    assert_one_error(cli("build", "bad.mlir"), message, "func" if "bad.mlir'" in message else "drop 'private'")
    if "bad.mlir'" in message:
        assert_one_error(cli("plan", "bad.mlir"), message)


def test_conflict_shows_both_chains(cli: Cli, folder: Path) -> None:
    attributes = "constrain_body = true, constrain_result = true"
    (folder / "bad.mlir").write_text(
        main(
            f'%0 = "device.on_device"(%x) {{scope = #dev, {attributes}}} : ({T4}) -> {T4}\n'
            f'  %1 = "device.on_device"(%0) {{scope = #host, {attributes}}} : ({T4}) -> {T4}\n'
            f"  return %1 : {T4}"
        )
    )
    outcome = cli("plan", "bad.mlir")
    assert_one_error(outcome, "bad.mlir:5:8: error: %0 must be on opencl:0 and on cpu:0", "on opencl:0 because")
    assert "  note: bad.mlir:4:8: on opencl:0 because 'device.on_device' puts %x on opencl:0\n" in outcome.err
    assert "  note: bad.mlir:5:8: and on cpu:0 because 'device.on_device' puts %0 on cpu:0\n" in outcome.err


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(range(128, 256)) * 9, "bad.mlir:1:1: error: "),
        (b"ML\xefR", "bad.mlir:1:1: error: "),
        (b"ML\xefR" + bytes(range(256)), "bad.mlir:"),
        (TANH.encode("utf-16"), "bad.mlir:1:1: error: "),
    ],
    ids=["binary", "empty bytecode", "bytecode", "UTF-16"],
)
def test_not_a_program(cli: Cli, folder: Path, data: bytes, message: str) -> None:
    (folder / "bad.mlir").write_bytes(data)
    assert_one_error(cli("plan", "bad.mlir", "--table"), message)


def test_too_many_regions_inside_each_other(cli: Cli, folder: Path) -> None:
    depth = 1000
    (folder / "bad.mlir").write_text(main("scf.if %c {\n" * depth + "}" * depth + "\n  return", "%c: i1", "()"))
    message = "error: the program has too many regions inside each other"
    assert_one_error(cli("build", "bad.mlir"), message)
    with pytest.raises(LoweringError, match=message):
        devscope.plan(Path("bad.mlir"))


def test_two_hundred_regions_inside_each_other(cli: Cli, folder: Path) -> None:
    depth = 200
    (folder / "deep.mlir").write_text(main("scf.if %c {\n" * depth + "}" * depth + "\n  return", "%c: i1", "()"))
    assert cli("build", "deep.mlir").status == 0


@pytest.mark.parametrize("options", ['cpu = "pentium-9"', 'features = "+nonsense"', 'features = "avx2"'])
def test_host_options_that_llvm_does_not_know(cli: Cli, folder: Path, options: str) -> None:
    target = f'attributes {{device.target = #device.target<"cpu", {{{options}}}>}}'
    (folder / "bad.mlir").write_text(TANH.replace("-> tensor<4xf32> {", f"-> tensor<4xf32> {target} {{"))
    outcome = cli("build", "bad.mlir")
    assert_one_error(outcome, "bad.mlir:3:1: error: ")
    assert "of target kind 'cpu'" in outcome.err


def test_host_functions_with_different_options(cli: Cli, folder: Path) -> None:
    functions = [
        TANH.replace("@main", f"@f{level}").replace(
            "-> tensor<4xf32> {",
            f'-> tensor<4xf32> attributes {{device.target = #device.target<"cpu", {{opt = {level} : i64}}>}} {{',
        )
        for level in (1, 2)
    ]
    (folder / "bad.mlir").write_text(functions[0] + functions[1].replace(SCOPES, ""))
    assert_one_error(
        cli("build", "bad.mlir"),
        "bad.mlir:7:1: error: 'device.target' is cpu opt=2 : i64 here and cpu opt=1 : i64 on another function",
    )


def test_memrefs_on_a_device(cli: Cli, folder: Path) -> None:
    text = main(
        f"""%b = bufferization.to_buffer %x : {T4} to memref<4xf32>
  %c = "device.device_copy"(%b) {{src = #device.scope<"cpu", 0 : i64, "", "">, dst = #dev}}
    : (memref<4xf32>) -> memref<4xf32>
  %t = bufferization.to_tensor %c restrict : memref<4xf32> to {T4}
  %0 = math.exp %t {{device.scope = #dev}} : {T4}
  return %0 : {T4}"""
    )
    (folder / "bad.mlir").write_text(text)
    outcome = cli("build", "bad.mlir")
    assert_one_error(
        outcome, "bad.mlir:5:8: error: 'device.device_copy' has a memref on opencl:0; only tensors can be there"
    )


def test_device_operations_in_a_wrong_form(cli: Cli, folder: Path) -> None:
    (folder / "bad.mlir").write_text(
        f"// device.on_device\n{main(f'%0 = device.on_device %x {{scope = #dev}} : {T4}')}"
    )
    assert_one_error(
        cli("plan", "bad.mlir"),
        "bad.mlir:5:8: error: this is no form of 'device.on_device'",
        'write device.on_device %x on #a : tensor<4xf32>, or, with the name in quotes: "device.on_device"(%x)',
    )


SCOPE_NOTE = 'write #device.scope<TYPE, ID, TARGET, MEMORY>, such as #device.scope<"opencl", 0 : i64, "", "">'


@pytest.mark.parametrize(
    ("old", "new", "message", "note"),
    [
        (', 0 : i64, "", ""', ", 0", "1:16: error: expected 4 type arguments, but had 2", SCOPE_NOTE),
        ('<"opencl"', "<opencl", "1:22: error: expected attribute value", SCOPE_NOTE),
        ("0 : i64", '"0"', "1:16: error: expected base attribute 'builtin.integer'", SCOPE_NOTE),
        ("#device.scope", "#device.scop", "1:16: error: the dialect 'device' has no attribute 'scop'", SCOPE_NOTE),
        ('"", ""', '#device.target<"opencl">, ""', "expected 2 type arguments, but had 1", "#device.target<KIND"),
        ("device.scope = #dev", "device.scope = #deb", "error: undefined symbol alias id 'deb'", "mean '#dev'?"),
        ("device.scope = #dev", "device.scope = #x", "error: undefined symbol alias id 'x'", "are: #dev, #host"),
        ("math.tanh", "math.tan_h", "4:8: error: custom op 'math.tan_h' is unknown", "did you mean 'math.tanh'?"),
        ("func.func", "func", "3:1: error: custom op 'func' is unknown", "did you mean 'func.func'?"),
        (f": {T4}\n}}", f": {T4}", "error: expected operation name in quotes", "the text ends here: is a bracket"),
    ],
)
def test_attributes_that_do_not_parse(cli: Cli, folder: Path, old: str, new: str, message: str, note: str) -> None:
    (folder / "bad.mlir").write_text(TANH.replace(old, new, 1))
    outcome = cli("plan", "bad.mlir")
    assert_one_error(outcome, "bad.mlir:", note)
    assert message in outcome.err.splitlines()[0]
    with pytest.raises(ParseError, match=re.escape(message.rpartition("error: ")[2])):
        devscope.plan(TANH.replace(old, new, 1))


def test_a_check_of_hand_written_kernels_names_its_cause(cli: Cli, folder: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "kernels.md").read_text().split("```mlir\n")[1].split("```")[0]
    (folder / "kernel.mlir").write_text(text)
    outcome = cli("run", "kernel.mlir", "--random", "0", "--check")
    assert_one_error(outcome, "kernel.mlir:58:11: error: --check compares with a build for the host alone, which")
    assert "kernel 'sums'" in outcome.err
    assert "note: run it without --check; the host runs no kernels that are written by hand" in outcome.err
