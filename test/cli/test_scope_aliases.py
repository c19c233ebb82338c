"""Aliases for scopes in printed IR."""

import pytest

from devscope.cli.printing import add_scope_aliases

GPU = '#device.scope<"opencl", 0 : i64, "", "">'


def test_text_without_scopes_is_unchanged() -> None:
    text = '"a"() {s = "#device"} : () -> ()\n'
    assert add_scope_aliases(text) is text


def test_each_distinct_scope_gets_one_definition() -> None:
    text = f"f {{a = {GPU}, b = {GPU}}}\n"
    assert add_scope_aliases(text) == f"#opencl0 = {GPU}\nf {{a = #opencl0, b = #opencl0}}\n"


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ('#device.scope<"cpu", 0 : i64, "", "">', "cpu0"),
        ('#device.scope<"cuda", -1 : i64, "", "">', "cuda"),
        ('#device.scope<"", -1 : i64, "", "">', "any"),
        ('#device.scope<"", 3 : i64, "", "global">', "any3_global"),
        (
            '#device.scope<"cuda", 1 : i64, #device.target<"cuda", {arch = "sm_90"}>, "shared">',
            "cuda1_shared",
        ),
        ('#device.scope<"my-npu.x", 0 : i64, "", "">', "my_npu_x0"),
        ('#device.scope<"9", 0 : i64, "", "">', "scope_90"),
        ("#device.scope<something, new>", "scope"),
    ],
)
def test_names(scope: str, name: str) -> None:
    assert add_scope_aliases(f"{{a = {scope}}}\n") == f"#{name} = {scope}\n{{a = #{name}}}\n"


def test_names_in_use_are_avoided() -> None:
    text = f"#opencl0 = affine_map<() -> ()>\nf {{a = {GPU}, b = #opencl0_1.x<1>}}\n"
    assert add_scope_aliases(text).startswith(f"#opencl0_2 = {GPU}\n#opencl0 = affine_map<() -> ()>\n")


def test_two_scopes_of_one_name() -> None:
    other = '#device.scope<"opencl", 0 : i64, #device.target<"opencl", {}>, "">'
    assert add_scope_aliases(f"{{a = {GPU}, b = {other}}}\n").endswith("{a = #opencl0, b = #opencl0_1}\n")


@pytest.mark.parametrize(
    "kept",
    [
        f'"text {GPU}"'.replace('"opencl"', "x").replace(', ""', ""),
        '"\\" #device.scope<\\"x\\">"',
        f"#foo.bar<{GPU}, (i32) -> i32>",
        f"#foo<{GPU}>",
        f"!foo.bar<[{GPU}], (i32) -> i32>",
        f"// {GPU}\n",
    ],
)
def test_opaque_text_is_left_alone(kept: str) -> None:
    result = add_scope_aliases(f"{{a = {kept} , b = {GPU}}}")
    assert result.endswith(f"{{a = {kept} , b = #opencl0}}")


def test_builtin_types_and_arrows_are_seen_through() -> None:
    text = f"(tensor<?xf32, {GPU}>) -> memref<4xf32, {GPU}>"
    assert add_scope_aliases(text).endswith("(tensor<?xf32, #opencl0>) -> memref<4xf32, #opencl0>")
