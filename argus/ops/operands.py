"""The operands of `matmul`: which kernel family reads them in place, and which must be copied first."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

from attrs import frozen

from argus.ops.broadcast import common
from argus.ops.call_path import is_placed, refuser

KINDS = {"torch.bfloat16": "bf16", "torch.float16": "f16"}
"""The elements of 16 bits that matrix units multiply."""
MULTIPLIED = KINDS | {"torch.float32": "f32"}
"""The elements of operands of `matmul`."""
ALIGNED, _BYTES = 16, 2
"""In bytes: the alignment of rows, and the size of an element."""
_MATRIX, _BATCH = 2, 3
"""Numbers of axes."""


class Tensor(Protocol):
    """The part of torch.Tensor that is used here."""

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
    def new_empty(self, shape: tuple[int, ...], /, *, dtype: Any = None) -> Self: ...  # noqa: ANN401 reason: torch's


T = TypeVar("T", bound=Tensor)


@frozen
class Operand:
    """How a kernel takes an operand, (M, K) of `a` or, of `b`, the transpose (N, K).

    first: use only the first matrix of a batch, since all are equal. copied: copy it first. flat: treat a batch as one
    matrix with all its rows. transposed: it is column-major, so the kernel takes its transpose.
    """

    first: bool = False
    copied: bool = False
    flat: bool = False
    transposed: bool = False

    def of(self, rows: Tensor) -> Tensor:
        """The tensor to pass to the kernel, row-major except for the row and batch strides."""
        one = rows[0] if self.first else rows
        made = copy_aligned(one) if self.copied else one
        return made.flatten(0, 1) if self.flat else made.mT if self.transposed else made


@frozen
class OperandPlan:
    """How a kernel family takes a pair of operands; it depends only on their shapes, strides and alignment.

    family: the family's name. shape: of the result. sizes: the kernel's (M, N, K), or (Z, M, N, K) for a batch of Z
    products.
    """

    family: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    a: Operand
    b: Operand

    @property
    def copies(self) -> bool:
        return self.a.copied or self.b.copied

    def arranged(self, a: Tensor, b: Tensor, out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors A, B and C to pass to the kernel."""
        many = len(self.sizes) > _BATCH
        return self.a.of(a), self.b.of(b.mT), out if many or len(self.shape) < _BATCH else out.flatten(0, 1)

    def dense(self, a: Tensor, b: Tensor) -> OperandPlan:
        """The plan for kernels that read element by element, which need contiguous operands: others are copied."""
        loose = [not of.of(each).is_contiguous() for of, each in ((self.a, a), (self.b, b.mT))]
        return plan_operands(a, b, copy_a=loose[0], copy_b=loose[1]) if any(loose) else self


def plan_operands(
    a: Tensor, b: Tensor, *, copy_a: bool = False, copy_b: bool = False, strided: bool = True
) -> OperandPlan:
    """The plan for a @ b, whose operands `check` has accepted. copy_a, copy_b: copy the operand in any case.

    strided: whether kernels read rows (or columns) with gaps between them; otherwise such operands are copied.
    """
    leading = [each.shape[0] for each in (a, b) if len(each.shape) == _BATCH]
    shape = (*((max(leading) if 0 not in leading else 0,) if leading else ()), a.shape[-2], b.shape[-1])
    batched = _many(b) and not _first_suffices(b, a)
    flat = not batched and _many(a)
    shared = batched and not (_many(a) and not _first_suffices(a, b))
    turned = not (flat or shared)
    kind = MULTIPLIED[str(a.dtype)]
    asked = {"dense": not strided, "any_columns": kind == "f32"}
    left = operand_of(a, first=_first_suffices(a, b), copy=copy_a, flat=flat, may_transpose=turned, **asked)
    right = operand_of(b.mT, first=_first_suffices(b, a), copy=copy_b, **asked)
    name = f"{'bmm' if batched else 'gemm'}_{'t' if left.transposed else 'n'}{'n' if right.transposed else 't'}"
    name += "_shared" if shared else ""
    sizes = (a.shape[-2] * (a.shape[0] if flat else 1), b.shape[-1], a.shape[-1])
    family = name if kind == "bf16" else f"{name}_{kind}"
    return OperandPlan(family, shape, (*(b.shape[:1] if batched else ()), *sizes), left, right)


def _many(tensor: Tensor) -> bool:
    return len(tensor.shape) == _BATCH and tensor.shape[0] != 1


def _first_suffices(tensor: Tensor, other: Tensor) -> bool:
    """Whether a batch's first matrix suffices: it has just one, or repeats one (stride 0) and `other` does not."""
    if len(tensor.shape) != _BATCH:
        return False
    return tensor.shape[0] == 1 or (tensor.stride()[0] == 0 and _many(other) and other.stride()[0] != 0)


def operand_of(
    rows: Tensor,
    *,
    first: bool = False,
    copy: bool = False,
    flat: bool = False,
    may_transpose: bool = True,
    dense: bool = False,
    any_columns: bool = False,
) -> Operand:
    """How a kernel takes an operand whose last axis is summed over.

    first, flat: as of `Operand`. copy: copy it in any case. may_transpose: whether a kernel takes column-major ones.
    dense: whether there may be no gaps between its rows, or columns. any_columns: whether columns of such may have any
    length.
    """
    one = rows[0] if first else rows
    mergeable = one.is_contiguous() if dense else not flat or one.stride()[0] == one.shape[1] * one.stride()[1]
    readable = not copy and mergeable and _is_readable(one)
    transposed = not (copy or readable) and may_transpose and _is_readable(one.mT)
    if dense and transposed:
        transposed = one.mT.is_contiguous() and (any_columns or one.shape[-2] % (ALIGNED // _BYTES) == 0)
    return Operand(first, not (readable or transposed), flat, transposed)


def _is_readable(tensor: Tensor) -> bool:
    """Whether a kernel can read the rows of a matrix, or of each matrix of a batch, in place."""
    if tensor.data_ptr() % ALIGNED:
        return False
    if tensor.is_contiguous():
        return True
    sizes, strides = tensor.shape, tensor.stride()
    steps = [stride for size, stride in zip(sizes[:-1], strides[:-1], strict=True) if size > 1]
    return (sizes[-1] == 1 or strides[-1] == 1) and all(step > 0 and step % (ALIGNED // _BYTES) == 0 for step in steps)


def copy_aligned(tensor: T) -> T:
    """The tensor, row-major and aligned to 16 bytes; copied if it is not."""
    made = tensor.contiguous()
    return made.clone() if made.data_ptr() % ALIGNED else made


def check(a: Tensor, b: Tensor) -> None:
    """Raises ArgusError (E401) unless the operands are vectors, matrices, or batches of matrices, with any axes of
    products, that can be multiplied on one device.
    """
    for name, tensor in (("a", a), ("b", b)):
        if not hasattr(tensor, "data_ptr"):
            refuse(f"`{name}` is not a torch tensor, found {type(tensor).__name__}", "pass arrays on a GPU")
        if str(tensor.dtype) not in MULTIPLIED:
            known = " or ".join(MULTIPLIED)
            refuse(f"`{name}` expects elements of type {known}, found {tensor.dtype}", "convert it: `.bfloat16()`")
        if not len(tensor.shape):
            refuse(f"`{name}` expects at least 1 axis, found none", "multiply by a number with `*`")
        if not is_placed(tensor):
            refuse(f"`{name}` is on {tensor.device}, expected a GPU", "move it: `.cuda()`")
    if a.device != b.device:
        refuse(f"`a` is on {a.device} and `b` on {b.device}", "move one to the other's device")
    shapes = f"`a` is {tuple(a.shape)} and `b` {tuple(b.shape)}"
    if str(a.dtype) != str(b.dtype):
        refuse(f"`a` has elements of type {a.dtype} and `b` of {b.dtype}", "convert one")
    if a.shape[-1] != b.shape[-2:][0]:
        refuse(f"{shapes}: `b` expects {a.shape[-1]} rows", "pass a (M, K) and b (K, N)")
    if -1 in common(a.shape[:-2], b.shape[:-2]):
        refuse(f"{shapes}: the batch sizes must be equal, or one of them 1", "pass a (Z, M, K) and b (Z, K, N)")


refuse = refuser("matmul")
