"""The operands of `matmul` as they lie in memory: which family of kernels reads them there, and what must be copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

from attrs import frozen

from argus.ops.call_path import refusal

KINDS = {"torch.bfloat16": "bf16", "torch.float16": "f16"}
_CHUNK, _BYTES = 16, 2
"""Bytes: what rows begin at multiples of, and of an element."""
_MATRIX, _BATCH = 2, 3
"""Axes."""


class Tensor(Protocol):
    """A tensor of torch, as far as it is used."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> object: ...
    @property
    def device(self) -> Any: ...  # noqa: ANN401 reason: torch's
    @property
    def is_cuda(self) -> bool: ...
    @property
    def requires_grad(self) -> bool: ...
    @property
    def mT(self) -> Self: ...  # noqa: N802 reason: torch's name
    def __getitem__(self, item: int, /) -> Self: ...
    def flatten(self, first: int, last: int, /) -> Self: ...
    def data_ptr(self) -> int: ...
    def stride(self) -> tuple[int, ...]: ...
    def is_contiguous(self) -> bool: ...
    def contiguous(self) -> Self: ...
    def clone(self) -> Self: ...
    def zero_(self) -> Self: ...
    def new_empty(self, shape: tuple[int, ...]) -> Self: ...


@frozen
class Operand:
    """How a kernel takes an operand, (M, K) of `a` or, of `b`, the transpose (N, K).

    first: whether its first matrix stands for all. copied: whether it is copied first. flat: whether the rows of all of
    its matrices are those of one. turned: whether K is down the rows in memory.
    """

    first: bool = False
    copied: bool = False
    flat: bool = False
    turned: bool = False

    def of(self, rows: Tensor) -> Tensor:
        """The tensor that the kernel takes, row-major but for strides of its own."""
        one = rows[0] if self.first else rows
        held = copied(one) if self.copied else one
        return held.flatten(0, 1) if self.flat else held.mT if self.turned else held


@frozen
class Way:
    """How kernels take operands that lie alike.

    family: of kernels, by name. shape: of the result. sizes: M, N and K as the kernel counts, ahead of them how many
    products if it counts these.
    """

    family: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    a: Operand
    b: Operand

    @property
    def copies(self) -> bool:
        return self.a.copied or self.b.copied

    def taken(self, a: Tensor, b: Tensor, out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A, B and C as the kernel takes them."""
        many = len(self.sizes) > _BATCH
        return self.a.of(a), self.b.of(b.mT), out if many or len(self.shape) < _BATCH else out.flatten(0, 1)

    def dense(self, a: Tensor, b: Tensor) -> Way:
        """For kernels that read element by element: what lies with strides of its own is copied."""
        loose = [not of.of(each).is_contiguous() for of, each in ((self.a, a), (self.b, b.mT))]
        return way(a, b, copy_a=loose[0], copy_b=loose[1]) if any(loose) else self


def way(a: Tensor, b: Tensor, *, copy_a: bool = False, copy_b: bool = False) -> Way:
    """How a @ b is taken, of operands that `check` has passed. copy_a, copy_b: what is copied however it lies."""
    leading = [each.shape[0] for each in (a, b) if len(each.shape) == _BATCH]
    shape = (*((max(leading) if 0 not in leading else 0,) if leading else ()), a.shape[-2], b.shape[-1])
    batched = _many(b) and not _alone(b, a)
    flat = not batched and _many(a)
    shared = batched and not (_many(a) and not _alone(a, b))
    left = _operand(a, first=_alone(a, b), copy=copy_a, flat=flat, may_turn=not (flat or shared))
    right = _operand(b.mT, first=_alone(b, a), copy=copy_b)
    name = f"{'bmm' if batched else 'gemm'}_{'t' if left.turned else 'n'}{'n' if right.turned else 't'}"
    name += "_shared" if shared else ""
    kind = KINDS[str(a.dtype)]
    sizes = (a.shape[-2] * (a.shape[0] if flat else 1), b.shape[-1], a.shape[-1])
    family = name if kind == "bf16" else f"{name}_{kind}"
    return Way(family, shape, (*(b.shape[:1] if batched else ()), *sizes), left, right)


def _many(tensor: Tensor) -> bool:
    return len(tensor.shape) == _BATCH and tensor.shape[0] != 1


def _alone(tensor: Tensor, other: Tensor) -> bool:
    """Whether the first of a batch stands for all: it is one, or repeated beside others of which each is another."""
    if len(tensor.shape) != _BATCH:
        return False
    return tensor.shape[0] == 1 or (tensor.stride()[0] == 0 and _many(other) and other.stride()[0] != 0)


def _operand(rows: Tensor, *, first: bool, copy: bool, flat: bool = False, may_turn: bool = True) -> Operand:
    one = rows[0] if first else rows
    mergeable = not flat or one.stride()[0] == one.shape[1] * one.stride()[1]
    lies = not copy and mergeable and _lies(one)
    turned = not (copy or lies) and may_turn and _lies(one.mT)
    return Operand(first, not (lies or turned), flat, turned)


def _lies(tensor: Tensor) -> bool:
    """Whether a kernel reads the rows of a matrix, or of each of a batch, where they are."""
    if tensor.data_ptr() % _CHUNK:
        return False
    if tensor.is_contiguous():
        return True
    sizes, strides = tensor.shape, tensor.stride()
    steps = [stride for size, stride in zip(sizes[:-1], strides[:-1], strict=True) if size > 1]
    return (sizes[-1] == 1 or strides[-1] == 1) and all(step > 0 and step % (_CHUNK // _BYTES) == 0 for step in steps)


def copied(tensor: Tensor) -> Tensor:
    """The same row-major, from a multiple of 16 bytes on."""
    held = tensor.contiguous()
    return held.clone() if held.data_ptr() % _CHUNK else held


def check(a: Tensor, b: Tensor, *, gradients: Callable[[], bool]) -> None:
    """Raises ArgusError (E401) for what is not a product of matrices, or batches of them, on one GPU.

    gradients: whether they are asked for.
    """
    for name, tensor in (("a", a), ("b", b)):
        if not hasattr(tensor, "data_ptr"):
            refuse(f"`{name}` is no tensor of torch, found {type(tensor).__name__}", "pass arrays on CUDA")
        if str(tensor.dtype) not in KINDS:
            known = " or ".join(KINDS)
            refuse(f"`{name}` expects elements of type {known}, found {tensor.dtype}", "convert it: `.bfloat16()`")
        if len(tensor.shape) not in (_MATRIX, _BATCH):
            message = f"`{name}` expects 2 or 3 axes, found {len(tensor.shape)}"
            refuse(message, "flatten the leading axes: `.flatten(0, -3)`")
        if not tensor.is_cuda:
            refuse(f"`{name}` is on {tensor.device}, expected a CUDA device", "move it: `.cuda()`")
        if tensor.requires_grad and gradients():
            refuse(f"`{name}` requires a gradient, which this product has not", "use `torch.no_grad()` or `.detach()`")
    if a.device != b.device:
        refuse(f"`a` is on {a.device} and `b` on {b.device}", "move one to the other's device")
    shapes = f"`a` is {tuple(a.shape)} and `b` {tuple(b.shape)}"
    if str(a.dtype) != str(b.dtype):
        refuse(f"`a` has elements of type {a.dtype} and `b` of {b.dtype}", "convert one")
    if a.shape[-1] != b.shape[-2]:
        refuse(f"{shapes}: `b` expects {a.shape[-1]} rows", "pass a (M, K) and b (K, N)")
    batches = {each.shape[0] for each in (a, b) if len(each.shape) == _BATCH} - {1}
    if len(batches) > 1:
        refuse(f"{shapes}: as many matrices in one as in the other, or one", "pass a (Z, M, K) and b (Z, K, N)")


refuse = refusal("matmul")
