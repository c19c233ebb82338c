"""``flex_attention`` written out: products, and between them what its functions make of all scores at once."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import _vmap_for_bhqkv  # pyright: ignore[reportPrivateUsage]

from devscope.frontends.torch.branches import copied_in_front, drop_unused
from devscope.frontends.torch.decompositions import table

aten: Any = torch.ops.aten
_Tensor = torch.Tensor


def write_out_attention(graph: Any) -> None:
    """Put its operations in the place of each ``flex_attention``."""
    found = graph.find_nodes(op="call_function", target=torch.ops.higher_order.flex_attention)
    for node in found:
        _write_out(graph, node)
    if found:
        drop_unused(graph)


def _write_out(graph: Any, node: Any) -> None:
    root = graph.owning_module
    query, key, value, scores, (*_, mask), scale, _, *captured = node.args
    scores_buffers, mask_buffers = captured or ((), ())
    change, see = (_mappable(getattr(root, one.target)) for one in (scores, mask))
    count = len(scores_buffers)

    def attention(query: _Tensor, key: _Tensor, value: _Tensor, *buffers: _Tensor) -> Any:
        changed = _vmap_for_bhqkv(change, prefix=(0,), suffix=(None,) * count)
        seen = _vmap_for_bhqkv(see, prefix=(), suffix=(None,) * (len(buffers) - count))
        wide = torch.promote_types(query.dtype, torch.float32)
        key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], 1) for one in (key, value))
        found = query.to(wide) @ key.to(wide).transpose(-2, -1) * scale
        places = [torch.arange(size) for size in found.shape]
        with TransformGetItemToIndex():
            found = changed(found, *places, *buffers[:count])
            found = torch.where(seen(*places, *buffers[count:]), found, -math.inf)
        weights = aten._safe_softmax(found, -1).to(query.dtype)
        return weights @ value, found.logsumexp(-1) / math.log(2), found.amax(-1) / math.log(2)

    operands = [query, key, value, *scores_buffers, *mask_buffers]
    values = [one.meta["val"] for one in operands]
    with values[0].fake_mode:
        side = make_fx(attention, table())(*values)
    for one in side.graph.nodes:
        one.meta.update(
            {name: node.meta[name] for name in ("nn_module_stack", "stack_trace") if name in node.meta}
        )
    results = copied_in_front(graph, node, side, scores.target, operands)
    for use in list(node.users):
        use.replace_all_uses_with(results[use.args[1]])
        graph.erase_node(use)
    graph.erase_node(node)


def _mappable(function: Any) -> Any:
    """``function`` without the conversions of numbers that cannot be mapped over dimensions."""
    for node in function.graph.find_nodes(op="call_function", target=torch.ops.prims.convert_element_type.default):
        node.target = torch.ops.aten.to.dtype
    function.recompile()
    return function
