"""An element that a thread reads for several registers is loaded once; quotients of elements stay with them."""

from __future__ import annotations

from re import findall

import pytest

from argus.emit.cuda.text import cuda_text
from argus.kernels.rows.group_norm import group_norm_bf16
from argus.kernels.schedules.rows import Rows


@pytest.mark.parametrize("held", [True, False])
def test_the_weight_of_a_channel_is_loaded_once_for_a_vector(held: bool) -> None:
    text = cuda_text(group_norm_bf16.instance(Rows(64, 1, 8, 2, held), "small")).text
    assert text.count("&W_[") == 2
    copied = findall(r"load_b16\(&(\w+)\[(\d+)\], &\1\[(\d+)\]\);", text)
    assert len(copied) == 2 * 14
    assert {(int(to) // 8, int(first)) for _, to, first in copied} == {(0, 0), (1, 8)}


def test_an_element_of_each_register_is_loaded_for_it() -> None:
    text = cuda_text(group_norm_bf16.instance(Rows(64, 1, 1, 2, held=False), "small")).text
    assert text.count("&W_[") == 2
