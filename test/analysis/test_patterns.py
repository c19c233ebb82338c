"""Patterns: what they match, what belongs to a match, and what is said of those that nearly match."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, ModuleOp, TensorType, i64
from xdsl.ir import Operation

from devscope.analysis.patterns import Match, Pattern
from devscope.analysis.patterns.elements import KINDS
from devscope.analysis.patterns.python_values import python_value
from devscope.dialects.context import make_planning_context
from devscope.dialects.names import op_name
from devscope.errors import OptionError
from devscope.lowering.interop.session import Session
from devscope.parsed_source import parse_source
from devscope.patterns import (
    broadcast,
    constant,
    dominated,
    elementwise,
    match,
    near_miss,
    one_or_more,
    op,
    pdl_pattern,
    relu,
    wildcard,
)

_SESSIONS: list[Session] = []


def last(body: str, arguments: str = "%x: !t, %y: !t, %b: tensor<4xf32>", element: str = "f32") -> Operation:
    """The operation that ``%r`` is the result of, in a function of tensors."""
    maps = {"id": "i, j", "row": "j", "turned": "j, i"}
    text = "".join(f"#{name} = affine_map<(i, j) -> ({to})>\n" for name, to in maps.items())
    text += f"func.func @f({arguments}) -> !t {{\n{body}\n  return %r : !t\n}}"
    parsed = parse_source(text.replace("!t", f"tensor<4x4x{element}>"))
    session = Session(make_planning_context(), parsed.context)
    _SESSIONS.append(session)
    module: ModuleOp = session.to_xdsl(parsed.module)
    end = next(o for o in module.walk() if op_name(o) == "func.return")
    owner = end.operands[0].owner
    assert isinstance(owner, Operation)
    return owner


def names(found: Match | None) -> list[str] | None:
    return None if found is None else [op_name(one) for one in found.ops]


ADD = "%r = arith.addf %0, %y : !t"
ZERO = "%z = arith.constant 0.0 : f32\n"
EMPTY = "%e = tensor.empty() : !t\n"


def generic(result: str, operands: str, maps: str, body: str) -> str:
    types = ", ".join("tensor<4xf32>" if one == "%b" else "!t" for one in operands.split(", "))
    arguments = ", ".join(f"%a{n}: f32" for n in range(len(operands.split(", "))))
    kinds = '["parallel", "parallel"]'
    return (
        f"{result} = linalg.generic {{indexing_maps = [{maps}, #id], iterator_types = {kinds}}}"
        f" ins({operands} : {types}) outs(%e : !t) {{\n^bb0({arguments}, %o: f32):\n{body}\n}} -> !t\n"
    )


@pytest.mark.parametrize(
    "body",
    [
        "%r = arith.addf %y, %x : !t",
        EMPTY + "%r = linalg.add ins(%x, %y : !t, !t) outs(%e : !t) -> !t",
        EMPTY + generic("%r", "%x, %y", "#id, #id", "%s = arith.addf %a1, %a0 : f32\nlinalg.yield %s : f32"),
        "%r = stablehlo.add %x, %y : !t",
    ],
)
def test_elementwise_however_it_is_written(body: str) -> None:
    found = match(elementwise("add", wildcard().named("one"), wildcard().named("other")), last(body))
    assert found is not None
    assert len(found.ops) == 1
    assert {found["one"], found["other"]} == {*found.root.operands[:2]}
    assert match(elementwise("mul", wildcard(), wildcard()), last(body)) is None


def test_several_in_one_body() -> None:
    body = "%m = arith.mulf %a0, %a0 : f32\n%s = arith.addf %m, %a1 : f32\n%u = arith.maximumf %z, %s : f32\n"
    program = ZERO + EMPTY + generic("%r", "%x, %b", "#id, #row", body + "linalg.yield %u : f32")
    x, b = wildcard().named("x"), broadcast(wildcard().named("b"), [-1])
    found = match(relu(elementwise("add", elementwise("mul", x, x), b)), last(program))
    assert found is not None
    assert names(found) == ["linalg.generic"]
    assert [found["x"], found["b"]] == list(found.root.operands[:2])
    assert set(found.values) == {"x", "b"}  # what relu names for itself is its own
    along_rows = relu(elementwise("add", elementwise("mul", x, x), broadcast(wildcard(), [0])))
    assert match(along_rows, last(program)) is None
    assert match(relu(elementwise("add", x, b)), last(program)) is None  # the body computes more


def test_operands_have_the_shape_of_the_result() -> None:
    turned = EMPTY + generic(
        "%r", "%x, %y", "#id, #turned", "%s = arith.addf %a0, %a1 : f32\nlinalg.yield %s : f32"
    )
    miss = near_miss(elementwise("add", wildcard(), wildcard()), last(turned))
    assert miss is not None
    assert "broadcast or permuted" in miss.text


def test_relu_as_a_choice() -> None:
    body = "%c = arith.cmpf {0}, %a0, %z : f32\n%s = arith.select %c, %a0, %z : f32\nlinalg.yield %s : f32"
    for predicate, right in (("ugt", True), ("ogt", False)):  # of a NaN, the second makes a zero
        program = ZERO + EMPTY + generic("%r", "%x", "#id", body.format(predicate))
        assert (match(relu(wildcard()), last(program)) is not None) == right


def test_alternatives_options_and_repetition() -> None:
    tanh, x = op("math.tanh", wildcard()), wildcard().named("x")
    chain = "%0 = math.tanh %x : !t\n%1 = math.absf %0 : !t\n%2 = math.tanh %1 : !t\n%r = math.tanh %2 : !t"
    step = lambda p: op(["math.tanh", "math.absf"], p)  # noqa: E731
    assert names(match(one_or_more(step, x), last(chain))) == ["math.tanh", "math.absf", "math.tanh", "math.tanh"]
    assert names(match(one_or_more(lambda p: op("math.tanh", p), x), last(chain))) == ["math.tanh"] * 2
    assert names(match(tanh.optional(lambda p: op("math.absf", p)), last(chain))) == ["math.tanh"]
    assert match(op("math.exp", x) | op("math.absf", x), last(chain)) is None
    assert names(match(op("math.*", op("math.t*", x)), last(chain))) == ["math.tanh"] * 2


def test_operations_with_several_results() -> None:
    """A match may be about any of them."""
    body = "%s, %r = arith.addui_extended %x, %y : !t, !t\n"
    program = last(body, "%x: !t, %y: !t", "i1")
    for result in (0, 1):
        assert names(match(op("arith.addui_extended", result=result), program)) == ["arith.addui_extended"]
    assert match(op("arith.addui_extended", result=2), program) is None


def test_names_are_one_value() -> None:
    x = wildcard().named("x")
    assert match(op("arith.addf", x, x), last("%r = arith.addf %x, %x : !t")) is not None
    pattern = op("arith.addf", x, x)
    assert match(pattern, last("%r = arith.addf %x, %y : !t")) is None
    miss = near_miss(pattern, last("%r = arith.addf %x, %y : !t"))
    assert miss is not None
    assert "two different values would be 'x'" in miss.text


def test_dominated_region() -> None:
    body = "%0 = math.exp %x : !t\n%1 = math.tanh %0 : !t\n%2 = math.absf %0 : !t\n%3 = arith.addf %1, %2 : !t\n"
    program = last(body + "%r = arith.mulf %3, %y : !t")
    path = op(["math.tanh", "math.absf", "arith.addf"])
    region = dominated(op("math.exp", wildcard()), path, op("arith.mulf"))
    assert names(match(region, program)) == ["math.exp", "math.tanh", "math.absf", "arith.addf", "arith.mulf"]
    assert match(dominated(op("math.log"), path, op("arith.mulf")), program) is None


def test_checks_attributes_and_constants() -> None:
    program = ZERO + EMPTY + "%f = linalg.fill ins(%z : f32) outs(%e : !t) -> !t\n"
    program += "%r = linalg.matmul ins(%x, %y : !t, !t) outs(%f : !t) -> !t"
    x = wildcard().has_type("f32", rank=2, static=True)
    assert match(op("linalg.matmul", x, x, constant(0.0)), last(program)) is not None
    for pattern, text in (
        (op("linalg.matmul", x, x, constant(1.0)), "the constant is 0, not 1"),
        (op("linalg.matmul", x.has_type("f64"), x), "is not of f64"),
        (op("linalg.matmul", x.where(lambda value: "too large"), x), "too large"),
        (op("linalg.matmul", x, x, attributes={"cast": "signed"}), "'cast' of 'linalg.matmul' is None"),
        (op("linalg.matmul", op("math.exp"), x), "an argument stands where 'math.exp' should be"),
    ):
        miss = near_miss(pattern, last(program))
        assert miss is not None
        assert text in miss.text
    with pytest.raises(TypeError, match="it answers 0, neither True nor False nor why not"):
        match(op("linalg.matmul", x.where(lambda value: 0)), last(program))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("type_", "zero", "add"), [("i8", "0", "addi"), ("f64", "0.0", "addf")])
def test_zeros_of_any_type_are_constants(type_: str, zero: str, add: str) -> None:
    program = f"""%t = tensor.empty() : !t
      %z = arith.constant {zero} : {type_}
      %f = linalg.fill ins(%z : {type_}) outs(%t : !t) -> !t
      %d = arith.constant dense<{zero}> : !t
      %r = arith.{add} %f, %d : !t"""
    both = op(f"arith.{add}", constant(0.0), constant(0.0))
    assert match(both, last(program, element=type_)) is not None


def test_elementwise_operations_exist() -> None:
    context = parse_source("func.func @main() { return }").context
    names = [name for row in KINDS.values() for name in f"{row.scalar} {row.tensor}".split()]
    assert [name for name in names if not context.is_registered_operation(name)] == []
    assert not context.is_registered_operation("math.nothing")


ROW = """%e1 = tensor.empty() : tensor<1x4xf32>
  %u = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<4xf32>) outs(%e1 : tensor<1x4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    linalg.yield %a0 : f32
  } -> tensor<1x4xf32>
"""
EXPANDED = "%u = tensor.expand_shape %b [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>\n"
REPEATED = """%v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (0, j)>, #id],
      iterator_types = ["parallel", "parallel"]} ins(%u : tensor<1x4xf32>) outs(%e : !t) {
  ^bb0(%a0: f32, %o: f32):
    linalg.yield %a0 : f32
  } -> !t
"""


@pytest.mark.parametrize("row", [ROW, EXPANDED])
@pytest.mark.parametrize("whole", [False, True])
def test_broadcasts_in_steps(row: str, whole: bool) -> None:
    """A vector becomes a row, which is repeated, before what uses it or in its body."""
    if whole:
        body = "%s = arith.addf %a0, %a1 : f32\nlinalg.yield %s : f32"
        end = REPEATED + generic("%r", "%x, %v", "#id, #id", body)
    else:
        end = """%r = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (0, j)>, #id],
            iterator_types = ["parallel", "parallel"]} ins(%x, %u : !t, tensor<1x4xf32>) outs(%e : !t) {
          ^bb0(%a0: f32, %a1: f32, %o: f32):
            %s = arith.addf %a0, %a1 : f32
            linalg.yield %s : f32
          } -> !t\n"""
    program = last(EMPTY + row + end)
    found = match(elementwise("add", wildcard(), broadcast(wildcard().named("b"), [-1])), program)
    assert found is not None
    assert str(found["b"].type) == "tensor<4xf32>"
    assert len(found.ops) == 2 + whole
    assert match(elementwise("add", wildcard(), broadcast(wildcard(), [0])), program) is None


def test_what_is_permuted_is_not_broadcast() -> None:
    body = "%s = arith.addf %a0, %a1 : f32\nlinalg.yield %s : f32"
    program = last(EMPTY + generic("%r", "%x, %y", "#id, #turned", body))
    assert match(elementwise("add", wildcard(), broadcast(wildcard())), program) is None


def test_pdl() -> None:
    pattern: Pattern = pdl_pattern("""
        pdl.pattern : benefit(1) {
          %x = pdl.operand
          %type = pdl.type
          %inner = pdl.operation "math.tanh" (%x : !pdl.value) -> (%type : !pdl.type)
          %value = pdl.result 0 of %inner
          %root = pdl.operation "math.absf" (%value : !pdl.value) -> (%type : !pdl.type)
          pdl.rewrite %root with "none"
        }""")
    found = match(pattern, last("%0 = math.tanh %x : !t\n%r = math.absf %0 : !t"))
    assert names(found) == ["math.tanh", "math.absf"]
    assert found is not None
    assert found["x"] is found.ops[0].operands[0]
    assert match(pattern, last("%0 = math.exp %x : !t\n%r = math.absf %0 : !t")) is None
    for text in ("no PDL", "builtin.module {}"):
        with pytest.raises(OptionError):
            pdl_pattern(text)


def test_pdl_with_constraints() -> None:
    """Functions of the backend that the pattern calls by name."""
    text = """
        pdl.pattern : benefit(1) {
          %x = pdl.operand
          %type = pdl.type
          %root = pdl.operation "math.absf" (%x : !pdl.value) -> (%type : !pdl.type)
          pdl.apply_native_constraint "is_wide"(%x : !pdl.value)
          pdl.rewrite %root with "none"
        }"""
    program = last("%r = math.absf %x : !t")
    for answer in (True, False):
        pattern = pdl_pattern(text, {"is_wide": lambda *_, answer=answer: answer})
        assert (match(pattern, program) is not None) == answer
    miss = near_miss(pattern, program)
    assert miss is not None
    assert "constraint 'is_wide' says no" in miss.text


def test_the_parent_of_a_region_is_always_the_same() -> None:
    """Of two that might be one, that which the order of operations says, not that of addresses."""
    body = "%0 = math.exp %x : !t\n%1 = math.exp %y : !t\n%2 = math.tanh %0 : !t\n%3 = math.tanh %1 : !t\n"
    body += "%4 = math.absf %2 : !t\n%5 = math.absf %3 : !t\n%r = arith.addf %4, %5 : !t"
    child = op("arith.addf", op("math.absf"), op("math.absf"))
    region = dominated(op("math.exp", wildcard().named("parent")), op("math.tanh"), child)
    found = [match(region, last(body)) for _ in range(8)]
    assert {one["parent"].index for one in found if one is not None} == {found[0]["parent"].index}  # type: ignore


def test_long_chains() -> None:
    tanh = one_or_more(lambda x: op("math.tanh", x), wildcard())
    count = 1000
    body = "%0 = math.tanh %x : !t\n" + "".join(f"%{n} = math.tanh %{n - 1} : !t\n" for n in range(1, count))
    found = match(tanh, last(f"{body}%r = math.tanh %{count - 1} : !t"))
    assert found is not None
    assert len(found.ops) == count + 1


def test_repetitions_in_repetitions() -> None:
    """Groups of tanh, each with one abs behind it."""
    group = lambda x: op("math.absf", one_or_more(lambda y: op("math.tanh", y), x))  # noqa: E731
    groups = one_or_more(group, wildcard()).named("last")
    chain = ["math.exp", "math.tanh", "math.absf", "math.tanh", "math.tanh", "math.absf"]
    values = ["%x", "%0", "%1", "%2", "%3", "%4", "%r"]
    body = "".join(f"{values[n + 1]} = {name} {values[n]} : !t\n" for n, name in enumerate(chain))
    found = match(groups, last(body))
    assert names(found) == chain[1:]
    assert found is not None
    assert found["last"] is found.root.results[0]
    both = one_or_more(lambda x: op("arith.addf", x, x), op("math.exp"))
    squares = "%0 = math.exp %x : !t\n%1 = arith.addf %0, %0 : !t\n%r = arith.addf %1, %1 : !t\n"
    assert names(match(both, last(squares))) == ["math.exp", "arith.addf", "arith.addf"]


def test_what_no_pattern_can_be() -> None:
    for make in (
        lambda: one_or_more(lambda x: x, op("math.tanh")),
        lambda: one_or_more(lambda x: broadcast(x), op("math.tanh")),
        lambda: one_or_more(lambda x: op("math.tanh", x) | x, op("math.tanh")),
        lambda: op("matmul"),
        lambda: op("arith.addf", wildcard(), commutative=True),
        lambda: elementwise("plus", wildcard(), wildcard()),
        lambda: elementwise("add", wildcard()),
    ):
        with pytest.raises(OptionError):
            make()


def test_splats_as_attributes() -> None:
    """All of their elements, however many are stored."""
    type_ = TensorType(i64, [2, 2])
    assert python_value(DenseIntOrFPElementsAttr(type_, BytesAttr((7).to_bytes(8, "little")))) == [7] * 4
