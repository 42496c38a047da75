"""`scaled_matmul`: products of scaled 8-bit torch tensors; each kernel is built and verified on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol, Self

from attrs import frozen

from argus.core.dsl.kernel import Template
from argus.kernels import fp8, fp8_blocks, fp8_blocks_cdna3, fp8_cdna3, i8_cdna3
from argus.kernels.fp8_blocks import BLOCK
from argus.kernels.streamk_scaled_cdna3 import gemm_fp8_fnuz_streams, gemm_i8_scaled_streams
from argus.language import ProgramTemplate
from argus.ops.call_path import Candidate, Plan, Traced, launch, load_candidate, refuser, torch
from argus.ops.choice import Scales
from argus.ops.element_types import element_name, no_kernel
from argus.ops.operand_checks import Asked, check_operands, check_same_types
from argus.ops.targets import kernels_for, target_of
from argus.ops.traced import traceable
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Product, store

_NAMES: tuple[str, ...] = ("A", "B", "scale_a", "scale_b", "C")


class Scaled(Protocol):
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
    def data_ptr(self) -> int: ...
    def stride(self) -> tuple[int, ...]: ...
    def contiguous(self) -> Self: ...
    def clone(self) -> Self: ...
    def zero_(self) -> Self: ...
    def reshape(self, *shape: int) -> Self: ...
    def new_empty(self, shape: tuple[int, ...], /, *, dtype: Any = None) -> Self: ...  # noqa: ANN401 reason: torch's


Four = tuple[Scaled, Scaled, Scaled, Scaled]
Sizes = tuple[tuple[str, int], ...]


@frozen
class Family:
    """A kernel family. element: of the operands, as torch names it. scales: what has a scale each. parts: the program
    of the same products that divides K.
    """

    template: Template
    configs: Mapping[str, object]
    element: str
    scales: Scales
    parts: ProgramTemplate | None = None

    @property
    def known(self) -> tuple[str, ...]:
        """The names of all schedules."""
        return (*self.configs, *(() if self.parts is None else self.parts.configs))

    def traced(self, config: str) -> Traced:
        of = self.template if config in self.configs or self.parts is None else self.parts
        return of.trace(config), of.function.__module__

    def sizes(self, m: int, n: int, k: int) -> Sizes:
        own = (("M", m), ("N", n), ("K", k))
        return (*own, ("KB", -(-k // BLOCK)), ("NB", -(-n // BLOCK))) if self.scales == "blocks" else own

    def arranged(self, tensors: Four) -> Four:
        """The operands as the kernel takes them: B and block scales transposed, others as vectors."""
        a, b, of_a, of_b = tensors
        return (a, b.mT, of_a.mT, of_b.mT) if self.scales == "blocks" else (a, b.mT, _vector(of_a), _vector(of_b))

    def fits(self, of_a: tuple[int, ...], of_b: tuple[int, ...], extents: tuple[int, int, int]) -> bool:
        """Whether scales of these shapes are those that the kernels take, of products of these extents."""
        match self.scales:
            case "whole":
                return all(extent == 1 for extent in (*of_a, *of_b))
            case "blocks" | "rows":
                return (of_a, of_b) == shapes_of(self.scales, extents)

    def wanted(self, extents: tuple[int, int, int]) -> str:
        """The shapes of both scales in words."""
        one, two = shapes_of(self.scales, extents)
        return "one number each" if self.scales == "whole" else f"{one} and {two}"


def shapes_of(scales: Scales, extents: tuple[int, int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of both scales, of products of these extents."""
    m, n, k = extents
    blocks = -(-k // BLOCK)
    of: dict[Scales, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "whole": ((), ()),
        "blocks": ((m, blocks), (blocks, -(-n // BLOCK))),
        "rows": ((m, 1), (1, n)),
    }
    return of[scales]


_E4M3, _FNUZ, _INT8 = "torch.float8_e4m3fn", "torch.float8_e4m3fnuz", "torch.int8"
_EIGHT, _F32 = (_E4M3, _FNUZ, _INT8), ("torch.float32",)
_ASKED = {
    "a": Asked(_EIGHT, ("M", "K")),
    "b": Asked(_EIGHT, ("K", "N")),
    "scale_a": Asked(_F32),
    "scale_b": Asked(_F32),
}
WHOLE = Family(fp8.gemm_fp8, fp8.CONFIGS, _E4M3, "whole")
BLOCKS = Family(fp8_blocks.gemm_fp8_blocks, fp8_blocks.CONFIGS, _E4M3, "blocks")
FAMILIES: Mapping[str, tuple[Family, ...]] = {
    "sm_90a": (WHOLE, BLOCKS),
    "gfx942": (
        Family(fp8_cdna3.gemm_fp8_fnuz, fp8_cdna3.CONFIGS, _FNUZ, "whole", gemm_fp8_fnuz_streams),
        Family(fp8_blocks_cdna3.gemm_fp8_fnuz_blocks, fp8_blocks_cdna3.CONFIGS, _FNUZ, "blocks"),
        Family(i8_cdna3.gemm_i8_scaled, i8_cdna3.CONFIGS, _INT8, "rows", gemm_i8_scaled_streams),
    ),
}
"""By target; at most one for each type of elements and what has scales. One of blocks comes after that of matrices,
which may be of one block.
"""


@traceable
def scaled_matmul(
    a: Scaled, b: Scaled, scale_a: Scaled, scale_b: Scaled, *, config: str | None = None, unproved: Unproved = "refuse"
) -> Scaled:
    """(a * scale_a) @ (b * scale_b) for 8-bit matrices (M, K) and (K, N); the result is bf16, row-major.

    The matrices are float8_e4m3fn on an H100 or H200, and float8_e4m3fnuz, whose values end at 240, on an MI300X, which
    multiplies no other 8-bit numbers with 4 bits of exponent. Convert by `.to`: the same bits are another number. On an
    MI300X they may be int8 too: sums are exact then, of fewer than 2^17 products.

    The scales are f32 on the device: one number for each matrix, or one for each 1 x 128 block of `a` and 128 x 128
    block of `b`, of shapes (M, ceil(K / 128)) and (ceil(K / 128), ceil(N / 128)). Of int8 each row of `a` and each
    column of `b` has one: (M, 1) and (1, N). With one number each, the matrix unit makes all sums (that of an H100 or
    H200 keeps about 14 bits of a sum's fraction, torch's fast accumulation), and the result is scaled once. With
    blocks, it sums 128 products, and each such sum is scaled and added in single precision.

    `a` is read row-major, `b` and block scales column-major, so `b = weight.T` and `scale_b = weight_scale.T` cost
    nothing; operands in another layout are copied first. K must be a multiple of 16. It runs on the current stream and
    does not support gradients; launches may be captured.

    config: the schedule; by default the one expected to be fastest. unproved: "allow" also runs a kernel that is
    neither proved nor refuted.

    Raises:
        ArgusError: E401 for operands that are not such matrices and scales, E405 if a schedule does not support the
            shape, E406 to E409 for errors on the GPU, E413 for a kernel without a proof, E414 for operands
            that no kernel for this GPU multiplies, E303 without a compiler.
    """
    tensors = a, b, scale_a, scale_b
    key = _call_key(tensors, config, unproved)
    ready = _READY.get(key)
    if ready is not None:
        places = a.data_ptr(), b.data_ptr(), scale_a.data_ptr(), scale_b.data_ptr()
        aligned = not (places[0] | places[1] | places[2] | places[3]) % 16
        if aligned and not (a.requires_grad or b.requires_grad or scale_a.requires_grad or scale_b.requires_grad):
            return ready(tensors, places)
    family, chosen = _choose(tensors, config)
    shape, dtype = (a.shape[0], b.shape[1]), torch().bfloat16
    if 0 in (*shape, a.shape[1]):
        return a.new_empty(shape, dtype=dtype).zero_()
    candidate = Candidate(family.template.name, chosen, partial(family.traced, chosen))
    plan = Plan(((shape, dtype),), family.sizes(*shape, a.shape[1]), (candidate,), partial(_named, family))
    out, product = launch(plan, tensors, unproved)
    if key and product is not None:
        store(_READY, key, product)
    return out


def _named(family: Family, a: Scaled, b: Scaled, of_a: Scaled, of_b: Scaled, out: Scaled) -> Mapping[str, Scaled]:
    return dict(zip(_NAMES, (*map(_rows, family.arranged((a, b, of_a, of_b))), out), strict=True))


def clear_cache() -> None:
    """Drop the loaded kernels."""
    _READY.clear()
    load_candidate.cache_clear()


# -- operands ------------------------------------------------------------------------------------------------


def _choose(tensors: Four, config: str | None) -> tuple[Family, str]:
    """The family and the name of a schedule.

    Raises ArgusError: E401 unless the operands are two 8-bit matrices with their scales, on one GPU; E414.
    """
    a, b = tensors[:2]
    given = {name: (tensor, asked) for (name, asked), tensor in zip(_ASKED.items(), tensors, strict=True)}
    check_operands(_refuse, given, lacks="this product lacks")
    if a.shape[1] != b.shape[0]:
        message = f"`a` is {tuple(a.shape)} and `b` {tuple(b.shape)}: `b` expects {a.shape[1]} rows"
        _refuse(message, "pass a (M, K) and b (K, N)")
    m, k, n = *a.shape, b.shape[1]
    family = _family(tensors, (m, n, k))
    kernels = kernels_for("scaled_matmul", a)
    chosen = kernels.choose(m, n, k, scales=family.scales) if config is None else config
    if chosen not in family.known:
        _refuse(f"there is no schedule `{chosen}`", f"choose one of {', '.join(family.known)}")
    return family, chosen


def _family(tensors: Four, extents: tuple[int, int, int]) -> Family:
    """The family for the operands' device and type, and the scales' shapes.

    Raises ArgusError: E414 where there is none for the device, E401 for scales of other shapes.
    """
    a, b, of_a, of_b = tensors
    target = target_of(a)
    for tensor in (a, b):
        if str(tensor.dtype) not in {each.element for each in FAMILIES[target]}:
            raise no_kernel("scaled_matmul", target, f"with operands of {element_name(tensor.dtype)}")
    check_same_types(_refuse, a=a, b=b)
    shapes = tuple(of_a.shape), tuple(of_b.shape)
    known = [each for each in FAMILIES[target] if each.element == str(a.dtype)]
    for each in known:
        if each.fits(*shapes, extents):
            return each
    wanted = ", or ".join(each.wanted(extents) for each in known)
    return _refuse(f"the scales are {shapes[0]} and {shapes[1]}, expected {wanted}", "pass scales of these shapes")


def _vector(tensor: Scaled) -> Scaled:
    return tensor.reshape(-1)


def _rows(tensor: Scaled) -> Scaled:
    """The matrix, row-major and aligned to 16 bytes; copied if it is not."""
    dense = tensor.contiguous()
    return dense.clone() if dense.data_ptr() % 16 else dense


_refuse = refuser("scaled_matmul")


# -- kernels on the device -----------------------------------------------------------------------------------


_READY: dict[tuple[object, ...], Product] = {}


def _call_key(tensors: Four, config: str | None, unproved: str) -> tuple[object, ...]:
    """All properties of a call but the operands' addresses, as a key; empty where an operand is not a tensor."""
    try:
        a, b, of_a, of_b = tensors
        return (
            *(a.shape, b.shape, of_a.shape, of_b.shape, a.stride(), b.stride(), of_a.stride(), of_b.stride()),
            *(a.dtype, b.dtype, of_a.dtype, of_b.dtype, a.device, b.device, of_a.device, of_b.device),
            *(config, unproved),
        )
    except (AttributeError, RuntimeError):
        return ()
