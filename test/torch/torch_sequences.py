"""Transformers and recurrent networks, written out as in libraries of models: more of `torch_modules.MODULES`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch_modules import bits, floats, ints, module, plain

BATCH, LENGTH = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2, max=32)
PLACES = torch.export.Dim("length", min=2, max=16)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x: Any) -> Any:
        dtype = x.dtype
        x = x.to(torch.float32)
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)).to(dtype)


def rotate_half(x: Any) -> Any:
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class LlamaAttention(nn.Module):
    """Grouped queries, rotary positions."""

    def __init__(self, dim: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, dim // heads
        self.q_proj, self.o_proj = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, groups * self.size, bias=False)
        self.v_proj = nn.Linear(dim, groups * self.size, bias=False)
        rates = 1.0 / (10000.0 ** (torch.arange(0, self.size, 2).float() / self.size))
        self.register_buffer("inv_freq", rates, persistent=False)

    def forward(self, x: Any, positions: Any) -> Any:
        b, t, _ = x.shape
        q = self.q_proj(x).view(b, t, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.groups, self.size).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.groups, self.size).transpose(1, 2)
        angles = (self.inv_freq[None, :, None].expand(b, -1, 1) @ positions[:, None, :].float()).transpose(1, 2)
        emb = torch.cat((angles, angles), dim=-1)
        cos, sin = emb.cos()[:, None], emb.sin()[:, None]
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        repeat = self.heads // self.groups
        k, v = (
            part[:, :, None].expand(b, self.groups, repeat, t, self.size).reshape(b, self.heads, t, self.size)
            for part in (k, v)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(self.size)
        causal = torch.triu(torch.full((t, t), torch.finfo(x.dtype).min), diagonal=1)
        weights = F.softmax(scores + causal, dim=-1, dtype=torch.float32).to(q.dtype)
        return self.o_proj((weights @ v).transpose(1, 2).contiguous().view(b, t, -1))


@module(
    ints(50, 2, 6),
    dynamic={"ids": {0: BATCH, 1: LENGTH}},
    others=[(ints(50, 1, 9),), (ints(50, 3, 2),)],
)
class LlamaForCausalLM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(50, 16)
        self.input_layernorm, self.post_attention_layernorm, self.norm = RMSNorm(16), RMSNorm(16), RMSNorm(16)
        self.self_attn = LlamaAttention(16, 4, 2)
        self.gate_proj, self.up_proj, self.down_proj = (
            nn.Linear(16, 24, bias=False),
            nn.Linear(16, 24, bias=False),
            nn.Linear(24, 16, bias=False),
        )
        self.lm_head = nn.Linear(16, 50, bias=False)
        self.lm_head.weight = self.embed_tokens.weight

    def forward(self, ids: Any) -> Any:
        x = self.embed_tokens(ids)
        positions = torch.arange(ids.shape[1])[None].expand(ids.shape[0], -1)
        x = x + self.self_attn(self.input_layernorm(x), positions)
        y = self.post_attention_layernorm(x)
        x = x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))
        return self.lm_head(self.norm(x))[:, -1, :]


@module(floats(2, 7, 12), dynamic={"x": {0: BATCH, 1: LENGTH}}, others=[(floats(3, 4, 12),)])
class AlibiAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)
        self.register_buffer("slopes", torch.tensor([2.0 ** (-8 * (n + 1) / 3) for n in range(3)]))

    def forward(self, x: Any) -> Any:
        b, t, c = x.shape
        q, k, v = (part.view(b, t, 3, 4).transpose(1, 2) for part in self.qkv(x).split(12, dim=-1))
        distance = torch.arange(t)[None, :] - torch.arange(t)[:, None]
        bias = self.slopes.view(3, 1, 1) * distance
        bias = bias.masked_fill(distance > 0, float("-inf"))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(b, -1, -1, -1))
        return self.out(y.transpose(1, 2).reshape(b, t, c))


@module(ints(40, 2, 8), floats(2, 5, 16))
class T5Block(nn.Module):
    """Relative positions in buckets; a norm without means; attention to the encoder; a gated perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.relative_attention_bias = nn.Embedding(40, 16), nn.Embedding(32, 4)
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16, bias=False) for _ in range(4))
        self.cq, self.ckv, self.wi_0, self.wi_1 = (nn.Linear(16, n, bias=False) for n in (16, 32, 20, 20))
        self.wo, self.norm = nn.Linear(20, 16, bias=False), nn.RMSNorm(16, eps=1e-6)

    def bucket(self, position: Any) -> Any:
        buckets = (position > 0).to(torch.long) * 16
        position = torch.abs(position)
        large = 8 + (torch.log(position.float() / 8) / math.log(128 / 8) * 8).to(torch.long)
        large = torch.min(large, torch.full_like(large, 15))
        return buckets + torch.where(position < 8, position, large)

    def heads(self, x: Any) -> Any:
        return x.view(x.shape[0], -1, 4, 4).transpose(1, 2)

    def forward(self, ids: Any, encoded: Any) -> Any:
        x = self.shared(ids)
        y = self.norm(x)
        t = ids.size(1)
        memory = torch.arange(t, dtype=torch.long)[None, :] - torch.arange(t, dtype=torch.long)[:, None]
        bias = self.relative_attention_bias(self.bucket(memory)).permute([2, 0, 1]).unsqueeze(0)
        scores = torch.matmul(self.heads(self.q(y)), self.heads(self.k(y)).transpose(3, 2))
        scores += bias
        attn = F.softmax(scores.float(), dim=-1).type_as(scores)
        x = x + self.o(torch.matmul(attn, self.heads(self.v(y))).transpose(1, 2).contiguous().view(2, -1, 16))
        k, v = self.ckv(encoded).chunk(2, -1)
        x = x + F.scaled_dot_product_attention(
            self.heads(self.cq(x)), self.heads(k), self.heads(v), scale=1.0
        ).transpose(1, 2).reshape(2, t, 16)
        return x + self.wo(F.gelu(self.wi_0(x), approximate="tanh") * self.wi_1(x))


@module(floats(2, 3, 16, 16), dynamic={"x": {0: BATCH}}, others=[(floats(1, 3, 16, 16),), (floats(4, 3, 16, 16),)])
class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv_proj = nn.Conv2d(3, 12, kernel_size=4, stride=4)
        self.class_token = nn.Parameter(torch.randn(1, 1, 12))
        self.pos_embedding = nn.Parameter(torch.empty(1, 17, 12).normal_(std=0.02))
        self.ln_1, self.ln = nn.LayerNorm(12, eps=1e-6), nn.LayerNorm(12, eps=1e-6)
        self.attention, self.head = nn.MultiheadAttention(12, 3, dropout=0.1, batch_first=True), nn.Linear(12, 5)

    def forward(self, x: Any) -> Any:
        n = x.shape[0]
        x = self.conv_proj(x).reshape(n, 12, -1).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(n, -1, -1), x], dim=1) + self.pos_embedding
        y = self.ln_1(x)
        y, _ = self.attention(y, y, y, need_weights=False)
        return self.head(self.ln(x + y)[:, 0])


@module(floats(2, 6, 8), bits(2, 6))
class EncoderWithPadding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)

    def forward(self, x: Any, padding: Any) -> Any:
        padding = torch.cat([torch.zeros(2, 1, dtype=torch.bool), padding[:, 1:]], 1)
        mask = nn.Transformer.generate_square_subsequent_mask(6)
        return self.encoder(x, mask=mask, src_key_padding_mask=padding.float().masked_fill(padding, float("-inf")))


@module(floats(5, 2, 8), floats(7, 2, 8))
class DecoderWithMasks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 4, 12, dropout=0.0), 2)

    def forward(self, target: Any, memory: Any) -> Any:
        mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), diagonal=1)
        padding = torch.arange(7)[None].expand(2, -1) > 4
        return self.decoder(target, memory, tgt_mask=mask, memory_key_padding_mask=padding)


@module(floats(4, 2, 6), floats(5, 2, 3), floats(5, 2, 4))
class CrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.MultiheadAttention(6, 2, kdim=3, vdim=4, add_bias_kv=True, add_zero_attn=True)

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return self.a(q, k, v, average_attn_weights=False)


plain(
    lambda q, k, v, m: (
        F.scaled_dot_product_attention(q, k, v, is_causal=True),
        F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        F.scaled_dot_product_attention(q[:, :, :3], k, v, scale=0.3),
        F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True),
        F.scaled_dot_product_attention(q.half(), k.half(), v.half()),
    ),
    floats(2, 2, 5, 4),
    floats(2, 2, 5, 4),
    floats(2, 2, 5, 4),
    lambda: torch.ones(5, 5).tril().bool(),
    name="ScaledDotProduct",
)


@module(
    floats(2, 4, 6, 4),
    floats(2, 2, 6, 4),
    floats(2, 2, 6, 4),
    dynamic=[{0: BATCH, 2: PLACES}] * 3,
    others=[(floats(1, 4, 9, 4), floats(1, 2, 9, 4), floats(1, 2, 9, 4))],
)
class FlexAttention(nn.Module):
    """Scores and masks by functions, of places and of parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.rand(4))
        self.register_buffer("document", torch.arange(16) // 4)

    def score(self, score: Any, batch: Any, head: Any, q: Any, k: Any) -> Any:
        return torch.where(self.document[q] == self.document[k], 3 * torch.tanh(score / 3), -math.inf)

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        def biased(score: Any, batch: Any, head: Any, row: Any, column: Any) -> Any:
            return score + self.slope[head] * (column - row)

        return flex_attention(q, k, v, biased, enable_gqa=True), flex_attention(
            q, k, v, self.score, scale=0.3, enable_gqa=True, return_lse=True
        )


class Output(NamedTuple):
    logits: Any
    hidden: tuple[Any, ...]
    loss: Any = None


@module(
    ints(30, 2, 6), kwargs={"attention_mask": lambda: torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6]), "labels": None}
)
class OptionalArguments(nn.Module):
    """As transformers' models: optional arguments, a named result."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layer, self.head = nn.Embedding(30, 8), nn.Linear(8, 8), nn.Linear(8, 30)

    def forward(self, ids: Any, attention_mask: Any = None, labels: Any = None, *, cache: bool = False) -> Any:
        x = self.embed(ids)
        hidden = (x,)
        if attention_mask is not None:
            x = x * attention_mask[..., None].to(x.dtype)
        x = torch.tanh(self.layer(x))
        logits = self.head(x)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Output(logits, (*hidden, x), loss)


@dataclass
class Prediction:
    mean: Any
    extra: dict[str, Any]


torch.export.register_dataclass(Prediction, serialized_type_name="devscope.test.Prediction")


@module(floats(3, 4))
class DataclassResult(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return Prediction(self.fc(x), {"norm": x.norm(dim=1), "first": [x[0], (x[1],)]})


# Recurrent networks.


@module(floats(3, 6, 5), lambda: torch.tensor([6, 4, 1]))
class LSTMTagger(nn.Module):
    """The last step of each sequence by its length."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(5, 6, num_layers=2, batch_first=True, bidirectional=True, dropout=0.3, proj_size=4)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any, lengths: Any) -> Any:
        y, (h, c) = self.rnn(x)
        index = (lengths - 1).view(-1, 1, 1).expand(-1, 1, y.size(2))
        return self.out(y.gather(1, index).squeeze(1)), h, c.mean(0)


module(floats(2, 6, 5), dynamic={"input": {0: BATCH}}, others=[(floats(4, 6, 5),)], name="LSTMAnyBatch")(
    lambda: nn.LSTM(5, 7, batch_first=True)
)
module(floats(6, 2, 5), floats(4, 2, 3), name="DeepBidirectionalGRU")(
    lambda: nn.GRU(5, 3, num_layers=2, bidirectional=True, bias=False)
)
module(floats(6, 5), name="UnbatchedRNN")(lambda: nn.RNN(5, 4, num_layers=2))


@module(ints(20, 2, 5), floats(1, 2, 8))
class AttentionSeq2Seq(nn.Module):
    """Bahdanau's attention; a decoder that feeds itself."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=True)
        self.wa, self.ua, self.va = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.decoder, self.out = nn.GRU(16, 8, batch_first=True), nn.Linear(8, 20)

    def forward(self, ids: Any, hidden: Any) -> Any:
        memory, _ = self.encoder(self.embedding(ids), hidden)
        token = torch.zeros(ids.size(0), 1, dtype=torch.long)
        found = []
        for _ in range(4):
            query = hidden.permute(1, 0, 2)
            scores = self.va(torch.tanh(self.wa(query) + self.ua(memory))).squeeze(2).unsqueeze(1)
            context = torch.bmm(F.softmax(scores, dim=-1), memory)
            output, hidden = self.decoder(torch.cat((self.embedding(token), context), dim=2), hidden)
            logits = self.out(output)
            token = logits.topk(1)[1].squeeze(-1).detach()
            found.append(logits)
        return F.log_softmax(torch.cat(found, dim=1), dim=-1), token


@module(floats(1, 4, 2, 8, 8))
class ConvLSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv2d(2 + 3, 12, 3, padding=1)

    def forward(self, x: Any) -> Any:
        h = c = x.new_zeros(1, 3, 8, 8)
        for t in range(x.size(1)):
            i, f, o, g = torch.split(self.gates(torch.cat([x[:, t], h], dim=1)), 3, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


@module(floats(1, 2, 64))
class WaveNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dilated = nn.ModuleList(nn.Conv1d(2, 4, 2, dilation=2**n) for n in range(4))
        self.residual = nn.ModuleList(nn.Conv1d(2, 2, 1) for _ in range(4))

    def forward(self, x: Any) -> Any:
        skips = 0
        for dilated, residual in zip(self.dilated, self.residual, strict=True):
            a, b = dilated(x).chunk(2, dim=1)
            y = torch.tanh(a) * torch.sigmoid(b)
            s = residual(y)
            skips = s if isinstance(skips, int) else skips[..., -s.size(-1) :] + s
            x = x[..., -s.size(-1) :] + s
        return F.glu(torch.cat([F.relu(skips), x], 1), dim=1)


@module(floats(2, 8, 6))
class LinearAttentionAndRetention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, 6, bias=False) for _ in range(3))

    def forward(self, x: Any) -> Any:
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        kv = torch.cumsum(torch.einsum("btd,bte->btde", k, v), dim=1)
        linear = torch.einsum("btd,btde->bte", q, kv) / (q * k.cumsum(1)).sum(-1, keepdim=True)
        step = torch.arange(8)
        decay = torch.where(step[:, None] >= step, 0.9 ** (step[:, None] - step).float(), 0.0)
        return linear, (torch.einsum("bid,bjd->bij", q, k) * decay) @ v


@module(floats(2, 6, 8))
class SwitchExperts(nn.Module):
    """Tokens to the best of three perceptrons, whose weights are one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 3)
        self.w1, self.w2 = nn.Parameter(torch.randn(3, 8, 12) * 0.3), nn.Parameter(torch.randn(3, 12, 8) * 0.3)

    def forward(self, x: Any) -> Any:
        flat = x.view(-1, 8)
        weight, chosen = self.router(flat).softmax(-1).max(-1)
        one_hot = F.one_hot(chosen, num_classes=3)
        position = (one_hot.cumsum(0) * one_hot).max(-1).values - 1
        dispatch = F.one_hot(position.clamp(max=11), 12)[:, None, :] * one_hot[:, :, None]
        inside = torch.einsum("tec,td->ecd", dispatch.float(), flat)
        y = torch.einsum("ech,ehd->ecd", F.gelu(torch.einsum("ecd,edh->ech", inside, self.w1)), self.w2)
        out = torch.einsum("tec,ecd->td", dispatch.float(), y) * weight[:, None]
        return out.view_as(x), one_hot.float().mean(0) * self.router(flat).mean(0)


@module(ints(30, 2, 9))
class CharacterCNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 6, padding_idx=0, max_norm=None)
        self.convs = nn.ModuleList(nn.Conv1d(6, 4, k) for k in (2, 3, 4))
        self.highway = nn.Linear(12, 24)

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids).transpose(1, 2)
        y = torch.cat(
            [
                F.max_pool1d(torch.relu(conv(x)), x.size(2) - k + 1).squeeze(2)
                for k, conv in zip((2, 3, 4), self.convs, strict=True)
            ],
            1,
        )
        h, t = self.highway(y).chunk(2, 1)
        t = torch.sigmoid(t)
        return t * F.relu(h) + (1 - t) * y


@module(floats(2, 9, 16))
class SparseExperts(nn.Module):
    """Each expert computes the tokens that were sent to it, however many they are."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16)) for _ in range(4)
        )

    def forward(self, x: Any) -> Any:
        tokens = x.view(-1, x.shape[-1])
        logits = self.gate(tokens)
        weights, chosen = torch.topk(F.softmax(logits, dim=1, dtype=torch.float), 2, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        found = torch.zeros_like(tokens)
        sent = F.one_hot(chosen, num_classes=4).permute(2, 1, 0)
        for number, expert in enumerate(self.experts):
            rank, place = torch.where(sent[number])
            current = expert(tokens[None, place].reshape(-1, tokens.shape[-1])) * weights[place, rank, None]
            found.index_add_(0, place, current.to(tokens.dtype))
        return found.view(x.shape), logits


@module(floats(2, 3, 64, 64))
class DetectionTransformer(nn.Module):
    """DETR: the same queries for all images of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 7, 4, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1))
        self.transformer = nn.Transformer(32, 4, 1, 1, 64, batch_first=True)
        self.queries = nn.Parameter(torch.randn(10, 32))
        self.rows, self.columns = nn.Parameter(torch.rand(50, 16)), nn.Parameter(torch.rand(50, 16))
        self.classes, self.boxes = nn.Linear(32, 5), nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        h = self.backbone(x)
        height, width = h.shape[-2:]
        columns = self.columns[:width].unsqueeze(0).repeat(height, 1, 1)
        rows = self.rows[:height].unsqueeze(1).repeat(1, width, 1)
        places = torch.cat([columns, rows], dim=-1).flatten(0, 1).unsqueeze(0)
        queries = self.queries.unsqueeze(0).repeat(x.shape[0], 1, 1)
        y = self.transformer(places + 0.1 * h.flatten(2).permute(0, 2, 1), queries)
        return {"pred_logits": self.classes(y), "pred_boxes": self.boxes(y).sigmoid()}


def _padded(batch: int, length: int) -> Any:
    def make() -> Any:
        lengths = torch.randint(length // 2, length + 1, (batch, 1))
        return (torch.arange(length) < lengths).long()

    return make


@module(
    ints(60, 2, 12),
    _padded(2, 12),
    dynamic={"ids": {0: BATCH, 1: LENGTH}, "mask": {0: BATCH, 1: LENGTH}},
    others=[(ints(60, 3, 7), _padded(3, 7)), (ints(60, 1, 20), _padded(1, 20))],
)
class SentenceEncoder(nn.Module):
    """Sentences of any number and length."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(60, 16, padding_idx=0), nn.Embedding(128, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids: Any, mask: Any) -> Any:
        x = self.words(ids) + self.places(torch.arange(ids.size(1)).unsqueeze(0))
        h = self.encoder(x, src_key_padding_mask=mask == 0)
        m = mask.unsqueeze(-1).float()
        return F.normalize((h * m).sum(1) / m.sum(1).clamp(min=1e-9), dim=-1)


@module(floats(3, 7), floats(3, 2))
class ActorOfDistributions(nn.Module):
    """A policy with a squashed normal distribution, and values as a categorical one."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 4))
        self.value = nn.Linear(7, 51)

    def forward(self, state: Any, noise: Any) -> Any:
        mean, log_std = self.policy(state).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp())
        u = normal.mean + normal.stddev * noise
        squashed = 2 * (math.log(2) - u - F.softplus(-2 * u))
        values = torch.distributions.Categorical(logits=self.value(state))
        expected = (values.probs * torch.linspace(-10, 10, 51)).sum(-1)
        return torch.tanh(u), (normal.log_prob(u) - squashed).sum(-1), values.entropy(), expected
