"""Edits that make wrong twins of shipped kernels still find their text: what follows from them is proved nightly."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from tests.kernels import test_attention_backward as backward
from tests.kernels import test_attention_cdna3 as cdna3
from tests.kernels import test_attention_fp8 as fp8
from tests.kernels import test_packed_attention as packed
from tests.kernels import test_packed_attention_backward as packed_backward
from tests.kernels.attention_twins import FORWARD
from tests.kernels.twins import Edit

Row = tuple[str, ModuleType, Edit]

ROWS: list[Row] = [
    *((name, each.module, each.edit) for name, each in FORWARD.items()),
    *((name, *each) for name, each in packed.EDITS.items()),
    *(
        (name, module, edit)
        for edits in (backward.EDITS, cdna3.EDITS, fp8.EDITS, packed_backward.EDITS)
        for name, (_, module, edit) in edits.items()
    ),
]


@pytest.mark.parametrize(
    "module", {module.__name__: module for _, module, _ in ROWS}.values(), ids=lambda m: m.__name__
)
def test_each_edit_finds_its_text_once(module: ModuleType) -> None:
    text = inspect.getsource(module)
    assert [(name, old) for name, of, (old, _) in ROWS if of is module and text.count(old) != 1] == []
