"""The templates that nests are tried with, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from math import prod
from typing import Any, cast

from attrs import evolve, frozen

from argus.core.walk import symbols
from argus.kernels.config_names import name_of
from argus.kernels.nests import (
    convolution_costs,
    direct,
    direct_tiles,
    long_rows,
    places,
    pointwise,
    reductions,
    scans,
    windows,
)
from argus.kernels.nests.contraction import FoundConvolution, convolution_and_work, convolution_program
from argus.kernels.nests.fragments import STORED
from argus.kernels.nests.made import Schedule, has_own_integers, template
from argus.kernels.nests.products import product
from argus.kernels.schedules.shifted_tiles import shifted_for
from argus.language import ProgramTemplate, Template
from argus.nests.affine import computed
from argus.nests.axes_of_one import whole_convolution
from argus.nests.canonical import MOST_AXES, Canonical
from argus.nests.convolution import convolution_of, with_joined_rows
from argus.nests.convolution_forms import convolution_form
from argus.nests.joined_axes import with_joined_axes
from argus.nests.nest import Apply, Axis, Nest, Read, Reduce, Select, TensorType
from argus.nests.products import product_of_matrices
from argus.nests.rewrite import reads, symbols_of
from argus.nests.rewrite import reductions as terms
from argus.nests.text import canonical_text
from argus.ops.call_path import Candidate, Traced
from argus.torch.choice_of_products import configs_of
from argus.torch.precision import products_of_convolutions

Plan = Callable[[Canonical, Mapping[str, int]], Any]
"""The configuration of a template for a canonical form at some sizes, or several to try in order; None where the
template is for others.
"""


@frozen
class Family:
    """A template: the schedule of a kernel, or a program of several.

    most_axes: of the domains that it takes. join: axes that all reads run through become one.
    shares: it computes a reduction once for all elements of the output that it is for. multiplies: it is for many
    products, with work on their sums. reduces: it is for nests with reductions, or for those without. whole: the nest
    with the axes of one element that the template runs through; None where it has them, and for other nests. rewritten:
    the nest in a form that the template computes faster, with the types of what it reads. before: a template for some
    of the same forms and sizes, which is tried first.
    """

    name: str
    plan: Plan
    schedule: Schedule | None
    most_axes: int = MOST_AXES
    join: bool = True
    shares: bool = False
    multiplies: bool = False
    reduces: bool = True
    program: Callable[[Canonical, Any, str], Template | ProgramTemplate] | None = None
    whole: Callable[[Nest, Mapping[str, TensorType]], Nest | None] | None = None
    rewritten: Callable[[Nest, Mapping[str, TensorType]], tuple[Nest, Mapping[str, TensorType]]] | None = None
    before: Family | None = None


def _of_reductions(form: Canonical, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 reason: its own type
    return None if _sums_many_products(form, sizes) else reductions.config_for(form, sizes)


def _of_windows(form: Canonical, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 reason: its own type
    return None if _sums_many_products(form, sizes) else windows.config_for(form, sizes)


def _sums_many_products(form: Canonical, sizes: Mapping[str, int]) -> bool:
    """Whether a nest sums many products of a window and filters, which is for matrix units."""
    for term in terms(*(nest.body for nest in form.nests)):
        if isinstance(term.body, Apply) and term.body.op == "mul":
            factors = [each.then if isinstance(each, Select) else each for each in term.body.args]
            padded = any(isinstance(each, Read) and each.outside is not None for each in factors)
            if (
                padded
                and prod(int(computed(axis.extent, sizes)) for axis in term.axes if _is_known(axis, sizes)) > _FEW
            ):
                return True
    return False


def _is_known(axis: Axis, sizes: Mapping[str, int]) -> bool:
    """Whether the extent is one of sizes alone, not of a coordinate as that of a prefix."""
    return all(symbol.name in sizes for symbol in symbols(axis.extent))


_FEW = 64
"""Products that a thread sums by itself."""


def _as_convolution(form: Canonical) -> FoundConvolution | None:
    """The convolution from whose elements a nest computes its own, each from one."""
    types = {each.type.name: each.type for each in form.parameters}
    nest, sums = form.nests[0], terms(*(nest.body for nest in form.nests))
    found = convolution_of(evolve(nest, body=sums[0]), types) if len(form.nests) == len(sums) == 1 else None
    if found is None:
        return None
    conv, *operands = found
    if conv.groups > 1 or any(axis.classes > 1 and axis.dilation > 1 for axis in conv.axes):
        return None  # those are not proved
    if sums[0] is not nest.body and (has_own_integers(form) or not _is_of_own_elements(nest, sums[0])):
        return None
    return FoundConvolution(conv, sums[0], [types[each] for each in (*operands, nest.output)])


def _is_of_own_elements(nest: Nest, sums: Reduce) -> bool:
    """Whether what is read beside sums is read at the element's own coordinates."""
    own = {axis.index for axis in nest.domain}
    beside = _beside(nest, sums)
    return all(each.outside is None and {place for place in each.index if symbols(place)} <= own for each in beside)


def _is_read_beside(nest: Nest, sums: Reduce) -> bool:
    """Whether a tensor is read beside sums that has an element for each place of a channel."""
    *_, last = nest.domain
    return any(last.index in each.index for each in _beside(nest, sums))


def _beside(nest: Nest, sums: Reduce) -> list[Read]:
    inner = {axis.symbol for axis in sums.axes}
    return [each for each in reads(nest.body) if not symbols_of(each) & inner]


_TILES = ((256, 8), (128, 8), (256, 1), (128, 1))
"""Pixels and rows of a tile at most, in the order in which they are tried.

More work on sums is proved where there are fewer parts that it is done on, and tiles of one row have shorter proofs.
"""


def _of_convolutions(form: Canonical, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 reason: its own type
    found = _as_convolution(form)
    if found is None or _is_for_threads(found, sizes):
        return None
    conv, (_, filters, output), plain = found.conv, found.types, _without_work(form, found.sums)
    wanted = products_of_convolutions()
    if not convolution_costs.is_for_matrix_units(plain, sizes, wanted):
        return None
    if not convolution_costs.is_light(form.nests[0].body, found.sums):
        return None
    products = wanted if filters.dtype == "f32" else 1
    together = convolution_costs.with_all_classes(plain, sizes, products) if products > 1 else None
    if together is not None or (conv.classes > 1 and plain is not form):
        return together  # where each class has tiles of its own, there is no work on sums
    channels, outputs = _channels(found, sizes)
    count, _, *places = (int(computed(extent, sizes)) for extent in output.shape)
    found = (
        shifted_for(conv, channels, outputs, count, places, products, most_rows=rows, most_pixels=pixels)
        for pixels, rows in _TILES
    )
    return tuple(dict.fromkeys(found))


def _of_direct(form: Canonical, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 reason: its own type
    found = _as_convolution(form)
    apart = found is not None and found.conv.classes > 1 and found.sums is not form.nests[0].body
    if found is not None and not apart and _is_for_threads(found, sizes):
        return None
    nest, sums = form.nests[0], terms(*(each.body for each in form.nests))
    if len(form.nests) == len(sums) == 1 and sums[0] is not nest.body:
        return _of_direct_with_work(form, sums[0], sizes)
    return direct_tiles.config_for(form, sizes)


def _of_direct_with_work(form: Canonical, sums: Reduce, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 reason: its own type
    """The same with work on the sums, which reads no tensor with an element for each place: registers are for the sums.

    None where the convolution alone is for matrix units, or its rows may be joined.
    """
    nest, plain = form.nests[0], _without_work(form, sums)
    whole = convolution_form(plain.nests[0], {each.type.name: each.type for each in plain.parameters})
    if whole is None or any(each.type.dtype != "f32" for each in form.parameters):
        return None
    if _is_read_beside(nest, sums) or not _is_of_own_elements(nest, sums):
        return None
    if len(whole.conv.axes) > 1 and whole.conv.axes[-1].taps == 1:
        return None
    heavy = convolution_costs.is_for_matrix_units(plain, sizes, products_of_convolutions())
    return None if heavy else direct_tiles.config_for(plain, sizes)


def _channels(found: FoundConvolution, sizes: Mapping[str, int]) -> tuple[int, int]:
    """Of inputs and of outputs."""
    one, other = (int(computed(extent, sizes)) for extent in found.types[1].shape[:2])
    return (one, other) if found.conv.transposed else (other, one)


def _is_for_threads(found: FoundConvolution, sizes: Mapping[str, int]) -> bool:
    """Whether a thread sums each element: of few products, of one channel or for one, so that tiles share little."""
    channels, outputs = _channels(found, sizes)
    return 1 in (channels, outputs) and channels * prod(axis.taps for axis in found.conv.axes) <= _FEW


def _without_work(form: Canonical, sums: Reduce) -> Canonical:
    """The form of the sums of a convolution alone."""
    if sums is form.nests[0].body:
        return form
    used = {form.nests[0].output, *(each.tensor for each in reads(sums))}
    parameters = tuple(each for each in form.parameters if each.type.name in used)
    return evolve(form, nests=(evolve(form.nests[0], body=sums),), parameters=parameters)


def _convolution(form: Canonical, config: Any, name: str) -> ProgramTemplate:  # noqa: ANN401 reason: its own type
    found = _as_convolution(form)
    assert found is not None
    if found.sums is not form.nests[0].body:
        return convolution_and_work(form, found, config, name)
    return convolution_program(found.conv, form.nests[0], found.types, {"": config}, name)


def _of_products(form: Canonical, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 reason: its own type
    found = product_of_matrices(form)
    return None if found is None else configs_of(form, found, sizes) or None


LONG_ROWS = Family("long_rows", long_rows.config_for, long_rows.long_rows)
FAMILIES: tuple[Family, ...] = (
    Family("products", _of_products, None, shares=True, multiplies=True, program=product),
    Family(
        "convolutions",
        _of_convolutions,
        None,
        most_axes=5,
        join=False,
        shares=True,
        multiplies=True,
        program=_convolution,
        whole=whole_convolution,
        rewritten=with_joined_axes,
    ),
    Family(
        "direct",
        _of_direct,
        direct.direct,
        most_axes=6,
        join=False,
        shares=True,
        multiplies=True,
        whole=whole_convolution,
        rewritten=with_joined_rows,
    ),
    Family("pointwise", pointwise.config_for, pointwise.pointwise, reduces=False),
    Family("windows", _of_windows, windows.windows, most_axes=5, join=False),
    Family("scans", scans.config_for, scans.scans),
    Family("places", places.config_for, places.places),
    Family("reductions", _of_reductions, reductions.reduced, shares=True, before=LONG_ROWS),
)


def candidates(family: Family, form: Canonical, sizes: Mapping[str, int]) -> tuple[Candidate, ...]:
    """The kernels to try at these sizes; none where the template is for other nests."""
    if any(each.type.dtype not in STORED for each in form.parameters):
        return ()
    first = () if family.before is None else candidates(family.before, form, sizes)
    found = (*first, *(candidate(family, form, each) for each in configurations(family, form, sizes)))
    return tuple(each for each in found if (each.family, each.config) not in NOT_PROVED) or found[-1:]


def configurations(family: Family, form: Canonical, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """What a family plans for a form at these sizes, the first choice first; none where it has no kernel."""
    planned = family.plan(form, sizes)
    each_one: tuple[Any, ...] = cast(Any, planned) if isinstance(planned, tuple) else (planned,)
    return tuple(each for each in each_one if each is not None)


def candidate(family: Family, form: Canonical, config: Any) -> Candidate:  # noqa: ANN401 reason: each family's own
    """The kernel of a form by a family, on demand."""
    digest = sha256(canonical_text(form).encode()).hexdigest()[:10]
    name, chosen = f"{family.name}_{digest}", name_of(config)

    def traced() -> Traced:
        if (name, chosen) not in _TRACED:
            _TRACED[name, chosen] = _trace(family, form, config, name)
        return _TRACED[name, chosen]

    return Candidate(name, chosen, traced)


NOT_PROVED: set[tuple[str, str]] = set()
"""Kernels that are known not to be proved, by family and configuration: others are used where there are such."""
_TRACED: dict[tuple[str, str], Traced] = {}
"""Kernels by the names of form and configuration."""


def _trace(family: Family, form: Canonical, config: Any, name: str) -> Traced:  # noqa: ANN401 reason: each family's own
    if family.program is not None:
        return family.program(form, config, name).trace(""), family.program.__module__
    assert family.schedule is not None
    return template(form, family.schedule, config, name).trace(), family.schedule.__module__
