import json
from math import isclose
from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.policy.technique import Basis, Lineage
from argus.search.designs.ablation import UNKNOWN_EFFECT, Table, ablation_pairs, estimate_effect, representative_rows
from argus.search.designs.time_tables import table_rows, times_of_shape
from argus.search.techniques import TRANSFORMATIONS

TIMES = {"cooperative": 200.0, "super_tiled": 160.0, "hopper_group16": 250.0, "clustered": 100.0, "cuBLAS": 90.0}


def table(basis: Basis = "time", **times: float) -> Table:
    return Table("measure", "sm_90a", "1x2x3", basis, {**TIMES, **times})


def row(ratio: float, basis: Basis = "time", target: str = "sm_90a") -> Lineage:
    return Lineage("measure", target, "1x2x3", "a", "b", ratio, basis)


def test_pairs_differ_in_one_technique() -> None:
    found = {
        (each.without, each.design): each.ratio for each in ablation_pairs(TRANSFORMATIONS["grouped-order"], [table()])
    }

    assert found == {("cooperative", "super_tiled"): 1.25, ("cooperative", "hopper_group16"): 0.8}


def test_a_model_that_does_not_see_a_technique_shows_nothing() -> None:
    blind = table("static model", super_tiled=200.0)
    seen = [each.design for each in ablation_pairs(TRANSFORMATIONS["grouped-order"], [blind])]

    assert seen == ["hopper_group16"]
    assert len(list(ablation_pairs(TRANSFORMATIONS["grouped-order"], [table(super_tiled=200.0)]))) == 2


def test_designs_of_another_target_are_left_out() -> None:
    other = Table("measure", "gfx942", "1x2x3", "time", TIMES)

    assert list(ablation_pairs(TRANSFORMATIONS["grouped-order"], [other])) == []


def test_an_effect_is_estimated_from_experiments() -> None:
    found = estimate_effect([row(2.0), row(0.5), row(4.0, "static model")])

    assert found.basis == "time"
    assert isclose(found.likely, 1.0)
    assert 0.5 <= found.low < found.likely < found.high <= 2.0
    assert estimate_effect([]) == UNKNOWN_EFFECT
    assert estimate_effect([row(1.5, "static model")]).basis == "static model"


def test_the_extremes_of_each_target_are_selected() -> None:
    ratios = (1.0, 3.0, 2.0, 0.5, 1.5)
    shown = representative_rows([*(row(each) for each in ratios), row(7.0, target="gfx942")])

    assert [each.ratio for each in shown] == [3.0, 1.5, 0.5, 7.0]


def test_tables_of_both_forms_are_read(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    listed = [
        {"shape": [1, 2, 3], "name": "a", "microseconds": 5.0},
        {"shape": [1, 2, 3], "name": "b", "milliseconds": 0.5, "regime": "duty-cycled"},
        {"shape": [1, 2, 3], "name": "c", "milliseconds": 0.5, "regime": "sustained"},
        {"shape": [1, 2, 3], "name": "d", "microseconds": None, "why": "wrong numbers"},
        {"shape": [1, 2, 3], "name": "peer", "milliseconds": 0.1, "theirs": True},
        {"shape": [4, 5, 6], "name": "a", "microseconds": 6.0},
    ]
    path.write_text(json.dumps({"rows": listed}), encoding="utf-8")

    assert table_rows(path) == [("1x2x3", "a", 5.0), ("1x2x3", "b", 500.0), ("4x5x6", "a", 6.0)]
    assert times_of_shape(path, "4x5x6") == {"a": 6.0}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [{"name": 3}]}', '{"rows": 5}', "\x00"])
def test_a_malformed_table_is_reported(text: str, tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ArgusError) as raised:
        table_rows(path)

    assert raised.value.diagnostic.code == "E906"


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ArgusError) as raised:
        table_rows(tmp_path / "none.json")

    assert raised.value.diagnostic.code == "E906"
