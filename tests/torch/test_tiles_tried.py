"""A convolution whose first tiles are not proved has others on matrix units, as long as proofs may take."""

from __future__ import annotations

from itertools import count

import pytest

from argus.core import algebra
from argus.core.index import Index
from argus.kernels.nests import convolution_costs
from argus.nests.affine import computed
from argus.nests.convolution import Convolution, Taps, convolution_nest
from argus.nests.nest import Nest, TensorType
from argus.ops.call_path import Candidate
from argus.torch import families, planner
from argus.torch.compiled import form_of
from argus.torch.families import FAMILIES, candidates
from argus.torch.planner import Planner
from argus.torch.report import KernelEntry


def _extents(*given: int) -> tuple[Index, ...]:
    return tuple(map(algebra.const, given))


X, F = TensorType("X", _extents(32, 64, 14, 14), "f32"), TensorType("F", _extents(256, 64, 3, 3), "f32")
Y = TensorType("Y", _extents(32, 256, 14, 14), "f32")
TYPES = {each.name: each for each in (X, F, Y)}


@pytest.fixture(name="nest")
def convolution_of_small_images(monkeypatch: pytest.MonkeyPatch) -> Nest:
    """A nest for matrix units of which nothing is known to be proved or not."""
    monkeypatch.setattr(convolution_costs, "is_for_matrix_units", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(planner, "_PROOFS", {})
    for module in (planner, families):
        monkeypatch.setattr(module, "NOT_PROVED", set[tuple[str, str]]())
    return convolution_nest(Convolution((Taps(3, pad=1), Taps(3, pad=1))), X, F, Y)


def _tried(monkeypatch: pytest.MonkeyPatch, seconds: float, proved: str = "") -> tuple[Planner, list[str]]:
    """A planner, and the names of the kernels that it asks for, each in so many seconds.

    proved: what is not in the configurations of convolutions that are proved; if empty, no convolution is.
    """
    asked: list[str] = []
    clock = count(step=seconds)

    def proof(candidate: Candidate, *_: object) -> KernelEntry | str:
        asked.append(f"{candidate.family} {candidate.config}")
        if candidate.family.startswith("convolutions") and (not proved or proved in candidate.config):
            return "unknown"
        return KernelEntry(candidate.family, candidate.config, "", "proved", (), 0.0)

    monkeypatch.setattr(planner, "_proof", proof)
    monkeypatch.setattr(planner, "thread_time", lambda: next(clock))
    return Planner({}), asked


def test_tiles_of_one_row_are_among_those_that_are_tried(nest: Nest) -> None:
    family = next(each for each in FAMILIES if each.name == "convolutions")

    form = form_of((nest,), TYPES, family, {})
    sizes = {name: int(computed(extent, {})) for name, extent in form.sizes.items()}

    found = [each.config for each in candidates(family, form, sizes)]

    assert len(found) == len(set(found)) > 1
    assert "rows" in found[0]
    assert "rows" not in found[-1]


def test_tiles_that_are_not_proved_give_way_to_others(nest: Nest, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, asked = _tried(monkeypatch, seconds=1.0, proved="rows")

    planned._kernel((nest,), TYPES)  # pyright: ignore[reportPrivateUsage]  # the one place where a nest's kernel is chosen

    chosen = planned.kernels["Y"]
    assert chosen.name.startswith("convolutions")
    assert "rows" not in chosen.config
    assert len(asked) > 1
    assert all("rows" in each for each in asked[:-1])


def test_other_tiles_are_tried_as_long_as_a_nest_s_proofs_may_take(nest: Nest, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = planner._MOST_SECONDS  # pyright: ignore[reportPrivateUsage]
    planned, asked = _tried(monkeypatch, seconds=seconds)

    planned._kernel((nest,), TYPES)  # pyright: ignore[reportPrivateUsage]

    assert [each.partition("_")[0] for each in asked] == ["convolutions", "convolutions", "direct"]
    assert planned.kernels["Y"].name.startswith("direct")
