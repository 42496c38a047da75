"""Calls of operators along the last axis of torch tensors: checks of operands, the kernel for a length, its launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite, prod
from types import ModuleType
from typing import Any, Protocol, Self

from attrs import frozen

from argus.core.dsl.kernel import Template
from argus.kernels.rows.configs import Reads
from argus.ops.call_path import Candidate, Plan, Traced, is_placed, launch, load_candidate, refuser, torch
from argus.ops.constants import constant
from argus.ops.operands import Tensor, copy_aligned
from argus.ops.targets import kernels_for
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Product, Result, store

TYPES: Mapping[str, str] = {"torch.bfloat16": "bf16", "torch.float16": "f16", "torch.float32": "f32"}
_NAMES = {"X": "x", "Z": "residual", "G": "weight", "W": "weight", "B": "bias"}
"""The names of operands by those of the kernel's tensors, where they differ."""
_ALIGNMENT = 16


class Array(Tensor, Protocol):
    """The part of torch.Tensor that is used here."""

    def reshape(self, *shape: int) -> Self: ...
    def view(self, dtype: Any, /) -> Self: ...  # noqa: ANN401 reason: torch's


@frozen
class Operator:
    """An operator. operands, results: its kernel's tensors; first the rows. single: results in fp32.

    reads: how its kernel reads long rows.

    A tensor is of "rows" of x, of "columns" (one number for each), of "channels" (one number for each, of each group),
    of "each row" (one number for each), of pairs of 32 bits for each row ("pairs"), or "one" number.
    """

    name: str
    module: ModuleType
    operands: Mapping[str, str]
    results: Mapping[str, str]
    single: bool = False
    family: str = ""
    reads: Reads = "twice"

    def template(self, kind: str) -> Template:
        found = getattr(self.module, f"{self.family or self.name}_{kind}")
        assert isinstance(found, Template)
        return found


@frozen
class Groups:
    """The rows of an operand (N, C, ...) whose channels are of so many groups: one for each group of each sample."""

    count: int

    def rows(self, shape: Sequence[int]) -> Matrix:
        samples, channels, *places = shape
        own, places_of_one = channels // self.count, prod(places)
        return Matrix(
            samples * self.count,
            own * places_of_one,
            places_of_one,
            (("G", self.count), ("K", own), ("S", places_of_one)),
        )


@frozen
class Matrix:
    """An operand as rows of a length. whole: vectors of elements divide this number. sizes: others of the kernel."""

    rows: int
    length: int
    whole: int
    sizes: tuple[tuple[str, int], ...] = ()


def _matrix(shape: Sequence[int], groups: Groups | None) -> Matrix:
    """Rows along the last axis, or of groups."""
    if groups is not None:
        return groups.rows(shape)
    return Matrix(prod(shape[:-1]), shape[-1], shape[-1])


def launched(of: Operator, given: tuple[Any, ...], unproved: Unproved, groups: Groups | None = None) -> Any:  # noqa: ANN401 reason: one or two results
    key = _call_key(of, given, unproved, groups)
    ready = _READY.get(key)
    if ready is not None:
        places = tuple([each.data_ptr() for each in given])
        if not any(place % _ALIGNMENT for place in places) and not any(each.requires_grad for each in given):
            return _in_order(of, ready(given, places))
    _check(of, given)
    x = given[0]
    matrix = _matrix(x.shape, groups)
    kind = TYPES[str(x.dtype)]
    dtype = torch().float32 if of.single else x.dtype
    shapes = [x.shape if place == "rows" else x.shape[:-1] for place in of.results.values()]
    results: list[Result] = [(tuple(shape), dtype) for shape in shapes]
    kernels = kernels_for("operators along rows", x)
    template, config = of.template(kind), kernels.choose(kind, matrix.length, matrix.whole, of.reads, matrix.rows)
    candidate = Candidate(template.name, config, partial(_traced, template, config))
    sizes = (("R", matrix.rows), ("N", matrix.length), *matrix.sizes)
    plan = Plan(results, sizes, (candidate,), partial(_named, of, matrix))
    found, product = launch(plan, given, unproved)
    if key and product is not None:
        store(_READY, key, product)
    return _in_order(of, found)


def _in_order(of: Operator, found: Any) -> Any:  # noqa: ANN401 reason: one or two results
    """The result, or the norm before the sum."""
    return found if len(of.results) == 1 else tuple(reversed(found))


def _traced(template: Template, config: str) -> Traced:
    return template.trace(config), template.function.__module__


def _named(of: Operator, matrix: Matrix, *tensors: Array) -> Mapping[str, Array]:
    """The kernel's tensors by name, of the shapes that it takes."""
    places = {**of.operands, **of.results}
    return {name: _as(place, each, matrix) for (name, place), each in zip(places.items(), tensors, strict=True)}


def _as(place: str, tensor: Array, matrix: Matrix) -> Array:
    dense = copy_aligned(tensor)
    match place:
        case "rows":
            return dense.reshape(matrix.rows, matrix.length)
        case "each row":
            return dense.reshape(matrix.rows)
        case "pairs":
            return dense.reshape(matrix.rows, 1).view(torch().int32)
        case "channels":
            groups = dict(matrix.sizes)
            return dense.reshape(groups["G"], groups["K"])
        case _:
            return dense


# -- operands ------------------------------------------------------------------------------------------------


def _check(of: Operator, given: Sequence[Any]) -> None:
    """Raises ArgusError (E401) unless the operands are such tensors on one GPU."""
    x = given[0]
    for name, each in zip(("x", *list(of.operands)[1:]), given, strict=True):
        _check_one(of, _NAMES.get(name, name), each, x)
    if not len(x.shape):
        refuser(of.name)("`x` has no axis", "pass a tensor of rows")
    wanted = {
        "rows": tuple(x.shape),
        "channels": tuple(x.shape[1:2]),
        "columns": tuple(x.shape[-1:]),
        "pairs": tuple(x.shape[:-1]),
        "one": (1,),
    }
    for (name, place), each in zip(of.operands.items(), given, strict=True):
        if tuple(each.shape) != wanted[place]:
            said = f"`{_NAMES.get(name, name)}` is {tuple(each.shape)}, expected {wanted[place]}"
            refuser(of.name)(
                f"`x` is {tuple(x.shape)} and {said}", "pass one with the rows, the columns or the channels of `x`"
            )
        kind = {"pairs": "torch.int64", "one": "torch.float32"}.get(place, str(x.dtype))
        if str(each.dtype) != kind:
            refuser(of.name)(
                f"`{_NAMES.get(name, name)}` expects elements of type {kind}, found {each.dtype}",
                f"convert it: `.to({kind})`",
            )


def _check_one(of: Operator, name: str, tensor: Any, beside: Any) -> None:  # noqa: ANN401 reason: a user's
    refuse = refuser(of.name)
    if not hasattr(tensor, "data_ptr"):
        refuse(f"`{name}` is not a torch tensor, found {type(tensor).__name__}", "pass `torch.Tensor`s")
    if name == "x" and str(tensor.dtype) not in TYPES:
        known = ", ".join(TYPES)
        refuse(f"`x` expects elements of type {known}, found {tensor.dtype}", "convert it: `.bfloat16()`")
    if not is_placed(tensor):
        refuse(f"`{name}` is on {tensor.device}, expected a GPU", "move it: `.cuda()`")
    if tensor.device != beside.device:
        refuse(f"`x` is on {beside.device} and `{name}` on {tensor.device}", "move one to the other's device")
    if tensor.requires_grad and torch().is_grad_enabled():
        refuse(f"`{name}` requires a gradient, which this kernel lacks", "use `torch.no_grad()` or `.detach()`")


def on_device(name: str, x: Any) -> int | None:  # noqa: ANN401 reason: a user's
    """The number of the operand's GPU, None for the CPU. Raises ArgusError (E401) for other places."""
    if not hasattr(x, "data_ptr"):
        refuser(name)(f"`x` is not a torch tensor, found {type(x).__name__}", "pass `torch.Tensor`s")
    if not is_placed(x):
        refuser(name)(f"`x` is on {x.device}, expected a GPU", "move it: `.cuda()`")
    return x.device.index


def weights_of(name: str, x: Any, given: Any, value: float, axis: int = -1) -> Any:  # noqa: ANN401 reason: a user's
    """The numbers of an axis: those given, or equal ones. Raises ArgusError as `constant`."""
    device = on_device(name, x)
    if given is not None or not len(x.shape):
        return given
    return constant(name, value, x.shape[axis], str(x.dtype).rpartition(".")[2], device)


def groups_of(name: str, x: Any, count: object) -> Groups:  # noqa: ANN401 reason: a user's
    """The rows of groups of channels. Raises ArgusError (E401) unless there are channels, in so many equal groups."""
    on_device(name, x)
    refuse = refuser(name)
    if len(x.shape) < 2:
        refuse(f"`x` has {len(x.shape)} axes, expected samples, channels and any others", "pass (N, C, ...)")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1 or x.shape[1] % count:
        refuse(f"`groups` is {count!r}, expected a divisor of {x.shape[1]} channels", "pass a number of equal groups")
    assert isinstance(count, int)
    return Groups(count)


def epsilon(name: str, x: Any, value: float) -> Any:  # noqa: ANN401 reason: a user's
    """The number as a tensor. Raises ArgusError as `constant`, and E401 for one below 0 or not finite."""
    device = on_device(name, x)
    if not isfinite(value) or value < 0:
        refuser(name)(f"`eps` is {value:g}, expected a finite number that is not below 0", "pass one such as 1e-5")
    return constant(name, value, 1, "float32", device)


# -- kernels on the device -----------------------------------------------------------------------------------


_READY: dict[tuple[object, ...], Product] = {}
"""Calls by what equal ones share: all properties of the operands but their addresses."""


def clear_cache() -> None:
    """Drop the loaded kernels, and the constants on devices."""
    _READY.clear()
    load_candidate.cache_clear()
    constant.cache_clear()


def _call_key(of: Operator, given: Sequence[Any], unproved: str, groups: Groups | None) -> tuple[object, ...]:
    """All properties of a call but the operands' addresses, as a key; empty where an operand is not a tensor."""
    try:
        parts = [part for each in given for part in (each.shape, each.stride(), each.dtype, each.device)]
    except (AttributeError, RuntimeError):
        return ()
    return (of.family or of.name, *parts, unproved, groups)
