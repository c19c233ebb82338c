"""Large constants of text are taken out before MLIR sees it, and are the same in the end."""

import tracemalloc

import numpy as np
import pytest

import devscope
from devscope.errors import DevscopeError
from devscope.lowering.interop import literals
from devscope.parsed_source import parse_source

LENGTH = 40_000  # 320,000 hexadecimal digits: a literal that counts as large


@pytest.fixture(autouse=True)
def every_source_is_large(monkeypatch):
    monkeypatch.setattr(literals, "MIN_BYTES", 0)


def hexadecimal(array):
    return array.tobytes().hex()


def numbers(dtype="<f4", seed=0):
    values = np.random.default_rng(seed).integers(-100, 100, LENGTH)
    return (values / 4).astype(dtype) if dtype[1] == "f" else values.astype(dtype)


def write(tmp_path, text):
    path = tmp_path / "module.mlir"
    path.write_text(text)
    return path


def returning(constant, dtype="f32"):
    type_ = f"tensor<{LENGTH}x{dtype}>"
    return f"func.func @main() -> {type_} {{\n  %0 = {constant}\n  return %0 : {type_}\n}}\n"


def run(path):
    return devscope.compile(path, cache=False)()


@pytest.mark.parametrize(
    "constant",
    [
        'arith.constant dense<"0x{}"> : tensor<40000xf32>',
        'arith.constant {{tag = "x"}} dense<"0x{}">: tensor<40000xf32>',
        '"arith.constant"() <{{value = dense<"0x{}"> : tensor<40000xf32>}}> : () -> tensor<40000xf32>',
    ],
)
def test_literals_leave_the_text(tmp_path, constant):
    array = numbers()
    path = write(tmp_path, returning(constant.format(hexadecimal(array))))
    detached = literals.detach_literals(path)
    assert detached is not None
    assert len(detached.text) < 1000
    assert list(detached.data.values()) == [array.tobytes()]
    np.testing.assert_array_equal(run(path), array)
    detached = literals.detach_literals(path.read_bytes())
    assert detached is not None
    assert len(detached.text) < 1000
    np.testing.assert_array_equal(run(path.read_text()), array)


def test_several_operations_and_custom_forms(tmp_path):
    """What MLIR reads at a second attempt only: that gives resources other names."""
    array = numbers()
    type_ = f"tensor<{LENGTH}xf32>"
    text = returning(
        f'arith.constant dense<"0x{hexadecimal(array)}"> : {type_}\n'
        f'  %1 = device.on_device %0 on #device.scope<"cpu", 0 : i64, "", ""> : {type_}'
    )
    text = f"{text}\nfunc.func @other() {{ return }}\n"
    parsed = parse_source(write(tmp_path, text), detach=True)
    assert list(parsed.literals.values()) == [array.tobytes()]
    np.testing.assert_array_equal(devscope.compile(text, cache=False).run("main"), array)


def test_equal_literals_share_memory(tmp_path):
    arrays = [numbers(), numbers(seed=1), numbers()]
    lines = [
        f'    %{n} = arith.constant dense<"0x{hexadecimal(array)}"> : tensor<{LENGTH}xf32>'
        for n, array in enumerate(arrays)
    ]
    type_ = f"tensor<{LENGTH}xf32>"
    body = "\n".join([*lines, f"    return %0, %1, %2 : {type_}, {type_}, {type_}"])
    text = f"func.func @main() -> ({type_}, {type_}, {type_}) {{\n{body}\n}}"
    detached = literals.detach_literals(text.encode())
    assert detached is not None
    assert len(detached.data) == 2
    program = devscope.build(text)
    assert len(program.constant_data) == 2
    for result, array in zip(run(text), arrays, strict=True):
        np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize(
    ("element", "dtype"),
    [("f64", "<f8"), ("i64", "<i8"), ("i16", "<i2"), ("f16", "<f2"), ("complex<f32>", "<c8")],
)
def test_element_types(tmp_path, element, dtype):
    array = numbers(dtype)
    path = write(
        tmp_path,
        returning(f'arith.constant dense<"0x{hexadecimal(array)}"> : tensor<{LENGTH}x{element}>', element),
    )
    assert literals.detach_literals(path) is not None
    np.testing.assert_array_equal(run(path), array)


@pytest.mark.parametrize("offset", [-5, -1, 0, 1, 2, 3, 4])
def test_a_literal_on_the_border_between_two_pieces(tmp_path, offset):
    """Files are read in pieces of 1 MiB; the marker ``"0x`` may be cut anywhere."""
    array = numbers()
    body = returning(f'arith.constant dense<"0x{hexadecimal(array)}"> : tensor<{LENGTH}xf32>')
    padding = (1 << 20) - body.index('"0x') - len("//\n") + offset
    path = write(tmp_path, "//" + "x" * padding + "\n" + body)
    detached = literals.detach_literals(path)
    assert detached is not None
    assert list(detached.data.values()) == [array.tobytes()]


def test_resources_leave_the_text_too(tmp_path):
    array = numbers()
    text = returning(f"arith.constant dense_resource<weights> : tensor<{LENGTH}xf32>")
    text += f'{{-#\n  dialect_resources: {{\n    builtin: {{\n      weights: "0x04000000{hexadecimal(array)}"\n'
    path = write(tmp_path, text + "    }\n  }\n#-}\n")
    detached = literals.detach_literals(path)
    assert detached is not None
    assert len(detached.text) < 1000
    assert detached.data == {"weights": array.tobytes()}
    np.testing.assert_array_equal(run(path), array)


@pytest.mark.parametrize(
    "text",
    [
        'memref.global "private" constant @g : memref<40000xf32> = dense<"0x{}">',
        'module attributes {{a = dense<"0x{}"> : tensor<40000xf32>}} {{}}',
        "module attributes {{a = dense_resource<r> : tensor<40000xf32>}} {{}}\n"
        '{{-# dialect_resources: {{ builtin: {{ r: "0x04000000{}" }} }} #-}}',
        '{{-# dialect_resources: {{ other: {{ r: "0x04000000{}" }} }} #-}}',
        '// nothing but a comment with dense<"0x{}" in it',
    ],
)
def test_data_of_anything_but_a_constant_stays(tmp_path, text):
    assert literals.detach_literals(write(tmp_path, text.format(hexadecimal(numbers())))) is None


def test_nothing_to_take_out(tmp_path):
    assert (
        literals.detach_literals(write(tmp_path, returning("arith.constant dense<1.5> : tensor<40000xf32>")))
        is None
    )
    assert literals.detach_literals(write(tmp_path, "")) is None
    (tmp_path / "bytecode").write_bytes(b"ML\xefR" + bytes(range(256)) * 4096 + b'"0x' + b"\xff" * 100_000)
    assert literals.detach_literals(tmp_path / "bytecode") is None


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d[:-8], lambda d: "zz" + d[2:]])
def test_damaged_data_is_left_to_mlir_and_its_message(tmp_path, damage):
    digits = damage(hexadecimal(numbers()))
    path = write(tmp_path, returning(f'arith.constant dense<"0x{digits}"> : tensor<{LENGTH}xf32>'))
    assert literals.detach_literals(path) is None
    with pytest.raises(DevscopeError, match=r"module\.mlir:2:"):
        run(path)


def test_locations_stay(tmp_path):
    array = numbers()
    text = returning(f'arith.constant dense<"0x{hexadecimal(array)}"> : tensor<{LENGTH}xf32>')
    path = write(
        tmp_path, text.replace("  return", '  %1 = "foreign.op"(%0) : (tensor<40000xf32>) -> i32\n  return')
    )
    with pytest.raises(DevscopeError, match=r"module\.mlir:3:8"):
        run(path)


def test_errors_are_located_in_the_whole_text(tmp_path):
    """Behind a constant, in its line, the text that is left has other columns."""
    before = (
        f'func.func @main() {{ %0 = arith.constant dense<"0x{hexadecimal(numbers())}"> : tensor<{LENGTH}xf32> '
    )
    path = write(tmp_path, before + "return %1 : i32 }")
    for source in (path, path.read_text()):
        with pytest.raises(DevscopeError, match=f":1:{len(before) + len('return ') + 1}: "):
            run(source)


def test_nothing_is_copied_where_nothing_leaves(tmp_path):
    """As with bytecode, whose constants MLIR takes out of the file itself."""
    path = tmp_path / "module.mlirbc"
    path.write_bytes(b"ML\xefR" + bytes(4 << 20))
    tracemalloc.start()
    try:
        assert literals.detach_literals(path) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
