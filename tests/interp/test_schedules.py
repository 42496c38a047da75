"""No false alarms on correct kernels: a short version of benchmarks/schedules.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.ir import Kernel
from argus.interp.search.schedule import directed
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
        assert found.directed == (2 if kernel.sizes else 1) * len(directed(kernel)), name


def test_an_alarm_is_counted() -> None:
    found = count(gemm(Config(2, fault="early release")), sizes=4, random=0, seed=0)
    assert "I10" in {alarm.violation.code for alarm in found.alarms}
