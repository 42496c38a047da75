"""Calls of FlashAttention-3's kernels on torch tensors, of the library that flash_attention_3.py builds."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import field, frozen

from .flash_attention_3 import LIBRARY  # noqa: TID252 reason: scripts and tests name the package differently

DIMS = (64, 128)
"""Head dimensions of bf16."""
E4M3_DIMS = (64, 128, 256)
PACKED_HEADS = (128,)
"""Head dimensions of packed sequences of which tiles can hold several heads of q."""
ALIGNED = 16
"""Bytes of which TMA wants each address and stride to be a multiple."""
_SPARE = 128
"""Rows more than a sequence has that sums of gradients may take, as these are rounded up to whole tiles."""


class Strided(ctypes.Structure):
    """fa3_tensor."""

    _fields_ = [("data", ctypes.c_void_p), *((name, ctypes.c_int64) for name in ("batch", "row", "head"))]


class Attention(ctypes.Structure):
    """fa3_attention."""

    _fields_ = [
        *((name, Strided) for name in ("q", "k", "v", "o")),
        *(
            (name, ctypes.c_void_p)
            for name in ("lse", "workspace", "starts_q", "starts_k", "factor_q", "factor_k", "factor_v")
        ),
        *(
            (name, ctypes.c_int)
            for name in ("batch", "heads", "heads_kv", "seqlen_q", "seqlen_k", "total_q", "total_k", "dim")
        ),
        ("scale", ctypes.c_float),
        *((name, ctypes.c_int) for name in ("causal", "e4m3", "pack_heads", "sm_count")),
    ]


class Gradients(ctypes.Structure):
    """fa3_gradients."""

    _fields_ = [
        ("forward", Attention),
        *((name, Strided) for name in ("d_o", "d_q", "d_k", "d_v")),
        *((name, ctypes.c_void_p) for name in ("row_sums", "lse_log2", "sum_dq", "sum_dk", "sum_dv", "turns")),
        ("deterministic", ctypes.c_int),
    ]


def load_if_built(library: Path = LIBRARY) -> ctypes.CDLL | None:
    """The library, with the types of its functions; None if it is not built.

    Raises:
        OSError: it cannot be loaded here.
    """
    if not library.is_file():
        return None
    loaded = ctypes.CDLL(str(library))
    for name, taken in (("fa3_forward", Attention), ("fa3_backward", Gradients)):
        function = getattr(loaded, name)
        function.argtypes = [ctypes.POINTER(taken), ctypes.c_void_p]
        function.restype = ctypes.c_int
    return loaded


@frozen(eq=False)
class Call:
    """A call with all but the stream fixed; its tensors live as long as it does.

    Calls of one object share its outputs and workspaces: they must follow each other on a stream.
    """

    outputs: tuple[Any, ...]
    _torch: Any
    _entry: Callable[..., int]
    _given: ctypes.Structure
    _held: tuple[Any, ...] = field(repr=False)

    def __call__(self) -> tuple[Any, ...]:
        """Launch on torch's current stream; returns `outputs`."""
        error = self._entry(ctypes.byref(self._given), self._torch.cuda.current_stream().cuda_stream)
        if error:
            raise RuntimeError(f"FlashAttention-3 failed: CUDA error {error}")
        return self.outputs


def forward(library: ctypes.CDLL, q: Any, k: Any, v: Any, causal: bool, factors: tuple[Any, ...] = ()) -> Call:  # noqa: ANN401 reason: tensors
    """Attention of q of shape (B, H, S, D), k and v of shape (B, G, T, D), G a divisor of H: O, and LSE to base e.

    Scores are scaled by D^-½. Causal aligns the last query with the last key. Any layout with D innermost will do,
    if addresses and strides are multiples of 16 bytes. factors: of q, k and v if these are e4m3, each of shape (B, G).

    Raises:
        ValueError: the kernel, or this build of it, does not support these tensors.
    """
    torch = import_module("torch")
    _check(torch, q, k, v, torch.float8_e4m3fn if factors else torch.bfloat16, 4)
    batch, heads, rows, _ = q.shape
    o = torch.empty_like(q, dtype=torch.bfloat16)
    lse = torch.empty((batch, heads, rows), device=q.device, dtype=torch.float32)
    workspace = torch.zeros(1, device=q.device, dtype=torch.int32)
    factors = tuple(each.float().contiguous() for each in factors)
    if any(each.shape != (batch, k.shape[1]) for each in factors):
        raise ValueError(f"a factor is not of shape {(batch, k.shape[1])}")
    given = _given(torch, q, k, v, o, lse, causal)
    given.workspace = workspace.data_ptr()
    given.e4m3 = bool(factors)
    for name, each in zip(("factor_q", "factor_k", "factor_v"), factors, strict=bool(factors)):
        setattr(given, name, each.data_ptr())
    return Call((o, lse), torch, library.fa3_forward, given, (q, k, v, workspace, factors))


def packed(
    library: ctypes.CDLL,
    operands: tuple[Any, Any, Any],
    starts: tuple[Any, Any],
    longest: tuple[int, int],
    causal: bool,
    *,
    pack_heads: bool,
) -> Call:
    """Attention of sequences back to back: q of shape (H, rows, D), k and v of shape (G, keys, D), all of bf16.

    starts: where each sequence of queries and of keys starts, and the last ends, int32. longest: the numbers of queries
    and keys of the longest. pack_heads: tiles hold several heads of q, which FlashAttention does if G is not H.

    Raises:
        ValueError: as `forward`.
    """
    torch = import_module("torch")
    q, k, v = operands
    _check(torch, q, k, v, torch.bfloat16, 3)
    if pack_heads and q.shape[-1] not in PACKED_HEADS:
        raise ValueError(f"heads of {q.shape[-1]} elements are not packed")
    batch = starts[0].shape[0] - 1
    o = torch.empty_like(q)
    lse = torch.empty(q.shape[:2], device=q.device, dtype=torch.float32)
    workspace = torch.zeros(4 * (batch + 4) + 1, device=q.device, dtype=torch.int32)
    given = _given(torch, q, k, v, o, lse, causal)
    given.batch, (given.seqlen_q, given.seqlen_k) = batch, longest
    given.total_q, given.total_k = q.shape[1], k.shape[1]
    given.starts_q, given.starts_k = (each.data_ptr() for each in starts)
    given.workspace = workspace.data_ptr()
    given.pack_heads = pack_heads
    return Call((o, lse), torch, library.fa3_forward, given, (q, k, v, starts, workspace))


def backward(
    library: ctypes.CDLL,
    operands: tuple[Any, Any, Any],
    results: tuple[Any, Any],
    d_o: Any,  # noqa: ANN401 reason: a tensor
    causal: bool,
    *,
    deterministic: bool,
) -> Call:
    """The gradients of q, k and v by O's, `d_o`; shapes as `forward` takes them. results: O, and LSE to base e.

    deterministic: sums are made in one order.

    Raises:
        ValueError: as `forward`.
    """
    torch = import_module("torch")
    q, k, v = operands
    o, lse = results
    _check(torch, q, k, v, torch.bfloat16, 4)
    for name, each in (("o", o), ("d_o", d_o)):
        _check_layout(name, each)
    batch, heads, rows, dim = q.shape
    groups, keys = k.shape[1:3]
    made = tuple(torch.empty_like(each) for each in (q, k, v))

    def floats(*extents: int) -> Any:  # noqa: ANN401 reason: a tensor
        return torch.empty(extents, device=q.device, dtype=torch.float32)

    spaces = {name: floats(batch, heads, rows + _SPARE) for name in ("row_sums", "lse_log2")}
    spaces["sum_dq"] = floats(batch, heads, rows + _SPARE, dim)
    if heads != groups:
        spaces |= {name: floats(batch, groups, keys + _SPARE, dim) for name in ("sum_dk", "sum_dv")}
    count = batch * (heads * (rows // 64 + 1) + 2 * groups * (keys // 128 + 1))
    spaces["turns"] = torch.zeros(count, device=q.device, dtype=torch.int32)

    given = Gradients(forward=_given(torch, q, k, v, o, lse, causal), deterministic=deterministic)
    for name, each in zip(("d_o", "d_q", "d_k", "d_v"), (d_o, *made), strict=True):
        setattr(given, name, _strided(each))
    for name, each in spaces.items():
        setattr(given, name, each.data_ptr())
    return Call(made, torch, library.fa3_backward, given, (q, k, v, o, lse, d_o, spaces))


def _given(torch: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, causal: bool) -> Attention:  # noqa: ANN401 reason: tensors
    """The call of whole tensors; of packed ones without what tells where sequences start."""
    _check_layout("the output", o)
    batch = q.shape[0] if q.dim() == 4 else 1
    heads, rows, dim = q.shape[-3:]
    groups, keys = k.shape[-3:-1]
    return Attention(
        **{name: _strided(each) for name, each in (("q", q), ("k", k), ("v", v), ("o", o))},
        lse=lse.data_ptr(),
        batch=batch,
        heads=heads,
        heads_kv=groups,
        seqlen_q=rows,
        seqlen_k=keys,
        total_q=batch * rows,
        total_k=batch * keys,
        dim=dim,
        scale=dim**-0.5,
        causal=causal,
        sm_count=torch.cuda.get_device_properties(q.device).multi_processor_count,
    )


def _strided(tensor: Any) -> Strided:  # noqa: ANN401 reason: a tensor
    batch = tensor.stride(0) if tensor.dim() == 4 else 0
    return Strided(tensor.data_ptr(), batch, tensor.stride(-2), tensor.stride(-3))


def _check(torch: Any, q: Any, k: Any, v: Any, dtype: Any, axes: int) -> None:  # noqa: ANN401 reason: untyped
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dtype != dtype:
            raise ValueError(f"{name} is {tensor.dtype}, not {dtype}")
        if tensor.device.type != "cuda" or tensor.device.index != torch.cuda.current_device():
            raise ValueError(f"{name} is on {tensor.device}, not on the current CUDA device")
        if tensor.dim() != axes or not tensor.numel():
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; {axes} extents, none of them 0, are supported")
        _check_layout(name, tensor)
    if torch.cuda.get_device_capability(q.device) != (9, 0):
        raise ValueError("the device is not of compute capability 9.0")
    dims = DIMS if dtype == torch.bfloat16 else E4M3_DIMS
    if q.shape[-1] not in dims:
        raise ValueError(f"the head dimension is {q.shape[-1]}; {dims} are supported")
    if k.shape != v.shape:
        raise ValueError(f"k has shape {tuple(k.shape)} but v {tuple(v.shape)}")
    if k.shape[:-3] != q.shape[:-3] or k.shape[-1] != q.shape[-1]:
        raise ValueError(f"q has shape {tuple(q.shape)} but k {tuple(k.shape)}")
    if q.shape[-3] % k.shape[-3]:
        raise ValueError(f"{q.shape[-3]} heads of q are no multiple of the {k.shape[-3]} of k and v")


def _check_layout(name: str, tensor: Any) -> None:  # noqa: ANN401 reason: untyped
    if tensor.stride(-1) != 1:
        raise ValueError(f"the last stride of {name} is {tensor.stride(-1)}; only 1 is supported")
    steps = [tensor.stride(axis) * tensor.element_size() for axis in range(tensor.dim() - 1)]
    if any(step % ALIGNED for step in (tensor.data_ptr(), *steps)):
        raise ValueError(f"the address or a stride of {name} is no multiple of {ALIGNED} bytes")
