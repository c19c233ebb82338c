"""Modules that take derivatives as they run (`torch.func`, `torch.autograd.grad`): `torch.export` fails with them.

Of known sizes, operations on tensors, those of derivatives included, are traced first, and then are what is
exported. Of others it is PyTorch's export that traces below derivatives, which knows what sizes have to be; it
lacks derivatives of derivatives that are mapped.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch.export._trace as export_trace
from torch._functorch import eager_transforms
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils import _pytree as pytree

_functorch: Any = eager_transforms
export_below_autograd: Any = functools.partial(getattr(export_trace, "_export"), pre_dispatch=False)  # noqa: B009
"""``torch.export.export`` that traces what derivatives are computed by."""
_TAKING = (
    (_functorch, "grad_increment_nesting"),
    (_functorch, "jvp_increment_nesting"),
    (torch.autograd, "grad"),
)


@contextmanager
def derivatives() -> Generator[list[str]]:
    """The names of what takes derivatives while it is entered."""
    called: list[str] = []

    def listed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            called.append(name)
            return function(*arguments, **named)

        return call

    with ExitStack() as stack:
        for owner, name in _TAKING:
            stack.enter_context(mock.patch.object(owner, name, listed(name, getattr(owner, name))))
        yield called


@contextmanager
def _paths(module: Any) -> Generator[None]:
    """While it is entered, traced operations are of the part of ``module`` whose forward runs."""
    paths = {part: path for path, part in module.named_modules()}
    entered: list[tuple[str, str]] = []

    def put() -> None:
        fx_traceback.current_meta["nn_module_stack"] = dict(
            zip((path for path, _ in entered), entered, strict=True)
        )

    def enter(part: Any, _: Any) -> None:
        entered.append((paths.get(part, entered[-1][0] if entered else ""), type(part).__qualname__))
        put()

    def leave(*_: Any) -> None:
        entered.pop()
        put()

    with fx_traceback.preserve_node_meta(), ExitStack() as stack:
        stack.callback(register_module_forward_pre_hook(enter).remove)
        stack.callback(register_module_forward_hook(leave, always_call=True).remove)
        yield


def _copy(tensor: Any) -> Any:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def in_operations(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """``module`` with its state, but as a list of operations of tensors of the examples' sizes."""
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    leaves, structure = pytree.tree_flatten((given, named))
    numbers = [number for number, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    results: Any = None

    def run(state: dict[str, Any], tensors: list[Any]) -> list[Any]:
        nonlocal results
        filled = list(leaves)
        for number, tensor in zip(numbers, tensors, strict=True):
            filled[number] = tensor
        arguments, by_name = pytree.tree_unflatten(filled, structure)
        found, results = pytree.tree_flatten(torch.func.functional_call(module, state, arguments, by_name))
        return [one.detach() if isinstance(one, torch.Tensor) else one for one in found]

    with torch.enable_grad(), _paths(module):
        # With copies, since it computes; tensors without values fail where products of derivatives are mapped.
        copies = {name: _copy(tensor) for name, tensor in state.items()}
        graph: Any = make_fx(run)(copies, [_copy(leaves[number]) for number in numbers])

    constants = {node.target: getattr(graph, node.target) for node in graph.graph.nodes if node.op == "get_attr"}
    for name, value in constants.items():
        if getattr(value, "_is_zerotensor", bool)():  # a tangent without memory
            setattr(graph, name, torch.zeros(value.shape, dtype=value.dtype))

    @functools.wraps(module.forward)
    def forward(*arguments: Any, **by_name: Any) -> Any:
        given_leaves = pytree.tree_leaves((arguments, by_name))
        own = {**dict(again.named_parameters()), **dict(again.named_buffers())}
        with fx_traceback.preserve_node_meta():
            found = torch.fx.Interpreter(graph).run(own, [given_leaves[number] for number in numbers])
        return pytree.tree_unflatten(found, results)

    again = copy.copy(module)
    again.forward = forward
    return again


def with_gradients(module: Any) -> Any:
    """``module``, which computes with gradients where it is called without, as the export does."""

    @functools.wraps(module.forward)
    def forward(*arguments: Any, **named: Any) -> Any:
        with torch.enable_grad():
            found = module.forward(*arguments, **named)
        return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, found)

    again = copy.copy(module)
    again.forward = forward
    return again
