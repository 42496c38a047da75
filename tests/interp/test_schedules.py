"""No false alarms on correct kernels: a short version of benchmarks/schedules.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.index import Read
from argus.core.ir import Kernel
from argus.core.walk import topological
from argus.interp.run import promised_integers
from argus.interp.search.schedule import directed
from argus.verifier.loader import load
from benchmarks.schedules import CORPUS, corpus, count, right_kernels
from tests.interp.rings import Config, gemm

PARTS = 48


def right(part: int = 0, parts: int = 1) -> dict[str, Kernel]:
    """The kernels with mbarriers of a part of the corpus, by file."""
    return {Path(kernel.span.frames[0].file).stem: kernel for kernel in right_kernels(corpus()[part::parts])}


@pytest.mark.nightly
def test_the_corpus_has_right_kernels_of_hopper() -> None:
    names = right().keys()
    assert {"barriers_by_hand", "two_consumers", "tiles_in_turn", "stores_of_boxes", "one_warpgroup"} <= names
    assert all(any((CORPUS / kind / f"{name}.py").exists() for kind in ("proved", "unknown")) for name in names)


@pytest.mark.share(192)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_schedule_alarms_of_a_right_kernel(part: int) -> None:
    for name, kernel in right(part, PARTS).items():
        found = count(kernel, sizes=2, random=20, seed=7)
        assert found.alarms == (), name
        assert found.random == 20, name
        sizes = found.directed // len(directed(kernel))  # promises that fit each other may leave one of them
        assert sizes in ({1, 2} if _promises_lists(kernel) else {2 if kernel.sizes else 1}), name
        assert found.directed == sizes * len(directed(kernel)), name


def _promises_lists(kernel: Kernel) -> bool:
    """Whether a promise about a tensor reads another one."""
    promises = ((buffer, topological([buffer.promise])) for buffer in kernel.parameters)
    return any(isinstance(node, Read) and node.array != buffer.name for buffer, nodes in promises for node in nodes)


def test_lists_that_fit_each_other_are_found_whatever_the_seed() -> None:
    """Rows of experts, tiles of rows and a tile's expert: of independent numbers, one draw in twenty is consistent."""
    (exported,) = load(str(CORPUS / "proved" / "formula_scaled_by_expert.py"))
    kernel, sizes = exported.trace(), {"T": 64, "E": 3, "S": 4, "Q": 2, "P": 1}
    for seed in range(8):
        found = promised_integers(kernel, sizes, seed)
        (owner,), starts = found["owner"], found["starts"]
        assert starts[owner] == 0
        assert starts[owner + 1] == 64


@pytest.mark.share(3)
def test_an_alarm_is_counted() -> None:
    found = count(gemm(Config(2, fault="early release")), sizes=4, random=0, seed=0)
    assert "I10" in {alarm.violation.code for alarm in found.alarms}
