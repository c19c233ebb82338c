"""Control flow, calls and the dialect's own operations of random programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from random_operations import scalar_code
from random_program import INDEX, Block, Function, Generator, Statement, Value
from random_values import COMPLEX, Environment, Type, scalar


def _carried(g: Generator, block: Block) -> list[Value]:
    found = [value for value in block.visible if value[1] != INDEX]
    return g.recent(found, g.integer(1, 4)) if found else [g.value(block, g.tensor_type())]


def _results(g: Generator, types: Sequence[Type]) -> list[Value]:
    return [(g.name(), type_) for type_ in types]


def _add(
    block: Block,
    results: list[Value],
    text: Callable[[], str],
    run: Callable[[Environment], Sequence[Any]],
    *blocks: Block,
) -> None:
    def step(environment: Environment) -> None:
        for (name, type_), value in zip(results, run(environment), strict=True):
            environment[name] = np.asarray(value, type_.numpy)

    block.statements.append(Statement(results, text, step, blocks))
    block.visible += results


def _names(values: Sequence[Value]) -> str:
    return ", ".join(name for name, _ in values)


def _types(values: Sequence[Value]) -> str:
    return ", ".join(str(type_) for _, type_ in values)


def _close(g: Generator, block: Block, types: Sequence[Type]) -> None:
    block.yielded = [g.value(block, type_)[0] for type_ in types]


def condition(g: Generator, block: Block) -> str:
    if g.chance(0.3):
        return g.value(block, scalar("i1"))[0]
    return scalar_code(g, block, "i1", 1)


def _choice(g: Generator, block: Block) -> tuple[str, list[Block], list[Value]]:
    """A condition, the two blocks of which it chooses one, and what both give."""
    types = [type_ for _, type_ in _carried(g, block)]
    test = condition(g, block)
    sides = [g.inner(block), g.inner(block)]
    for side in sides:
        _close(g, side, types)
    results = _results(g, types)
    return test, sides, results


def if_(g: Generator, block: Block) -> None:
    test, sides, results = _choice(g, block)
    _add(
        block,
        results,
        lambda: (
            f"  {_names(results)} = scf.if {test} -> ({_types(results)}) {{\n{_yield(sides[0], results)}\n"
            f"  }} else {{\n{_yield(sides[1], results)}\n  }}"
        ),
        lambda e: sides[0 if e[test] else 1].run(e.inner()),
        *sides,
    )


def _yield(block: Block, results: Sequence[Value], end: str = "scf.yield") -> str:
    return f"{block.text()}\n  {end} {', '.join(block.yielded)} : {_types(results)}"


def _bound(g: Generator, block: Block) -> str:
    return "%c3" if g.busy else g.pick(["%c0", "%c1", "%c2", "%c3", "%c3", "%n"])


def blocks(g: Generator, block: Block) -> None:
    """Two ways that meet again, in blocks of the function."""
    if block.depth or block.owner is None:
        return if_(g, block)
    test, sides, results = _choice(g, block)
    label = g.name()[1:]

    def text() -> str:
        typed = ", ".join(f"{name}: {type_}" for name, type_ in results)
        ends = [f"cf.br ^{label}end({', '.join(side.yielded)} : {_types(results)})" for side in sides]
        return (
            f"  cf.cond_br {test}, ^{label}one, ^{label}two\n"
            f"^{label}one:\n{sides[0].text()}\n  {ends[0]}\n"
            f"^{label}two:\n{sides[1].text()}\n  {ends[1]}\n^{label}end({typed}):"
        )

    _add(block, results, text, lambda e: sides[0 if e[test] else 1].run(e.inner()), *sides)


def for_(g: Generator, block: Block) -> None:
    initial = _carried(g, block)
    carried, counter = _results(g, [t for _, t in initial]), g.name()
    inner = g.inner(block, [(counter, INDEX), *carried])
    _close(g, inner, [t for _, t in initial])
    results = _results(g, [t for _, t in initial])
    low, high, step = g.pick(["%c0", "%c1"]), _bound(g, block), g.pick(["%c1", "%c1", "%c2"])
    head, end = f"scf.for {counter} = {low} to {high} step {step}", "scf.yield"
    if g.chance(0.2):
        end, limit = "affine.yield", high if high == "%n" else high[2:]
        head = f"affine.for {counter} = {low[2:]} to {limit} step {step[2:]}"
    pairs = ", ".join(f"{a} = {b}" for (a, _), (b, _) in zip(carried, initial, strict=True))

    def run(e: Environment) -> Sequence[Any]:
        state = [e[name] for name, _ in initial]
        for index in range(int(e[low]), min(int(e[high]), 40), int(e[step])):
            scope = e.inner()
            scope[counter] = np.int64(index)
            scope.update(zip((name for name, _ in carried), state, strict=True))
            state = inner.run(scope)
        return state

    _add(
        block,
        results,
        lambda: (
            f"  {_names(results)} = {head} iter_args({pairs})"
            f" -> ({_types(results)}) {{\n{_yield(inner, results, end)}\n  }}"
        ),
        run,
        inner,
    )


def while_(g: Generator, block: Block) -> None:
    """Runs while a counter is small and something else holds, which may be read from a device."""
    initial = _carried(g, block)
    types = [t for _, t in initial]
    before, after, results = _results(g, types), _results(g, types), _results(g, types)
    counter, last, next_, count, small, both = (g.name() for _ in range(6))
    bound = _bound(g, block)
    test = Block([*block.visible, *before, (counter, INDEX)], block.depth + 1, block.owner)
    also = g.constant_scalar(test, scalar("i1"), True)[0] if g.busy else condition(g, test)
    inner = g.inner(block, [*after, (next_, INDEX)])
    _close(g, inner, types)
    pairs = ", ".join(f"{a} = {b}" for (a, _), (b, _) in zip(before, initial, strict=True))
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in after)

    def run(e: Environment) -> Sequence[Any]:
        state, at = [e[name] for name, _ in initial], 0
        while True:
            scope = e.inner()
            scope.update(zip((name for name, _ in before), state, strict=True))
            scope[counter] = np.int64(at)
            test.run(scope)
            if not (at < min(int(e[bound]), 40) and scope[also]):
                return state
            scope = e.inner()
            scope.update(zip((name for name, _ in after), state, strict=True))
            scope[next_] = np.int64(at)
            state, at = inner.run(scope), at + 1

    def text() -> str:
        all_types = ", ".join([*map(str, types), "index"])
        yielded = ", ".join([*inner.yielded, count])
        return (
            f"  {_names(results)}, {last} = scf.while ({pairs}, {counter} = %c0) : ({all_types}) -> ({all_types})"
            f" {{\n{test.text()}\n  {small} = arith.cmpi ult, {counter}, {bound} : index\n"
            f"  {both} = arith.andi {small}, {also} : i1\n"
            f"  scf.condition({both}) {_names(before)}, {counter} : {all_types}\n  }} do {{\n"
            f"  ^bb0({arguments}, {next_}: index):\n{inner.text()}\n"
            f"  {count} = arith.addi {next_}, %c1 : index\n  scf.yield {yielded} : {all_types}\n  }}"
        )

    _add(block, results, text, run, test, inner)


def switch(g: Generator, block: Block) -> None:
    types = [t for _, t in _carried(g, block)]
    chosen = g.pick(["%n", "%c1", "%m"])
    sides = [g.inner(block) for _ in range(3)]
    for side in sides:
        _close(g, side, types)
    results = _results(g, types)

    def text() -> str:
        labels = ("case 0", "case 1", "default")
        arms = [f"  {label} {{\n{_yield(s, results)}\n  }}" for label, s in zip(labels, sides, strict=True)]
        return "\n".join([f"  {_names(results)} = scf.index_switch {chosen} -> {_types(results)}", *arms])

    _add(block, results, text, lambda e: sides[min(int(e[chosen]), 2)].run(e.inner()), *sides)


def execute(g: Generator, block: Block) -> None:
    inner = g.inner(block)
    types = [t for _, t in _carried(g, block)]
    _close(g, inner, types)
    results = _results(g, types)
    _add(
        block,
        results,
        lambda: (
            f"  {_names(results)} = scf.execute_region -> ({_types(results)}) {{\n{_yield(inner, results)}\n  }}"
        ),
        lambda e: inner.run(e.inner()),
        inner,
    )


def call(g: Generator, block: Block) -> None:
    if not g.functions:
        return
    callee: Function = g.pick(g.functions)
    arguments = [g.value(block, type_)[0] for _, type_ in callee.arguments]
    sizes = ["%n", "%m"]
    results = _results(g, [t for _, t in callee.results])
    types = ", ".join([*(str(t) for _, t in callee.arguments), "index", "index"])
    _add(
        block,
        results,
        lambda: (
            f"  {_names(results)} = func.call @{callee.name}({', '.join([*arguments, *sizes])})\n"
            f"    : ({types}) -> ({_types(results)})"
        ),
        lambda e: callee.run([e[name] for name in [*arguments, *sizes]], e),
    )


def recursive(g: Generator, block: Block) -> None:
    """A function of its own that calls itself up to three times."""
    x, type_ = g.tensor(block, lambda t: t.known, g.tensor_type)
    function = Function(f"again{g.name()[2:]}")
    value, again = ("%x", type_), "%again"
    body = function.body
    function.arguments = [value, ("%k", INDEX)]
    body.visible += [value, ("%k", INDEX)]
    g.fill(body, g.integer(1, 3))
    last = g.value(body, type_)[0]
    extra = function.arguments[2:]
    mark = g.scope() if g.chance(0.5) else ""
    mid, first, less, result = (g.name() for _ in range(4))
    names = ", ".join([again, less, *(name for name, _ in extra), "%n", "%m"])
    types = ", ".join([str(type_), "index", *(str(t) for _, t in extra), "index", "index"])
    inner = Block(list(body.visible), 1, function)

    def run(e: Environment) -> Sequence[Any]:
        count = int(e["%k"])
        if count == 0:
            return [e[value[0]]]
        rest = [e[last], np.int64(count - 1), *(e[name] for name, _ in extra), e["%n"], e["%m"]]
        return function.run(rest, e)

    def text() -> str:
        return (
            f"  {first} = arith.cmpi eq, %k, %c0 : index\n"
            f"  {mid} = scf.if {first} -> ({type_}) {{\n  scf.yield %x : {type_}\n  }} else {{\n"
            f"  {less} = arith.subi %k, %c1 : index\n"
            f"  {result} = func.call @{function.name}({names.replace(again, last)}) : ({types}) -> {type_}\n"
            f"  scf.yield {result} : {type_}\n  }}"
        )

    _add(body, [(mid, type_)], text, run, inner)
    function.results = [(mid, type_)]
    function.body.yielded = [mid]
    if mark:
        function.marks["0"] = mark
    g.functions.append(function)
    start = g.pick(["%c0", "%c1", "%c3"])
    given = [x, start, *(g.value(block, t)[0] for _, t in extra), "%n", "%m"]
    made = _results(g, [type_])
    _add(
        block,
        made,
        lambda: f"  {_names(made)} = func.call @{function.name}({', '.join(given)}) : ({types}) -> {type_}",
        lambda e: function.run([e[name] for name in given], e),
    )


def indirect(g: Generator, block: Block) -> None:
    """One of two functions of the same type, chosen at run time."""
    x, type_ = g.tensor(
        block, lambda t: t.known and t.dtype not in COMPLEX, lambda: g.tensor_type(dtypes=g.dtypes[:3])
    )
    made: list[Function] = []
    for _ in range(2):
        function = Function(f"pick{g.name()[2:]}", [("%x", type_)])
        function.body.visible.append(("%x", type_))
        before = g.functions
        g.functions = []
        body = function.body
        for _ in range(g.integer(1, 3)):
            g.pick(_SIMPLE)(g, body, type_)
        g.functions = before
        function.results = [(g.value(body, type_)[0], type_)]
        body.yielded = [function.results[0][0]]
        made.append(function)
    if any(len(function.arguments) > 1 for function in made):
        return
    g.functions += made
    test, kind = condition(g, block), f"({type_}, index, index) -> {type_}"
    one, two, chosen = (g.name() for _ in range(3))
    if g.chance(0.5):
        choice = f"  {chosen} = arith.select {test}, {one}, {two} : {kind}"
    else:
        arms = [f"{{\n  scf.yield {name} : {kind}\n  }}" for name in (one, two)]
        choice = f"  {chosen} = scf.if {test} -> ({kind}) {arms[0]} else {arms[1]}"
    results = _results(g, [type_])
    use, run = g.pick([_call_it, _apply_it, _carry_it])(g, (chosen, kind), (x, type_), results[0][0])
    _add(
        block,
        results,
        lambda: (
            f"  {one} = func.constant @{made[0].name} : {kind}\n"
            f"  {two} = func.constant @{made[1].name} : {kind}\n{choice}\n{use}"
        ),
        lambda e: [run(made[0 if e[test] else 1], e)],
    )


Use = tuple[str, Callable[[Function, Environment], Any]]
"""The text of a use of a function value, and what it computes when the value is a function."""


def _call_it(g: Generator, function: tuple[str, str], x: Value, result: str) -> Use:
    text = f"  {result} = func.call_indirect {function[0]}({x[0]}, %n, %m) : {function[1]}"
    return text, lambda f, e: _times(f, e, e[x[0]], 1)


def _times(f: Function, e: Environment, value: Any, count: int) -> Any:
    for _ in range(count):
        (value,) = f.run([value, e["%n"], e["%m"]], e)
    return value


def _apply_it(g: Generator, function: tuple[str, str], x: Value, result: str) -> Use:
    """Another function calls it twice."""
    name, kind = f"apply{g.name()[2:]}", function[1]
    apply = Function(name, [("%f", kind), ("%x", x[1])], {}, [("%1", x[1])])  # pyright: ignore[reportArgumentType]
    text = f"  %0 = func.call_indirect %f(%x, %n, %m) : {kind}\n  %1 = func.call_indirect %f(%0, %n, %m) : {kind}"
    apply.body.statements.append(Statement([("%1", x[1])], lambda: text, lambda _: None))
    g.others.append(apply)
    call = f"  {result} = func.call @{name}({function[0]}, {x[0]}, %n, %m)"
    return f"{call} : ({kind}, {x[1]}, index, index) -> {x[1]}", lambda f, e: _times(f, e, e[x[0]], 2)


def _carry_it(g: Generator, function: tuple[str, str], x: Value, result: str) -> Use:
    """A loop carries it, and what it makes."""
    last, carried, value, made, counter = (g.name() for _ in range(5))
    bound = g.pick(["%c0", "%c2", "%c3"])
    types = f"{function[1]}, {x[1]}"
    text = (
        f"  {last}, {result} = scf.for {counter} = %c0 to {bound} step %c1"
        f" iter_args({carried} = {function[0]}, {value} = {x[0]}) -> ({types}) {{\n"
        f"  {made} = func.call_indirect {carried}({value}, %n, %m) : {function[1]}\n"
        f"  scf.yield {carried}, {made} : {types}\n  }}"
    )
    return text, lambda f, e: _times(f, e, e[x[0]], int(e[bound]))


def _negated(g: Generator, body: Block, type_: Type) -> None:
    x = g.value(body, type_)[0]
    kind = type_.numpy.kind
    if kind == "f":
        g.emit(body, type_, f"arith.negf {x}{g.scope()} : {type_}", lambda e: -e[x])
    elif kind == "i":
        g.emit(body, type_, f"arith.addi {x}, {x}{g.scope()} : {type_}", lambda e: e[x] + e[x])
    else:
        g.emit(body, type_, f"arith.xori {x}, {x}{g.scope()} : {type_}", lambda e: e[x] ^ e[x])


_SIMPLE = (_negated,)


def region(g: Generator, block: Block) -> None:
    inner = g.inner(block, length=g.integer(1, 3))
    found = [v for v in inner.visible[len(block.visible) :] if not v[1].scalar and v[1].known]
    if not found:
        found = [g.value(inner, g.tensor_type())]
    count = g.integer(1, 3) if g.chance(0.3) else 1
    types = [t for _, t in g.recent(found, count)]
    _close(g, inner, types)
    results = _results(g, types)
    scope = g.pick(g.scopes)
    _add(
        block,
        results,
        lambda: (
            f'  {_names(results)} = "device.region"() ({{\n{inner.text()}\n'
            f'    "device.yield"({", ".join(inner.yielded)}) : ({_types(results)}) -> ()\n'
            f"  }}) {{scope = {scope}}} : () -> ({_types(results)})"
        ),
        lambda e: inner.run(e.inner()),
        inner,
    )


def permission(g: Generator, block: Block) -> None:
    """``on_device`` that may copy: it contradicts nothing."""
    x, type_ = g.tensor(block, lambda _: True, g.tensor_type)
    text = (
        f'"device.on_device"({x}) {{scope = {g.pick(g.scopes)}, constrain_body = false, constrain_result = false}}'
        f" : ({type_}) -> {type_}"
    )
    g.emit(block, type_, text, lambda e: e[x])


def forall(g: Generator, block: Block) -> None:
    """Rows of the result from rows of an operand."""

    def suits(t: Type) -> bool:
        return len(t.shape) >= 1 and t.dtype in FLOATS and 0 not in t.shape  # as for slices

    from random_values import FLOATS

    x, type_ = g.tensor(block, suits, lambda: g.tensor_type(g.integer(1, 4), FLOATS))
    if 0 in type_.shape:
        return
    row = Type(type_.dtype, (1, *type_.shape[1:]))
    out = g.empty(block, type_)
    index, shared, part, done = (g.name() for _ in range(4))
    rest = type_.shape[1:]
    offsets = ", ".join([index, *("0" for _ in rest)])
    sizes = ", ".join(["1", *(f"%{e}" if isinstance(e, str) else str(e) for e in rest)])
    ones = ", ".join("1" for _ in type_.shape)
    high = f"%{type_.shape[0]}" if isinstance(type_.shape[0], str) else str(type_.shape[0])
    results = _results(g, [type_])
    mark = g.scope()
    _add(
        block,
        results,
        lambda: (
            f"  {_names(results)} = scf.forall ({index}) in ({high}) shared_outs({shared} = {out})"
            f" -> ({type_}) {{\n"
            f"    {part} = tensor.extract_slice {x}[{offsets}] [{sizes}] [{ones}] : {type_} to {row}\n"
            f"    {done} = arith.addf {part}, {part} : {row}\n    scf.forall.in_parallel {{\n"
            f"      tensor.parallel_insert_slice {done} into {shared}[{offsets}] [{sizes}] [{ones}]"
            f" : {row} into {type_}\n    }}\n  }}{mark}"
        ),
        lambda e: [e[x] + e[x]],
    )


CONTROL = [if_, if_, blocks, for_, for_, while_, switch, execute, call, call, call, recursive, indirect, region,
           region, permission, forall]  # fmt: skip
