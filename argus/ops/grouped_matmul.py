"""`grouped_matmul`: rows of experts, each multiplied by its own expert's matrix, on torch tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from argus.kernels import grouped, grouped_few, grouped_few_fp8, grouped_fp8, grouped_fp8_cdna3
from argus.kernels.schedules.grouped import BLOCK
from argus.language import Template
from argus.ops.attention_gradient import is_wanted
from argus.ops.call_path import Candidate, Plan, Traced, launch, refuser, torch
from argus.ops.element_types import element_name, no_kernel
from argus.ops.grouped_gradient import OPERATOR as GRADIENT
from argus.ops.grouped_gradient import Gradient, with_gradient
from argus.ops.grouped_tiles import count_of, tiles_of
from argus.ops.offsets import check_offsets
from argus.ops.operand_checks import Asked, check_operands, check_same_types
from argus.ops.operands import KINDS, Operand, Tensor, copy_aligned, operand_of
from argus.ops.targets import kernels_for, target_of
from argus.ops.traced import traceable
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Product, store

_PARTS = grouped, grouped_fp8, grouped_fp8_cdna3, grouped_few, grouped_few_fp8
FAMILIES: Mapping[str, Template] = {
    each.name: each for part in _PARTS for each in vars(part).values() if isinstance(each, Template)
}
"""The kernels by name."""
_INTEGERS = {
    "grouped": ("starts", "tile_starts", "tile_experts"),
    "packed": ("starts",),
    "masked": ("counts",),
}
"""The kernels' integers by the first part of their names: with lists of tiles, without, and of counts."""
_EIGHT = {"torch.float8_e4m3fn": "sm_90a", "torch.float8_e4m3fnuz": "gfx942"}
"""The targets that multiply operands of 8 bits, by type."""
_AXES = {"a": ("rows", "K"), "b": ("experts", "K", "N")}
_OF_ROWS = " with scales of rows"
_MASKED = {"a": ("experts", "rows", "K"), "b": ("experts", "K", "N")}
T = TypeVar("T", bound=Tensor)


@traceable
def grouped_matmul(
    a: T,
    b: Tensor,
    offsets: Tensor | None = None,
    *,
    counts: Tensor | None = None,
    scale_a: Tensor | None = None,
    scale_b: Tensor | None = None,
    config: str | None = None,
    promises: Promises = "stop",
    unproved: Unproved = "refuse",
) -> T:
    """a[r] @ b[e] for each row r, of the expert e that has it, on an H100, H200 or MI300X; sums in fp32.

    a: (M, K), sorted by expert. b: (E, K, N), one matrix for each expert. Both in bf16, or both in f16; the result is
    of the same type, (M, N), row-major. offsets: int32, E + 1 of them: expert e has the rows offsets[e] to
    offsets[e + 1] - 1 of `a`, any number, also none; from 0 to M. K and N are multiples of 8.

    counts: in place of offsets, int32, one for each expert: `a` is (E, R, K), of which expert e has the first counts[e]
    rows, from none to all. The result is (E, R, N), where other rows are not written.
    `scale_a` is then (E, R, ceil(K / 128)). Not on an MI300X.

    scale_a, scale_b: for `a` and `b` in e4m3 (float8_e4m3fn, and on an MI300X float8_e4m3fnuz, as of `scaled_matmul`),
    factors in f32 of each 1 x 128 of `a` and each 128 x 128 of each matrix of `b`: (M, ceil(K / 128)) and
    (E, ceil(K / 128), ceil(N / 128)); or, of sorted rows on an H100 or H200, of each row of `a` and each column of each
    matrix: (M, 1) and (E, 1, N). The result is then bf16, and K a multiple of 16. `a` is read row-major, matrices of
    `b` and scales of blocks column-major; others are copied. The matrix unit of an H100 or H200 keeps about 14 bits of
    a sum: of each 128 products, which are scaled and added in fp32, or of all, as in torch's fast accumulation.

    `a` is read in place if its rows are aligned to 16 bytes, and `b` if each matrix is row-major or column-major with
    aligned rows or columns, such as the transpose of (E, N, K); else they are copied first. What rows of `a` hold does
    not affect the results of others. On an MI300X operands are copied unless they are dense, and `a` and
    the result take less than 4 GiB.

    promises: how offsets are checked before they are used. "stop": on the GPU, ahead of the launch; wrong ones end the
    CUDA context, as an index out of bounds does in torch, and the next call raises E402. "fetch": on the host, which
    waits for the GPU. "tell": as "stop", but the kernel then runs on offsets that its proof does not cover. The tiles
    are computed from the offsets on the GPU, and checked against them in the same way.

    It runs on the current stream. Unless offsets are fetched, it may be captured in a CUDA graph, which reads the
    offsets when it runs. Of sorted rows without scales, autograd has its gradient, once: that of `b` is, for each
    expert, the product of its rows of `a`, transposed, with those of the result's gradient, summed in fp32 in a fixed
    order, and 0 for experts without rows. It lies in memory as `b` does; operands whose rows are not contiguous are
    copied for it.

    config: the schedule, also of the gradient of `a`; by default the one expected to be fastest. unproved: "allow"
    also runs a kernel that is neither proved nor refuted.

    Raises:
        ArgusError: E401 for operands that are not such tensors, E402 for wrong offsets, E405 for sizes beyond those
            that the kernel's proof assumes, E406 to E409 for errors on the GPU, E413 for a kernel without a proof, E414
            for a GPU without kernels for such operands, E303 without a compiler.
    """
    key = () if counts is not None or scale_a is not None or scale_b is not None else _key(a, b, offsets)
    key = (*key, config, promises, unproved) if key else ()
    ready = _READY.get(key)
    if ready is not None and offsets is not None:
        return ready(a, b, offsets)
    scales = _check(a, b, (scale_a, scale_b), masked=counts is not None)
    own = _integers_of(a, b, offsets, counts)
    if is_wanted(a, b):
        kernels_for(GRADIENT, a)  # ahead of the product, which is of no use without it
        multiply = partial(grouped_matmul, config=config, promises=promises, unproved=unproved)
        return with_gradient(Gradient(multiply, promises, unproved), a, b, own)
    rows, (experts, depth, columns) = a.shape[-2], b.shape
    blocks, of_rows = _scaled(scales, columns)
    kernels = kernels_for(f"grouped_matmul{' of counts' if counts is not None else _OF_ROWS if of_rows else ''}", a)
    choice = kernels.choose(rows, experts, columns, blocks=blocks)
    chosen = choice if config is None else config
    of_b = Operand() if scales else operand_of(b.mT, dense=not kernels.strided)
    layout = "masked" if counts is not None else "packed" if chosen in grouped_few.CONFIGS else "grouped"
    template = FAMILIES["grouped_fp8_rows" if of_rows else _family(layout, str(a.dtype), transposed=of_b.transposed)]
    known = [name for name, each in template.configs.items() if each.target.name == target_of(a)]
    if chosen not in known:
        _refuse(f"there is no schedule `{chosen}`", f"choose one of {', '.join(known)}")
    kind = torch().bfloat16 if scales else a.dtype
    shape = (*a.shape[:-1], columns)
    if 0 in (*shape, depth):
        return a.new_empty(shape, dtype=kind).zero_()
    sizes = {"K": depth, "E": experts, "N": columns}
    integers: tuple[Tensor, ...] = (own,)
    if layout == "grouped":
        height = template.configs[chosen].bm
        tiles = count_of(rows, experts, height)
        sizes |= {"S": tiles + 1, "T": tiles}
        integers += tiles_of(own, rows, height)
    sizes |= {"R": rows} if layout == "masked" else {"M": rows, "R": experts + 1}
    candidate = Candidate(template.name, chosen, partial(_traced, template, chosen))
    results = ((shape, kind),)
    if scales is None:
        of_a = operand_of(a, may_transpose=False, dense=not kernels.strided)
        named = partial(_named, layout, of_a, of_b)
        plan = Plan(results, tuple(sizes.items()), (candidate,), named, ("A", "B"), promises)
        out, product = launch(plan, (a, b, *integers), unproved)
        if key and product is not None:
            store(_READY, key, partial(_again, product, template.configs[chosen].bm if layout == "grouped" else None))
        return out
    sizes |= {"KB": -(-depth // BLOCK), "NB": -(-columns // BLOCK)} if blocks else {}
    named = partial(_named_scaled, layout, blocks=blocks)
    plan = Plan(results, tuple(sizes.items()), (candidate,), named, promises=promises)
    return launch(plan, (a, b, *scales, *integers), unproved)[0]


_READY: dict[tuple[object, ...], Callable[[Tensor, Tensor, Tensor], Any]] = {}
"""Products of sorted rows by what equal calls share: all properties of the operands but their addresses."""


def clear_cache() -> None:
    """Drop what is kept of earlier calls."""
    _READY.clear()


def _key(a: Tensor, b: Tensor, offsets: Tensor | None) -> tuple[object, ...]:
    """What calls share that run the same kernel on aligned operands; empty for others, and for those with gradients."""
    try:
        if offsets is None or a.requires_grad or b.requires_grad:
            return ()
        if (a.data_ptr() | b.data_ptr() | offsets.data_ptr()) % 16:
            return ()
        of_offsets = offsets.shape, offsets.stride(), offsets.dtype, offsets.device
        return a.shape, a.stride(), a.dtype, a.device, b.shape, b.stride(), b.dtype, b.device, *of_offsets
    except (AttributeError, RuntimeError):  # not tensors: nothing to look up
        return ()


def _again(product: Product, height: int | None, a: Tensor, b: Tensor, offsets: Tensor) -> Any:  # noqa: ANN401 reason: torch's
    """The product of operands that have been checked. height: of the tiles that are listed; None without a list."""
    lists = () if height is None else tiles_of(offsets, a.shape[0], height)
    operands = (a, b, offsets, *lists)
    return product(operands, tuple(each.data_ptr() for each in operands))


def _family(layout: str, dtype: str, *, transposed: bool) -> str:
    """The name of the kernel for operands of a type. transposed: each matrix of `b` is row-major."""
    if dtype in _EIGHT:
        return f"{layout}_fp8_blocks" if _EIGHT[dtype] == "sm_90a" else f"{layout}_fp8_fnuz_blocks"
    kind = KINDS[dtype]
    return f"{layout}_n{'n' if transposed else 't'}{'' if kind == 'bf16' else f'_{kind}'}"


def _named(layout: str, of_a: Operand, of_b: Operand, a: Tensor, b: Tensor, *others: Tensor) -> Mapping[str, Tensor]:
    return dict(zip(("A", "B", *_INTEGERS[layout], "C"), (of_a.of(a), of_b.of(b.mT), *others), strict=True))


def _named_scaled(
    layout: str, a: Tensor, b: Tensor, of_a: Tensor, of_b: Tensor, *others: Tensor, blocks: bool
) -> Mapping[str, Tensor]:
    """The operands row-major, with k innermost but for scales of blocks of rows; others of these as (M,) and (E, N)."""
    scales = (each.mT if blocks else each.flatten(0, 1) for each in (of_a, of_b))
    made = map(copy_aligned, (a, b.mT, *scales))
    return dict(zip(("A", "B", "scale_a", "scale_b", *_INTEGERS[layout], "C"), (*made, *others), strict=True))


def _traced(template: Template, config: str) -> Traced:
    return template.trace(config), template.function.__module__


# -- operands ------------------------------------------------------------------------------------------------


def _check(
    a: Tensor, b: Tensor, scales: tuple[Tensor | None, Tensor | None], *, masked: bool
) -> tuple[Tensor, Tensor] | None:
    """The scales, of 8-bit operands. Raises ArgusError (E401) for operands that are not of the operator."""
    of_a, of_b = scales
    known = KINDS if of_a is None and of_b is None else _EIGHT
    axes = _MASKED if masked else _AXES
    sorted_rows = known is KINDS and not masked
    asked = {name: Asked(known, of, differentiable=sorted_rows) for name, of in axes.items()}
    check_operands(_refuse, {"a": (a, asked["a"]), "b": (b, asked["b"])}, lacks="this product lacks")
    check_same_types(_refuse, a=a, b=b)
    if str(a.dtype) in _EIGHT and _EIGHT[str(a.dtype)] != target_of(a):
        what = f"with operands of {element_name(a.dtype)}"
        raise no_kernel("grouped_matmul", target_of(a), what, [_EIGHT[str(a.dtype)]])
    if a.shape[-1] != b.shape[1]:
        _refuse(
            f"`a` is {tuple(a.shape)} and `b` {tuple(b.shape)}: `b` expects {a.shape[-1]} rows",
            f"pass a ({', '.join(axes['a'])}) and b ({', '.join(axes['b'])})",
        )
    if of_a is None and of_b is None:
        return None
    if of_a is None or of_b is None:
        _refuse("scales of one operand alone", "pass `scale_a` and `scale_b`")
    scale = Asked(("torch.float32",))
    check_operands(
        _refuse, {"scale_a": (of_a, scale), "scale_b": (of_b, scale)}, lacks="this product lacks", beside=("a", a)
    )
    rows, (experts, depth, columns) = a.shape[:-1], b.shape
    deep, wide = (-(-extent // BLOCK) for extent in (depth, columns))
    wanted = [((*rows, deep), (experts, deep, wide))]
    if not masked:
        wanted.append(((*rows, 1), (experts, 1, columns)))
    found = tuple(of_a.shape), tuple(of_b.shape)
    if found not in wanted:
        said = ", or ".join(f"{one} and {two}" for one, two in wanted)
        message = f"`scale_a` and `scale_b` are {found[0]} and {found[1]}, expected {said}"
        _refuse(message, "pass a scale for every block" + (", or for every row and column" if not masked else ""))
    return of_a, of_b


def _scaled(scales: tuple[Tensor, Tensor] | None, columns: int) -> tuple[bool, bool]:
    """Whether there are scales of blocks, and of rows and columns: of columns there are more than of blocks."""
    of_rows = scales is not None and scales[1].shape[2] == columns
    return scales is not None and not of_rows, of_rows


def _integers_of(a: Tensor, b: Tensor, offsets: Tensor | None, counts: Tensor | None) -> Tensor:
    """Offsets or counts. Raises ArgusError (E401) unless they are of as many experts as there are matrices."""
    if offsets is not None and counts is None:
        check_offsets(_refuse, "offsets", offsets, ("a", a), "experts")
        if offsets.shape[0] != b.shape[0] + 1:
            _refuse(f"{offsets.shape[0]} offsets for {b.shape[0]} experts", "pass one more than there are experts")
        return offsets
    if counts is None or offsets is not None:
        _refuse("both `offsets` and `counts`, or neither", "pass one of them")
    check_offsets(_refuse, "counts", counts, ("a", a), "experts", least=1)
    if not counts.shape[0] == b.shape[0] == a.shape[0]:
        message = f"{counts.shape[0]} counts and {a.shape[0]} matrices of rows for {b.shape[0]} experts"
        _refuse(message, "pass one of each for each expert")
    return counts


_refuse = refuser("grouped_matmul")
