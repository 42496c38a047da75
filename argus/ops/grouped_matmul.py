"""`grouped_matmul`: rows sorted by expert, each multiplied by its own expert's matrix, on torch tensors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from argus.kernels import grouped
from argus.kernels.grouped import CONFIGS
from argus.language import Template
from argus.ops.call_path import Candidate, Plan, Traced, launch, refuser, torch
from argus.ops.grouped_tiles import count_of, tiles_of
from argus.ops.offsets import check_offsets
from argus.ops.operands import KINDS, Operand, Tensor, operand_of
from argus.ops.targets import kernels_for
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved

FAMILIES: Mapping[str, Template] = {each.name: each for each in vars(grouped).values() if isinstance(each, Template)}
_NAMES = ("A", "B", "starts", "tile_starts", "tile_experts", "C")
_AXES = {"a": ("rows", "K"), "b": ("experts", "K", "N")}
T = TypeVar("T", bound=Tensor)


def grouped_matmul(
    a: T,
    b: Tensor,
    offsets: Tensor,
    *,
    config: str | None = None,
    promises: Promises = "stop",
    unproved: Unproved = "refuse",
) -> T:
    """a[r] @ b[e] for each row r, of the expert e that has it, on an H100 or H200; sums in fp32.

    a: (M, K), sorted by expert. b: (E, K, N), one matrix for each expert. Both in bf16, or both in f16; the result is
    of the same type, (M, N), row-major. offsets: int32, E + 1 of them: expert e has the rows offsets[e] to
    offsets[e + 1] - 1 of `a`, any number, also none; from 0 to M. K and N are multiples of 8.

    `a` is read in place if its rows are aligned to 16 bytes, and `b` if each matrix is row-major or column-major with
    aligned rows or columns, such as the transpose of (E, N, K); else they are copied first. What rows of `a` hold does
    not affect the results of others.

    promises: how offsets are checked before they are used. "stop": on the GPU, ahead of the launch; wrong ones end the
    CUDA context, as an index out of bounds does in torch, and the next call raises E402. "fetch": on the host, which
    waits for the GPU. "tell": as "stop", but the kernel then runs on offsets that its proof does not cover. The tiles
    are computed from the offsets on the GPU, and checked against them in the same way.

    It runs on the current stream and does not support gradients. Unless offsets are fetched, it may be captured in a
    CUDA graph, which reads the offsets when it runs.

    config: the schedule; by default the one expected to be fastest. unproved: "allow" also runs a kernel that is
    neither proved nor refuted.

    Raises:
        ArgusError: E401 for operands that are not such tensors, E402 for wrong offsets, E405 for sizes beyond those
            that the kernel's proof assumes, E406 to E409 for errors on the GPU, E413 for a kernel without a proof, E414
            for a GPU without kernels for it, E303 without a compiler.
    """
    _check(a, b, offsets)
    chosen = kernels_for("grouped_matmul", a).choose(a.shape[0], b.shape[0], b.shape[2]) if config is None else config
    if chosen not in CONFIGS:
        _refuse(f"there is no schedule `{chosen}`", f"choose one of {', '.join(CONFIGS)}")
    (rows, depth), (experts, _, columns) = a.shape, b.shape
    if 0 in (rows, depth, columns):
        return a.new_empty((rows, columns)).zero_()
    of_a, of_b = operand_of(a, may_transpose=False), operand_of(b.mT)
    kind = KINDS[str(a.dtype)]
    family = f"grouped_n{'n' if of_b.transposed else 't'}{'' if kind == 'bf16' else f'_{kind}'}"
    height = CONFIGS[chosen].bm
    tiles = count_of(rows, experts, height)
    sizes = {"M": rows, "K": depth, "E": experts, "N": columns, "R": experts + 1, "S": tiles + 1, "T": tiles}
    candidate = Candidate(family, chosen, partial(_traced, family, chosen))
    results = (((rows, columns), a.dtype),)
    plan = Plan(results, tuple(sizes.items()), (candidate,), partial(_named, of_a, of_b), ("A", "B"), promises)
    out, _ = launch(plan, (a, b, offsets, *tiles_of(offsets, rows, height)), unproved)
    return out


def _named(of_a: Operand, of_b: Operand, a: Tensor, b: Tensor, *others: Tensor) -> Mapping[str, Tensor]:
    return dict(zip(_NAMES, (of_a.of(a), of_b.of(b.mT), *others), strict=True))


def _traced(family: str, config: str) -> Traced:
    template = FAMILIES[family]
    return template.trace(config), template.function.__module__


# -- operands ------------------------------------------------------------------------------------------------


def _check(a: Tensor, b: Tensor, offsets: Tensor) -> None:
    for name, tensor in (("a", a), ("b", b)):
        if not hasattr(tensor, "data_ptr"):
            _refuse(f"`{name}` is not a torch tensor, found {type(tensor).__name__}", "pass `torch.Tensor`s")
        if str(tensor.dtype) not in KINDS:
            known = " or ".join(KINDS)
            _refuse(f"`{name}` expects elements of type {known}, found {tensor.dtype}", "convert it: `.bfloat16()`")
        if len(tensor.shape) != len(_AXES[name]):
            message = f"`{name}` expects {len(_AXES[name])} axes, found {len(tensor.shape)}"
            _refuse(message, f"pass ({', '.join(_AXES[name])})")
        if not tensor.is_cuda:
            _refuse(f"`{name}` is on {tensor.device}, expected a GPU", "move it: `.cuda()`")
        if tensor.requires_grad and torch().is_grad_enabled():
            _refuse(f"`{name}` requires a gradient, which this product lacks", "use `torch.no_grad()` or `.detach()`")
    if a.device != b.device:
        _refuse(f"`a` is on {a.device} and `b` on {b.device}", "move one to the other's device")
    if str(a.dtype) != str(b.dtype):
        _refuse(f"`a` has elements of type {a.dtype} and `b` of {b.dtype}", "convert one")
    if a.shape[1] != b.shape[1]:
        _refuse(
            f"`a` is {tuple(a.shape)} and `b` {tuple(b.shape)}: `b` expects {a.shape[1]} rows",
            "pass a (M, K) and b (E, K, N)",
        )
    check_offsets(_refuse, "offsets", offsets, ("a", a), "experts")
    if offsets.shape[0] != b.shape[0] + 1:
        _refuse(f"{offsets.shape[0]} offsets for {b.shape[0]} experts", "pass one more than there are experts")


_refuse = refuser("grouped_matmul")
