"""Inputs and expected outputs of the shipped kernels on a GPU, by torch in float64.

Used where no solver is installed: nothing of Argus is imported. A family's name says what it computes: `gemm` or `bmm`,
then the layouts of A and B as in `argus.kernels.layouts`, or an epilogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

SCALES = ("alpha", "scale_a", "scale_b")
_BLOCK = 128
_F32 = 2.0**-23
"""Largest relative error of one fp32 addition, matrix units that truncate included."""
_FP8 = 2.0**-11
"""Error of a sum of FP8 products relative to the sum of their magnitudes: the tensor core keeps about 14 bits."""
_TANH = 2.0**-11
"""Largest relative error of tanh.approx.f32 [PTX ISA, tanh]."""
ROUNDINGS = {"bf16": 2.0**-8, "f16": 2.0**-11, "i32": 0.0}
"""Largest relative error of rounding to a type."""
Given = Mapping[str, Any]
Result = tuple[Any, Any]
"""A value in float64, and a bound on the error of what is computed in float32, ahead of rounding."""


def inputs(torch: Any, tensors: Mapping[str, str], case: Mapping[str, Any], seed: int) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    """Every tensor but C. tensors: types by name.

    A draw of integers has values from -2 to 2 and scales that are powers of two, so every result is exact but for its
    last rounding; a draw of floats has normal numbers, and B so small that results are near 1, or every number of i8.
    """
    random = torch.Generator(device="cuda").manual_seed(seed)
    found: dict[str, Any] = {}
    for name in tensors.keys() - {"C"}:
        shape = case["shapes"][name]
        if case["draw"] == "integers":
            drawn = torch.randint(-2, 3, shape, generator=random, device="cuda").float()
            found[name] = 2.0 ** drawn.clamp(-1, 1) if name in SCALES else drawn
        elif tensors[name] == "i8":
            found[name] = torch.randint(-128, 128, shape, generator=random, device="cuda").float()
        elif name in SCALES:
            found[name] = torch.rand(shape, generator=random, device="cuda") + 0.5
        else:
            drawn = torch.randn(shape, generator=random, device="cuda")
            found[name] = (
                drawn * case["sizes"]["K"] ** -0.5 if name in "BWV" and not tensors[name].startswith("e4m3") else drawn
            )
    return found


def expected(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    """The result of a family and the bound of its error, from the inputs as the GPU reads them."""
    wide = {name: each.double() for name, each in given.items()}
    return FORMULAS.get(family, product)(torch, family, wide)


def is_exact(family: str) -> bool:
    """Whether a family computes sums of products alone, which are exact on small integers."""
    return not family.endswith(("silu", "gelu"))


def product(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    """op(A) @ op(B), with op from the letters of the name."""
    del torch
    letters = family.split("_")[1] if family.startswith(("gemm_", "bmm_")) else "nt"
    letters = letters if set(letters) <= {"n", "t"} else "nt"
    a = given["A"].mT if letters[0] == "t" else given["A"]
    b = given["B"].mT if letters[1] == "t" else given["B"]
    return multiplied(a, b)


def multiplied(a: Any, b: Any, error: float | None = None) -> Result:  # noqa: ANN401 reason: untyped
    """a @ b. error: that of a sum, relative to the sum of magnitudes."""
    share = a.shape[-1] * _F32 if error is None else error
    return a @ b, share * (a.abs() @ b.abs())


def _with_bias(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    value, error = product(torch, family, given)
    return value + given["bias"], error + _F32 * (value.abs() + given["bias"].abs())


def _bias_relu(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    """Its slope is at most 1."""
    value, error = _with_bias(torch, family, given)
    return value.clip(0), error


def _bias_silu(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    return _silu(torch, *_with_bias(torch, family, given))


def _silu(torch: Any, value: Any, error: Any) -> Result:  # noqa: ANN401 reason: untyped
    """Its slope is below 1.1."""
    return torch.nn.functional.silu(value), 1.1 * error + _TANH * value.abs()


def _bias_gelu(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    """Its slope is below 1.2."""
    value, error = _with_bias(torch, family, given)
    return torch.nn.functional.gelu(value, approximate="tanh"), 1.2 * error + _TANH * value.abs()


def _scaled(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    value, error = product(torch, family, given)
    return value * given["alpha"], (error + _F32 * value.abs()) * given["alpha"].abs()


def _residual(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    value, error = product(torch, family, given)
    return value + given["R"], error + _F32 * (value.abs() + given["R"].abs())


def _gated(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    del family
    gate, gate_error = _silu(torch, *multiplied(given["A"], given["W"].mT))
    value, error = multiplied(given["A"], given["V"].mT)
    result = gate * value
    return result, gate_error * (value.abs() + error) + gate.abs() * error + _F32 * result.abs()


def _fp8(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    del torch, family
    value, error = multiplied(given["A"], given["B"].mT, _FP8)
    scale = given["scale_a"] * given["scale_b"]
    return value * scale, (error + 2 * _F32 * value.abs()) * scale


def _i8_scaled(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    """Sums are exact; one is rounded to f32, as both products with scales are."""
    del torch, family
    value, error = multiplied(given["A"], given["B"].mT, 0.0)
    scale = given["scale_a"][:, None] * given["scale_b"][None, :]
    return value * scale, (error + 3 * _F32 * value.abs()) * scale


def _fp8_blocks(torch: Any, family: str, given: Given) -> Result:  # noqa: ANN401 reason: untyped
    del torch, family
    n, k = given["B"].shape
    of_a = given["scale_a"].mT.repeat_interleave(_BLOCK, 1)[:, :k]
    of_b = given["scale_b"].repeat_interleave(_BLOCK, 0)[:n].repeat_interleave(_BLOCK, 1)[:, :k]
    return multiplied(given["A"] * of_a, (given["B"] * of_b).mT, _FP8)


FORMULAS: dict[str, Callable[[Any, str, Given], Result]] = {
    "gemm_bias": _with_bias,
    "gemm_bias_relu": _bias_relu,
    "gemm_bias_silu": _bias_silu,
    "gemm_bias_gelu": _bias_gelu,
    "gemm_scaled": _scaled,
    "gemm_residual": _residual,
    "gemm_gated_silu": _gated,
    "gemm_fp8": _fp8,
    "gemm_fp8_fnuz": _fp8,
    "gemm_fp8_fnuz_streams": _fp8,
    "gemm_fp8_blocks": _fp8_blocks,
    "gemm_fp8_fnuz_blocks": _fp8_blocks,
    "gemm_i8_scaled": _i8_scaled,
    "gemm_i8_scaled_streams": _i8_scaled,
}


def difference(torch: Any, entry: Mapping[str, Any], case: Mapping[str, Any], given: Given, found: Any) -> str:  # noqa: ANN401 reason: untyped
    """What is wrong with the output `found`, or an empty string: bit for bit where the arithmetic is exact."""
    value, error = expected(torch, entry["family"], given)
    if case["draw"] == "integers" and is_exact(entry["family"]):
        wanted, bound = value.float().to(found.dtype).double(), torch.zeros_like(value)
    else:
        rounding = ROUNDINGS[dict(entry["tensors"])["C"]]
        wanted, bound = value, rounding * value.abs() + (1 + rounding) * error
    right = (found.double() - wanted).abs() <= bound
    if bool(right.all()):
        return ""
    at = tuple(right.logical_not().nonzero()[0].tolist())
    numbers = f"{found[at].item()}, expected {wanted[at].item()} within {bound[at].item():.3g}"
    count = int(right.logical_not().sum())
    return f"{count} of {right.numel()} elements of `C` differ from the formula in float64, first {list(at)}: {numbers}"
