"""`argus.grouped_matmul` without a GPU: operands, tiles, and what is launched."""

from __future__ import annotations

import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

import argus
from argus.core.diagnostic import ArgusError
from argus.ops.call_path import Plan
from argus.ops.choice import select_grouped, select_grouped_rows
from tests.ops.fake_torch import Matrix, aligned, gpu

module = import_module("argus.ops.grouped_matmul")
grouped: Any = argus.grouped_matmul
Launched = list[tuple[Plan, tuple[Any, ...]]]


def tensor(*shape: int, dtype: str = "torch.bfloat16") -> Matrix:
    return Matrix(aligned(np.zeros(shape, np.int32 if dtype == "torch.int32" else bfloat16)), dtype)


def operands(rows: int = 300, experts: int = 3, columns: int = 264, depth: int = 72) -> dict[str, Any]:
    offsets = tensor(experts + 1, dtype="torch.int32")
    return {"a": tensor(rows, depth), "b": tensor(experts, columns, depth).mT, "offsets": offsets}


def scaled() -> dict[str, Any]:
    """Operands of 8 bits with their scales."""
    a, b = (tensor(*shape, dtype="torch.float8_e4m3fn") for shape in ((300, 272), (3, 264, 272)))
    of_a, of_b = (tensor(*shape, dtype="torch.float32") for shape in ((3, 300), (3, 3, 3)))
    return {"a": a, "b": b.mT, "scale_a": of_a.mT, "scale_b": of_b.mT}


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Launched:
    """The plans and operands of all launches, of which none is made."""
    made: Launched = []

    def launch(plan: Plan, given: tuple[Any, ...], unproved: str) -> tuple[Matrix, None]:
        assert unproved == "refuse"
        made.append((plan, given))
        return tensor(*plan.results[0][0]), None

    def tiles(offsets: Matrix, rows: int, height: int) -> tuple[Matrix, Matrix]:
        count = rows // height + offsets.shape[0] - 1
        return tensor(count + 1, dtype="torch.int32"), tensor(count, dtype="torch.int32")

    cuda = SimpleNamespace(get_device_properties=gpu(9))
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(cuda=cuda, is_grad_enabled=lambda: True, bfloat16="torch.bfloat16")
    )
    monkeypatch.setattr(module, "launch", launch)
    monkeypatch.setattr(module, "tiles_of", tiles)
    return made


def test_operands_are_read_in_place_and_integers_are_checked_on_the_gpu(plans: Launched) -> None:
    given = operands()
    assert grouped(**given).shape == (300, 264)
    ((plan, passed),) = plans
    assert dict(plan.sizes) == {"M": 300, "K": 72, "E": 3, "N": 264, "R": 4, "S": 6, "T": 5}
    assert [(each.family, each.config) for each in plan.candidates] == [("grouped_nt", "by_rows")]
    assert (plan.promises, plan.strided) == ("stop", ("A", "B"))
    named = plan.named(*passed, tensor(300, 264))
    assert {name: each.shape for name, each in named.items()} == {
        "A": (300, 72),
        "B": (3, 264, 72),
        "starts": (4,),
        "tile_starts": (6,),
        "tile_experts": (5,),
        "C": (300, 264),
    }
    assert named["starts"] is given["offsets"]
    assert named["B"].data_ptr() == given["b"].data_ptr()
    (candidate,) = plan.candidates
    traced, home = candidate.traced()
    assert (traced.name, home) == ("grouped_nt_by_rows", "argus.kernels.grouped")


def test_row_major_matrices_have_a_kernel_of_their_own(plans: Launched) -> None:
    given = operands() | {"b": tensor(3, 72, 264)}
    grouped(**given, promises="fetch", config="columns_128")
    ((plan, passed),) = plans
    assert [(each.family, each.config) for each in plan.candidates] == [("grouped_nn", "columns_128")]
    assert plan.promises == "fetch"
    named = plan.named(*passed, tensor(300, 264))
    assert named["B"].shape == (3, 72, 264)
    assert named["B"].data_ptr() == given["b"].data_ptr()


def test_what_has_no_aligned_rows_is_copied(plans: Launched) -> None:
    copies: list[str] = []
    given = operands()
    given["a"] = evolve(given["a"], shift=2, copies=copies)
    grouped(**given)
    plans[0][0].named(*plans[0][1], tensor(300, 264))
    assert copies == ["clone"]


@pytest.mark.parametrize("sizes", [{"rows": 0}, {"columns": 0}, {"depth": 0}])
def test_without_a_product_nothing_is_launched(plans: Launched, sizes: dict[str, int]) -> None:
    out = grouped(**operands(**sizes))
    assert not plans
    assert out.shape == (sizes.get("rows", 300), sizes.get("columns", 264))
    assert bool((out.array == 0).all())


def test_few_rows_need_no_list_of_tiles(plans: Launched) -> None:
    given = operands(rows=12)
    assert grouped(**given).shape == (12, 264)
    ((plan, passed),) = plans
    assert dict(plan.sizes) == {"M": 12, "K": 72, "E": 3, "N": 264, "R": 4}
    assert [(each.family, each.config) for each in plan.candidates] == [("packed_nt", "rows_8")]
    named = plan.named(*passed, tensor(12, 264))
    assert {name: each.shape for name, each in named.items()} == {
        "A": (12, 72),
        "B": (3, 264, 72),
        "starts": (4,),
        "C": (12, 264),
    }
    candidate = plan.candidates[0]
    traced, home = candidate.traced()
    assert (traced.name, home) == ("packed_nt_rows_8", "argus.kernels.grouped_few")


def masked(rows: int = 40, depth: int = 72, experts: int = 3) -> dict[str, Any]:
    counts = tensor(experts, dtype="torch.int32")
    return {"a": tensor(experts, rows, depth), "b": tensor(experts, 264, depth).mT, "counts": counts}


@pytest.mark.parametrize(("rows", "config"), [(3, "rows_8"), (40, "rows_16"), (100, "rows_32"), (500, "rows_64")])
def test_counts_are_of_rows_of_each_expert(plans: Launched, rows: int, config: str) -> None:
    given = masked(rows)
    assert grouped(**given).shape == (3, rows, 264)
    ((plan, passed),) = plans
    assert dict(plan.sizes) == {"R": rows, "K": 72, "E": 3, "N": 264}
    assert [(each.family, each.config) for each in plan.candidates] == [("masked_nt", config)]
    assert (plan.promises, plan.strided) == ("stop", ("A", "B"))
    named = plan.named(*passed, tensor(3, rows, 264))
    assert list(named) == ["A", "B", "counts", "C"]
    assert named["counts"] is given["counts"]
    assert named["A"].data_ptr() == given["a"].data_ptr()


def test_counts_and_scales_of_blocks(plans: Launched) -> None:
    a, b = (tensor(*shape, dtype="torch.float8_e4m3fn") for shape in ((3, 40, 272), (3, 264, 272)))
    of_a, of_b = (tensor(*shape, dtype="torch.float32") for shape in ((3, 3, 40), (3, 3, 3)))
    given = {"a": a, "b": b.mT, "counts": tensor(3, dtype="torch.int32"), "scale_a": of_a.mT, "scale_b": of_b.mT}
    assert grouped(**given).shape == (3, 40, 264)
    ((plan, passed),) = plans
    assert [(each.family, each.config) for each in plan.candidates] == [("masked_fp8_blocks", "rows_16")]
    named = plan.named(*passed, tensor(3, 40, 264))
    assert {name: named[name].shape for name in ("A", "B", "scale_a", "scale_b", "counts", "C")} == {
        "A": (3, 40, 272),
        "B": (3, 264, 272),
        "scale_a": (3, 3, 40),
        "scale_b": (3, 3, 3),
        "counts": (3,),
        "C": (3, 40, 264),
    }


def test_the_schedule_depends_on_columns_and_rows_of_an_expert() -> None:
    given = ((8192, 8, 14336), (32768, 256, 4096), (8192, 8, 128), (1000, 8, 128))
    assert [select_grouped(*each, blocks=False) for each in given] == [
        "columns_256",
        "by_rows",
        "columns_128",
        "columns_128",
    ]
    assert [select_grouped(*each, blocks=True) for each in given] == [
        "columns_192",
        "columns_192",
        "super_tiled",
        "by_rows",
    ]


def test_operands_of_8_bits_have_scales_of_blocks(plans: Launched) -> None:
    given = operands(depth=272) | scaled()
    assert grouped(**given).shape == (300, 264)
    ((plan, passed),) = plans
    assert plan.results == (((300, 264), "torch.bfloat16"),)
    assert [(each.family, each.config) for each in plan.candidates] == [("grouped_fp8_blocks", "columns_192")]
    assert dict(plan.sizes).items() >= {"KB": 3, "NB": 3, "T": 5}.items()
    named = plan.named(*passed, tensor(300, 264))
    assert {name: named[name].shape for name in ("A", "B", "scale_a", "scale_b", "C")} == {
        "A": (300, 272),
        "B": (3, 264, 272),
        "scale_a": (3, 300),
        "scale_b": (3, 3, 3),
        "C": (300, 264),
    }


@pytest.mark.parametrize(
    ("rows", "config"), [(8, "rows_8"), (48, "rows_16"), (200, "rows_16"), (384, "rows_32"), (1000, None)]
)
def test_few_rows_of_an_expert_have_low_tiles(rows: int, config: str) -> None:
    assert select_grouped(rows, 64, 2816, blocks=False) == (config or "by_rows")
    assert select_grouped(rows, 64, 2816, blocks=True) == ("rows_16" if config else "columns_192")


def test_scales_may_be_of_rows_and_columns(plans: Launched) -> None:
    of_a, of_b = tensor(300, 1, dtype="torch.float32"), tensor(3, 1, 264, dtype="torch.float32")
    grouped(**(operands(depth=272) | scaled() | {"scale_a": of_a, "scale_b": of_b}))
    ((plan, passed),) = plans
    assert plan.results == (((300, 264), "torch.bfloat16"),)
    assert [(each.family, each.config) for each in plan.candidates] == [("grouped_fp8_rows", "by_rows")]
    assert not {"KB", "NB"} & dict(plan.sizes).keys()
    named = plan.named(*passed, tensor(300, 264))
    assert (named["scale_a"].shape, named["scale_b"].shape) == ((300,), (3, 264))
    assert [select_grouped_rows(rows, 8, n, blocks=False) for rows, n in ((8192, 264), (100, 264), (100, 128))] == [
        "columns_256",
        "by_rows",
        "columns_128",
    ]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no tensor": ({"a": 3}, "`a` is not a torch tensor"),
    "another type": ({"a": tensor(300, 72, dtype="torch.float32")}, "expects elements of type"),
    "unlike types": ({"a": tensor(300, 72, dtype="torch.float16")}, "convert one|elements of type"),
    "one matrix": ({"b": tensor(72, 264)}, "`b` expects 3 axes, found 2"),
    "another depth": ({"a": tensor(300, 64)}, "`b` expects 64 rows"),
    "a gradient of 8 bits": (scaled() | {"b": evolve(scaled()["b"], requires_grad=True)}, "requires a gradient"),
    "offsets in 64 bits": ({"offsets": tensor(4, dtype="torch.int64")}, "expects torch.int32"),
    "no experts": ({"offsets": tensor(1, dtype="torch.int32")}, "expected one axis of at least 2"),
    "too few offsets": ({"offsets": tensor(3, dtype="torch.int32")}, "3 offsets for 3 experts"),
    "8 bits without scales": (scaled() | {"scale_a": None, "scale_b": None}, "expects elements of type torch.bfloat16"),
    "scales of one": (scaled() | {"scale_b": None}, "scales of one operand alone"),
    "scales of other blocks": (scaled() | {"scale_a": tensor(300, 2, dtype="torch.float32")}, "expected \\(300, 3\\)"),
    "scales of rows and blocks": (scaled() | {"scale_a": tensor(300, 1, dtype="torch.float32")}, "\\(3, 1, 264\\)"),
    "scales in bf16": (scaled() | {"scale_b": tensor(3, 3, 3)}, "`scale_b` expects elements of type torch.float32"),
    "scales of 16 bits' elements": ({"scale_a": tensor(300, 1), "scale_b": tensor(3, 1, 3)}, "torch.float8_e4m3fn"),
    "no such schedule": ({"config": "wide"}, "there is no schedule `wide`"),
    "offsets and counts": ({"counts": tensor(3, dtype="torch.int32")}, "expects 3 axes, found 2"),
    "neither offsets nor counts": ({"offsets": None}, "or neither"),
    "counts of other experts": (
        masked() | {"offsets": None, "counts": tensor(4, dtype="torch.int32")},
        "4 counts and 3 matrices of rows for 3 experts",
    ),
    "both": (masked(), "both `offsets` and `counts`"),
    "counts in 64 bits": (
        masked() | {"offsets": None, "counts": tensor(3, dtype="torch.int64")},
        "`counts` expects torch.int32",
    ),
    "a schedule of lists with counts": (masked() | {"offsets": None, "config": "by_rows"}, "no schedule `by_rows`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_operands_are_refused(plans: Launched, name: str) -> None:
    changed, said = WRONG[name]
    with pytest.raises(ArgusError, match=said) as caught:
        grouped(**{**operands(), **changed})
    assert caught.value.diagnostic.code == "E401"
    assert not plans
