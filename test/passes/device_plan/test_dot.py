"""The plan as a graph: valid DOT whatever names occur, with every copy as an edge."""

from __future__ import annotations

import re

import pytest

from devscope.passes.device_plan.report.dot import dot_text

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[{}\[\];=,]|[A-Za-z_][A-Za-z_0-9]*|[0-9.]+|\s+', re.DOTALL)


class DotParser:
    """The part of the DOT grammar that is used, strictly: raises AssertionError for anything else."""

    def __init__(self, text: str) -> None:
        self.tokens = []
        position = 0
        while position < len(text):
            match = TOKEN.match(text, position)
            assert match is not None, text[position : position + 40]
            if not match.group().isspace():
                self.tokens.append(match.group())
            position = match.end()
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self.clusters: list[str] = []
        self.expect("digraph")
        self.take()
        self.body()
        assert not self.tokens

    def take(self) -> str:
        return self.tokens.pop(0)

    def expect(self, token: str) -> None:
        found = self.take()
        assert found == token, (found, token)

    def body(self) -> None:
        self.expect("{")
        while self.tokens[0] != "}":
            if self.tokens[0] == "subgraph":
                self.take()
                self.clusters.append(self.take())
                self.body()
            else:
                self.statement()
        self.take()

    def statement(self) -> None:
        name = self.take()
        assert re.fullmatch(r"[A-Za-z_]\w*", name)
        if self.tokens[0] == "=":
            self.take()
            self.take()
        elif self.tokens[0] == "->":
            self.take()
            self.edges.append((name, self.take(), self.attributes()))
        elif name not in ("node", "edge"):
            assert name not in self.nodes, f"{name} is declared twice"
            self.nodes[name] = self.attributes()
        else:
            self.attributes()
        self.expect(";")

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.tokens[0] == "[":
            self.take()
            while self.tokens[0] != "]":
                key = self.take()
                self.expect("=")
                found[key] = self.take()
                if self.tokens[0] == ",":
                    self.take()
            self.take()
        return found


def graph(planned) -> DotParser:
    parsed = DotParser(dot_text(planned.plan, planned.module))
    for src, dst, _ in parsed.edges:
        assert src in parsed.nodes, "an edge must not make a node"
        assert dst in parsed.nodes
    return parsed


def test_copies_are_labelled_edges(plan) -> None:
    parsed = graph(
        planned := plan(
            """func.func @main(%x: !t, %p: i1) -> !t {
              %0 = scf.if %p -> (!t) {
                %1 = "ml.exp"(%x) {device.scope = #dev0} : (!t) -> !t
                scf.yield %1 : !t
              } else {
                scf.yield %x : !t
              }
              %2 = "ml.log"(%0) {device.scope = #cpu0} : (!t) -> !t
              func.return %2 : !t
            }""",
            arguments="host",
        )
    )
    labels = {attributes["label"].strip('"') for attributes in parsed.nodes.values()}
    copies = [attributes["label"] for _, _, attributes in parsed.edges if "label" in attributes]
    assert all(label.endswith('\\n140 bytes"') for label in copies)
    assert len(copies) == len(planned.plan.copies) == 2
    assert {"cpu:0", "opencl:0"} <= labels
    assert parsed.clusters == ["cluster_0", "cluster_legend"]


@pytest.mark.parametrize("name", ['quote"', "back\\\\slash", "new\\0Aline", "<b>html</b>", "{a|b}", "%s"])
def test_any_function_name(plan, name: str) -> None:
    escaped = name.replace('"', '\\"')
    parsed = graph(
        plan(
            f"""func.func @"{escaped}"(%x: !t) -> !t {{
              %0 = "ml.exp"(%x) {{device.scope = #dev0}} : (!t) -> !t
              func.return %0 : !t
            }}""",
            verify=False,
        )
    )
    assert len(parsed.nodes) == 5 - 1  # argument, operation, return, one scope


def test_blocks_and_regions(plan) -> None:
    """Block arguments get what branches pass; what runs as a whole is one node; no name is used twice."""
    parsed = graph(
        plan(
            """func.func @main(%x: !t, %p: i1) -> !t {
              cf.cond_br %p, ^a(%x : !t), ^b(%x : !t)
            ^a(%q: !t):
              %0 = "ml.exp"(%q) {device.scope = #dev0} : (!t) -> !t
              cf.br ^b(%0 : !t)
            ^b(%r: !t):
              %1 = "scf.forall"(%r) ({
                ^bb0(%i: index, %o: !t):
                %2 = "ml.op"(%o) : (!t) -> !t
                "scf.forall.in_parallel"() ({ "ml.end"() : () -> () }) : () -> ()
              }) {device.scope = #dev0} : (!t) -> !t
              func.return %1 : !t
            }"""
        )
    )
    labels = [attributes["label"] for attributes in parsed.nodes.values()]
    assert sum("forall" in label for label in labels) == 1
    assert not any("ml.op" in label for label in labels)
    assert len([edge for edge in parsed.edges if "label" not in edge[2]]) >= 6
