"""What is fetched into the second-level cache while the launch ahead ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argus.emit.cuda import ahead
from argus.emit.cuda.text import cuda_text
from argus.kernels.gemm import gemm
from argus.kernels.hopper import Hopper
from argus.kernels.skinny import Skinny
from argus.kernels.split import Split
from argus.loader import load

CORPUS = Path(__file__).parent.parent / "corpus"
BEFORE = re.compile(r"// load, ahead\n(.*?)await_launch_before", re.DOTALL)


MADE = (Hopper(stages=3), Hopper(cluster=(2, 1), group=8), Split(stages=5), Skinny(bm=16, bk=256, stages=5))


@pytest.mark.parametrize("config", MADE)
def test_as_many_boxes_as_slots_are_fetched_by_a_thread_that_does_not_load(config: Hopper | Skinny | Split) -> None:
    text = cuda_text(gemm.instance(config, "ahead")).text

    found = BEFORE.search(text)
    assert found is not None
    assert f"k < 0 + {config.stages}" in found[1]
    assert found[1].count("prefetch_box_2d(&") == len(re.findall(r"tma_load_2d\w*\([^;]*?&(\w+),", text))
    assert "if (thread == 32) {  // load, ahead" in text
    assert "tma_load" not in found[1]


def test_places_that_memory_tells_are_not_known_ahead() -> None:
    made = next(iter(load(str(CORPUS / "traced" / "grouped_gemm.py")))).trace()

    assert list(ahead.helpers(made)) == []
