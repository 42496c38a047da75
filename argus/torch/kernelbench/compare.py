"""Whether a compiled model is right: against float64, within 1e-4 or twice eager torch's own error."""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from attrs import frozen
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TOLERANCE = 1e-4
FLOAT64, EAGER = "float64", "eager torch"
_PART = 1 << 26
"""Elements that are compared at once, so that float64 copies of large results do not fill a GPU."""
_OTHER = 1e-2
"""An error of eager torch above which float64 computes something else, as a dropout with other random numbers."""
_BATCHES = 16
"""Parts of a batch, of convolutions that memory does not hold at once."""
_torch: Any = torch


@frozen
class Comparison:
    """error, eager: the greatest error of the compiled and of the eager result, relative to 1 + the float64 value.

    eager_tf32: of eager torch as it is, whose convolutions round to TF32; `eager` is without that. stock, stock_tf32:
    whether the result agrees with those two to within 1e-4 absolutely and relatively. trivial: whether zeros or a
    constant would pass, too. against: what the errors are relative to: float64, or eager torch without TF32 where
    memory does not hold the float64 results, or where they are of other random numbers; `eager` is 0 then.
    """

    error: float
    eager: float
    stock: bool
    trivial: bool
    eager_tf32: float = 0.0
    stock_tf32: bool = True
    against: str = FLOAT64

    @property
    def right(self) -> bool:
        return self.error <= max(TOLERANCE, 2 * self.eager)


def compare(model: Any, own: Any, compiled: Any, inputs: list[Any], seed: int = 0) -> Comparison:  # noqa: ANN401 reason: modules of torch's
    """Run all on equal inputs and weights. own: a copy of the model, of which `compiled` is the compiled one.

    Results are all tensors that are returned, and buffers of floats that the run may have changed. Each run begins with
    the same state of the generators, and inputs of its own, which the compiled model must leave as eager torch does.
    """
    own.load_state_dict(model.state_dict())
    with torch.no_grad():
        after = _own(inputs)
        found = _results(own, compiled, after, seed)
        wanted = _own(inputs)
        with without_tf32():
            eager = _run_copy(model, wanted, seed)
        alike = _are_alike(after, wanted)
        del after, wanted
        stock = _close(found, eager)
        as_is = _run_copy(model, _own(inputs), seed)
        stock_tf32 = _close(found, as_is)
        exact = _exact(model, inputs, seed)
        against = FLOAT64
        if exact is None or _errors(eager, exact) > _OTHER:
            exact, against = eager, EAGER
        errors = [_errors(each, exact) for each in (found, eager, as_is)]
        if not alike or [each.dtype for each in found] != [each.dtype for each in eager]:
            errors[0] = float("inf")
        trivial = _is_trivial(exact[0])
    return Comparison(errors[0], errors[1], stock, trivial, errors[2], stock_tf32, against)


def compared(found: Any, eager: Any, exact: Any) -> Comparison:  # noqa: ANN401 reason: tensors
    """The comparison of one result."""
    if found.shape != eager.shape or found.dtype != eager.dtype:
        return Comparison(float("inf"), 0.0, stock=False, trivial=False)
    errors = _errors([found], [exact]), _errors([eager], [exact])
    return Comparison(*errors, _close([found], [eager]), _is_trivial(exact))


# -- runs ----------------------------------------------------------------------------------------------------


def _results(module: Any, call: Any, inputs: list[Any], seed: int) -> list[Any]:  # noqa: ANN401 reason: torch's
    _torch.manual_seed(seed)
    found = [each for each in tree_leaves(call(*inputs)) if isinstance(each, torch.Tensor)]
    return found + [each for each in module.buffers() if each.is_floating_point()]


def _run_copy(model: Any, inputs: list[Any], seed: int) -> list[Any]:  # noqa: ANN401 reason: torch's
    own = copy.deepcopy(model)
    return _results(own, own, inputs, seed)


def _own(inputs: list[Any]) -> list[Any]:
    return [each.clone() if isinstance(each, torch.Tensor) else each for each in inputs]


def _are_alike(one: list[Any], other: list[Any]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(not isinstance(each, torch.Tensor) or _errors([each], [of]) <= TOLERANCE for each, of in pairs)


def _exact(model: Any, inputs: list[Any], seed: int) -> list[Any] | None:  # noqa: ANN401 reason: torch's
    """The results in float64; None where the GPU's memory does not hold them, or the model has no float64 form.

    Where memory does not hold what convolutions need besides, they are computed in parts of the batch.
    """
    for mode in (nullcontext(), _ConvolutionsInParts()):
        try:
            with mode:
                own = copy.deepcopy(model).double()
                return _results(own, own, [_double(each) for each in inputs], seed)
        except RuntimeError:
            own = None
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
    return None


class _ConvolutionsInParts(TorchDispatchMode):
    """Convolutions of a few images at a time."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 reason: torch's
        if func is not torch.ops.aten.convolution.default:
            return func(*args, **(kwargs or {}))
        x, *others = args
        return torch.cat([func(part, *others) for part in x.split(max(1, len(x) // _BATCHES))])


def _double(each: Any) -> Any:  # noqa: ANN401 reason: a tensor or a number
    return each.double() if isinstance(each, torch.Tensor) and each.is_floating_point() else each


@contextmanager
def without_tf32() -> Generator[None]:
    """Products and convolutions of eager torch in single precision."""
    backends = (_torch.backends.cuda.matmul, _torch.backends.cudnn)
    before = [each.allow_tf32 for each in backends]
    for each in backends:
        each.allow_tf32 = False
    try:
        yield
    finally:
        for each, was in zip(backends, before, strict=True):
            each.allow_tf32 = was


# -- errors --------------------------------------------------------------------------------------------------


def _parts(*tensors: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 reason: torch's
    """Parts of tensors of one shape."""
    return zip(*(each.reshape(-1).split(_PART) for each in tensors), strict=True)


def _fit(found: list[Any], wanted: list[Any]) -> bool:
    return [each.shape for each in found] == [each.shape for each in wanted]


def _errors(found: list[Any], exact: list[Any]) -> float:
    """The greatest error; infinite where one is a number and the other is not, or shapes differ."""
    if not _fit(found, exact):
        return float("inf")
    worst = [_error(*part) for pair in zip(found, exact, strict=True) for part in _parts(*pair)]
    return max(worst, default=0.0)


def _error(found: Any, exact: Any) -> float:  # noqa: ANN401 reason: tensors
    """The greatest error relative to 1 + what is exact; of integers, absolutely: the next one is another place."""
    given, wanted = found.double(), exact.double()
    if not found.is_floating_point():
        apart = torch.where(found == exact, 0.0, (given - wanted).abs().clamp(min=1))
        return float(apart.max()) if apart.numel() else 0.0
    same = (given == wanted) | (given.isnan() & wanted.isnan())
    apart = torch.where(same, 0.0, (given - wanted).abs() / (1 + wanted.abs()))
    worst = float(apart.max()) if apart.numel() else 0.0
    return float("inf") if worst != worst else worst  # noqa: PLR0124 reason: NaN is not itself


def _close(found: list[Any], eager: list[Any]) -> bool:
    if not _fit(found, eager) or [each.dtype for each in found] != [each.dtype for each in eager]:
        return False
    pairs = zip(found, eager, strict=True)
    return all(torch.allclose(*part, atol=TOLERANCE, rtol=TOLERANCE) for pair in pairs for part in _parts(*pair))


def _is_trivial(exact: Any) -> bool:  # noqa: ANN401 reason: a tensor
    """Whether zeros, or the mean everywhere, are within the tolerance."""
    count = max(exact.numel(), 1)
    mean = sum(float(part.double().sum()) for (part,) in _parts(exact)) / count
    worst = [
        max((_error(torch.full_like(part, to), part) for (part,) in _parts(exact)), default=0.0) for to in (0.0, mean)
    ]
    return min(worst) <= TOLERANCE
