"""`attention_decode`: attention of few tokens a sequence on paged keys and values; built and verified on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import log, sqrt
from typing import Literal, Protocol, Self, overload

from argus.kernels.decode import FAMILIES, HEADS, PAGES, ROWS, WIDTHS
from argus.kernels.schedules.attention import LEAST_SCALE
from argus.language import ProgramTemplate
from argus.ops.call_path import Candidate, Plan, Traced, is_placed, launch, refuser, torch
from argus.ops.constants import factor
from argus.ops.operands import Tensor
from argus.ops.targets import kernels_for
from argus.ops.traced import traceable
from argus.runtime.launch_gate import Unproved

_CHUNK = 8
"""Elements between which keys begin."""
_AXES = {"q": 4, "k_pages": 4, "v_pages": 4, "page_table": 2, "lengths": 1}


class Pages(Tensor, Protocol):
    """The part of torch.Tensor that is used here."""

    def view(self, *shape: int) -> Self: ...
    def transpose(self, first: int, second: int, /) -> Self: ...
    def is_contiguous(self) -> bool: ...


@overload
def attention_decode(
    q: Pages,
    k_pages: Pages,
    v_pages: Pages,
    page_table: Pages,
    lengths: Pages,
    *,
    scale: float | None = None,
    return_lse: Literal[False] = False,
    unproved: Unproved = "refuse",
) -> Pages: ...
@overload
def attention_decode(
    q: Pages,
    k_pages: Pages,
    v_pages: Pages,
    page_table: Pages,
    lengths: Pages,
    *,
    scale: float | None = None,
    return_lse: Literal[True],
    unproved: Unproved = "refuse",
) -> tuple[Pages, Pages]: ...
@traceable
def attention_decode(
    q: Pages,
    k_pages: Pages,
    v_pages: Pages,
    page_table: Pages,
    lengths: Pages,
    *,
    scale: float | None = None,
    return_lse: bool = False,
    unproved: Unproved = "refuse",
) -> Pages | tuple[Pages, Pages]:
    """softmax(scale * q @ k^T) @ v for each head of the last tokens of each sequence; sums in fp32.

    q: (B, H, S, D), row-major: the last S tokens, of which token i of a sequence sees all keys but the last S - 1 - i.
    k_pages, v_pages: (P, C, G, D) with pages of C = 16, 64 or 128 keys and heads of D = 64 or 128 elements, the last
    axis contiguous and other strides multiples of 8, where G divides H: head h of q reads head h // (H // G). H / G is
    at most 16, and H / G, rounded up to 8 or 16, times S at most 128. All in bf16, or all in f16. page_table: (B, N)
    and lengths: (B,), both int32 and row-major: key t of sequence b is in slot t % C of page page_table[b, t // C], for
    t below lengths[b]. The result is row-major, as q. For an H100 or H200.

    Lengths below 0 or beyond N * C, and pages below 0 or beyond P - 1, are taken to be the nearest ones that exist, so
    that nothing out of bounds is read. What a page holds after the last key has to be finite: it is multiplied by 0.
    scale: by default 1 / sqrt(D); above 0. return_lse: also return the log-sum-exp of each row's scores, (B, H, S) in
    fp32. Of a token that sees no key the result is 0 and the log-sum-exp -inf. unproved: "allow" also runs a kernel
    that is neither proved nor refuted. There is no gradient.

    It runs on the current stream and never waits for the GPU; it may be captured in a CUDA graph, after a first call
    with the same scale, and a graph reads tables and lengths when it runs.

    Raises:
        ArgusError: E401 for operands that are not such tensors, E405 for sizes beyond those that the kernel's proof
            assumes, E406 to E409 for errors on the GPU, E413 for a kernel without a proof, E414 for another
            GPU, E303 without a compiler.
    """
    operands = {"q": q, "k_pages": k_pages, "v_pages": v_pages, "page_table": page_table, "lengths": lengths}
    _check(operands)
    wanted = 1 / sqrt(q.shape[3]) if scale is None else scale
    if not LEAST_SCALE < wanted < 1 / LEAST_SCALE:
        _refuse(f"`scale` is {wanted:g}, expected between 2^-100 and 2^100", "negate `q` for a scale below 0")
    out, lse = _launched(operands, factor("attention_decode", wanted / log(2.0), q.device.index), unproved)
    return (out, lse) if return_lse else out


def _launched(of: Mapping[str, Pages], factor: Pages, unproved: Unproved) -> tuple[Pages, Pages]:
    q, k, v, table, lengths = of.values()
    (batch, heads, tokens, width), (pool, size, groups, _), pages = q.shape, k.shape, table.shape[1]
    inner = (batch, groups, heads // groups, tokens)
    config = kernels_for("attention_decode", q).choose(size, pages * size, batch * groups, inner[2], tokens)
    results = (((*inner, width), q.dtype), (inner, torch().float32))
    extents = {"B": batch, "G": groups, "R": inner[2], "S": tokens, "P": pool, "C": size, "N": pages}
    template = FAMILIES[str(q.dtype)][width]
    candidate = Candidate(f"{template.name}_{width}_{q.dtype}", config, partial(_traced, template, config))
    plan = Plan(results, tuple(extents.items()), (candidate,), _named, ("K", "V"))
    given = (q.view(*inner, width), k.transpose(1, 2), v.transpose(1, 2), table, lengths, factor)
    (out, lse), _ = launch(plan, given, unproved)
    return out.view(*q.shape), lse.view(*q.shape[:3])


def _traced(template: ProgramTemplate, config: str) -> Traced:
    return template.trace(config), template.function.__module__


def _named(*tensors: Pages) -> Mapping[str, Pages]:
    return dict(zip(("Q", "K", "V", "table", "lengths", "scale", "O", "LSE"), tensors, strict=True))


# -- operands ------------------------------------------------------------------------------------------------


def _check(of: Mapping[str, Pages]) -> None:
    q = of["q"]
    for name, tensor in of.items():
        _check_one(name, tensor, q)
    k, v, table, lengths = (of[name] for name in ("k_pages", "v_pages", "page_table", "lengths"))
    (batch, heads, tokens, width), (_, size, groups, others) = q.shape, k.shape
    if width not in WIDTHS or tokens < 1:
        widths = " or ".join(map(str, WIDTHS))
        _refuse(f"`q` is {tuple(q.shape)}, expected (B, H, S, {widths})", "pass at least one token, with such heads")
    if tuple(v.shape) != tuple(k.shape) or others != width or size not in PAGES or 0 in k.shape:
        sizes = " or ".join(map(str, PAGES))
        _refuse(
            f"`k_pages` is {tuple(k.shape)} and `v_pages` {tuple(v.shape)}",
            f"pass (pages, {sizes}, G, {width}), with pages of keys as those of values",
        )
    if heads % groups or not 0 < heads // groups <= HEADS[-1]:
        _refuse(f"{heads} heads of `q` for {groups} of `k_pages`", f"pass at most {HEADS[-1]} for each, as many each")
    most = ROWS // next(each for each in HEADS if each >= heads // groups)
    if tokens > most:
        _refuse(f"{tokens} tokens of `q`", f"pass at most {most} of so many heads, or use `argus.attention`")
    if table.shape[0] != batch or table.shape[1] < 1 or tuple(lengths.shape) != (batch,) or batch < 1:
        _refuse(
            f"`page_table` is {tuple(table.shape)} and `lengths` {tuple(lengths.shape)} for {batch} sequences",
            "pass a row of pages and a length for each",
        )


def _check_one(name: str, tensor: Pages, beside: Pages) -> None:
    if not hasattr(tensor, "data_ptr"):
        _refuse(f"`{name}` is not a torch tensor, found {type(tensor).__name__}", "pass `torch.Tensor`s")
    whole = name in ("page_table", "lengths")
    types = tuple(FAMILIES) if name == "q" else (str(beside.dtype),)
    expected = ("torch.int32",) if whole else types
    if str(tensor.dtype) not in expected:
        _refuse(f"`{name}` expects {' or '.join(expected)}, found {tensor.dtype}", "convert it: `.to(...)`")
    if not is_placed(tensor) or tensor.device != beside.device:
        _refuse(f"`{name}` is on {tensor.device}, `q` on {beside.device}", "move all to one GPU: `.cuda()`")
    if tensor.requires_grad and torch().is_grad_enabled():
        _refuse(f"`{name}` requires a gradient, which this kernel lacks", "use `torch.no_grad()` or `.detach()`")
    if len(tensor.shape) != _AXES[name]:
        _refuse(
            f"`{name}` expects {_AXES[name]} axes, found {len(tensor.shape)}", "see the shapes of `attention_decode`"
        )
    right = tensor.is_contiguous() if whole or name == "q" else _is_regular(tensor.stride())
    if not right or tensor.data_ptr() % 16:
        _refuse(f"`{name}` has strides {tensor.stride()}, or an address that 16 does not divide", "`.contiguous()`")


def _is_regular(strides: Sequence[int]) -> bool:
    return strides[-1] == 1 and all(each % _CHUNK == 0 for each in strides[:-1])


_refuse = refuser("attention_decode")
