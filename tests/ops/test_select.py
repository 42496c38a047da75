"""The GEMM cost model: properties that hold for any constants, and its choices for known shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.kernels import cost_gfx942, fp8, layouts
from argus.kernels.config_names import config_of, name_of
from argus.kernels.cost_sm_90a import H200, Known, cheapest, is_fitted, microseconds, stores_elements
from argus.kernels.gemm import CONFIGS, KINDS, configuration
from argus.kernels.row_alignment import admits_rows
from argus.kernels.schedules.cdna3 import Cdna3
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.split import Split
from argus.language import bf16, gfx942
from argus.ops.choice import select
from argus.runtime import tuning_db
from argus.runtime.tuning_db import Key, TunedConfig
from benchmarks.performance import RESULTS

FITTED = {name: config for name, config in CONFIGS.items() if isinstance(config, Known) and is_fitted(config, H200)}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", FITTED)
def test_more_work_never_takes_less_time(name: str) -> None:
    """But for rows outside a tensor, and rows that begin at few bytes, which are slower to fetch than others."""
    config = FITTED[name]
    assert isinstance(config, Known)
    costs = evolve(H200, pad=0.0, cache_misaligned=(0.0, 0.0, 0.0), port_misaligned=(0.0, 0.0, 0.0))
    sizes = (1, 64, 100, 1000, 4096, 10_000)
    for small, large in pairwise(sizes):
        assert microseconds(config, 512, 512, small, costs) <= microseconds(config, 512, 512, large, costs)
        assert microseconds(config, small, small, 512, costs) <= microseconds(config, large, large, 512, costs)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", FITTED)
def test_rows_outside_a_tensor_cost_time(name: str) -> None:
    config = FITTED[name]
    assert isinstance(config, Known)
    rows = config.bn if isinstance(config, Split) and config.swap_ab else config.bm
    assert microseconds(config, rows - 5, 1024, 4096) > microseconds(config, rows, 1024, 4096)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", FITTED)
def test_nothing_is_faster_than_memory_and_products_allow(name: str) -> None:
    config = FITTED[name]
    assert isinstance(config, Known)
    for m, n, k in ((16, 8192, 8192), (4096, 4096, 4096), (8192, 8192, 64), (1, 1, 1)):
        took = microseconds(config, m, n, k)
        assert took >= min(H200.launch, H200.once, H200.least)
        assert took >= 2e-9 * m * n * k
        if 2 * (m + n) * k > H200.held:
            assert took >= 2 * (m + n) * k / H200.memory


def test_a_tile_more_than_the_processors_have_is_another_wave() -> None:
    config = Hopper()
    full, more = (microseconds(config, 128 * rows, 256 * 12, 4096) for rows in (11, 12))
    assert more - H200.launch > 1.8 * (full - H200.launch)


def test_shapes_that_were_measured_get_what_was_near_the_best_there() -> None:
    """`benchmarks/dense_h200.py search` and `gemm_h200.py`, both regimes together, within 3 percent."""
    assert select(33, 8192, 1024) == "skinny_40"
    assert select(65, 4096, 4096) == "shares_80"
    assert select(8192, 8192, 8192) == "clustered_bands"
    assert select(512, 7168, 2048) == "columns_224"


def test_rows_that_tma_cannot_copy_get_schedules_without_tma() -> None:
    assert select(4096, 4096, 4097) == "narrow"
    assert stores_elements(CONFIGS[select(4096, 4099, 4096)])


def test_columns_that_tma_cannot_store_leave_by_single_elements() -> None:
    for m in (1, 64, 300, 2000, 8192):
        config = CONFIGS[select(m, 1001, 1024)]
        assert stores_elements(config)
        assert admits_rows(config, {"M": m, "N": 1001, "K": 1024})
    assert not any(stores_elements(CONFIGS[select(4096, n, 4096)]) for n in (1024, 4096, 8192))


SEARCHED = json.loads((RESULTS / "tuning.json").read_text(encoding="utf-8"))["results"]


def regret(result: Mapping[str, Any]) -> float | None:
    """Time of the choice relative to the fastest of a stored search; None if the search had no such configuration."""
    chosen, times = select(*result["shape"]), result["first"]
    timed = next((times[name] for name in (chosen, name_of(CONFIGS[chosen])) if name in times), None)
    return None if timed is None else timed / min(times.values())


def test_choices_are_near_the_best_of_the_stored_search() -> None:
    """An older search, with fewer configurations than there are now."""
    found = [each for each in map(regret, SEARCHED) if each is not None]
    assert len(found) >= 20
    assert max(found) < 1.2
    assert geometric_mean(found) < 1.04


def test_configurations_without_a_cost_model_are_not_chosen() -> None:
    assert (
        cheapest({"narrow": Narrow(), "two slots": Hopper(stages=2), "three": Hopper(stages=3)}, 64, 64, 64) == "three"
    )


# -- element types and machines --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bf16", "torch.bfloat16", bf16])
def test_an_element_type_is_known_by_all_its_names(dtype: object) -> None:
    assert select(4096, 4096, 4096, dtype, "sm_90a") == select(4096, 4096, 4096)


def test_few_large_tiles_on_mi300x_are_replaced_by_many_small_ones() -> None:
    assert select(8192, 8192, 8192, "bf16", gfx942) == "cdna3_pingpong"
    assert select(256, 256, 4096, "bf16", "gfx942") == "interleaved_128"
    assert select(256, 252, 4096, "bf16", "gfx942") == "interleaved_any"  # columns in no whole vectors
    assert select(256, 256, 4090, "bf16", "gfx942") == "interleaved_pairs"  # rows in no whole vectors
    assert select(256, 256, 4091, "bf16", "gfx942") == "interleaved_narrow"


def test_the_model_of_mi300x_counts_rounds() -> None:
    config = Cdna3()
    one, two = (cost_gfx942.microseconds(config, 128 * tiles, 128, 4096) for tiles in (304, 305))
    assert two > 1.9 * one


@pytest.mark.parametrize(("dtype", "target"), [("f32", "sm_90a"), ("bf16", "sm_80"), ("i32", "gfx942")])
def test_types_without_a_family_are_refused(dtype: str, target: str) -> None:
    with pytest.raises(ArgusError, match=f"matrices of {dtype} on {target}") as refused:
        select(64, 64, 64, dtype, target)
    assert refused.value.diagnostic.code == "E414"
    assert "bf16 on sm_90a" in dict(refused.value.diagnostic.facts)["families"]


def test_an_extent_that_no_schedule_supports_is_refused() -> None:
    with pytest.raises(ArgusError, match="multiple of 16") as refused:
        select(64, 64, 72, "e4m3fnuz", "gfx942")
    assert refused.value.diagnostic.code == "E414"


@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (16, 8192, 8192), (512, 7168, 2048)])
def test_other_elements_choose_among_the_configurations_of_their_family(shape: tuple[int, int, int]) -> None:
    assert select(*shape, "torch.float16") == select(*shape) in layouts.NT_CONFIGS
    assert select(*shape, "torch.float8_e4m3fn") in fp8.CONFIGS


@pytest.mark.parametrize("shape", [(64, 64, 72), (64, 60, 8)])
def test_8_bit_elements_need_rows_of_whole_16_bytes(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ArgusError, match="multiple of 16") as refused:
        select(*shape, "e4m3")
    assert refused.value.diagnostic.code == "E414"


# -- names -----------------------------------------------------------------------------------------------------


@pytest.mark.share(4)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_is_spelt_out_by_its_name(name: str) -> None:
    spelt = name_of(CONFIGS[name])
    assert spelt.isidentifier()
    assert config_of(spelt, KINDS) == CONFIGS[name]
    assert configuration(spelt) == CONFIGS[name]


@pytest.mark.parametrize(
    "text", ["", "hopper_", "hopper_bn", "hopper_bn1x2", "hopper_bn256", "hopper_bnx", "gemm", "hopper_stages4_bn128"]
)
def test_other_texts_name_none(text: str) -> None:
    assert configuration(text) is None


# -- stored search results -------------------------------------------------------------------------------------


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path))
    tuning_db.clear_cache()
    return tmp_path


CARD = "NVIDIA H200 (of 141 GB)"
KEY = Key((4096, 4096, 4096))


def found(config: str) -> TunedConfig:
    return TunedConfig(config, {"sustained": 200.0}, 3)


@pytest.mark.usefixtures("folder")
def test_a_stored_choice_comes_first_on_its_gpu_and_for_its_shape() -> None:
    path = tuning_db.store_choices(CARD, {KEY: found("hopper_bn192_stages5")})

    assert path.name.startswith("NVIDIA-H200-of-141-GB-")
    assert select(4096, 4096, 4096, device=CARD) == "hopper_bn192_stages5"
    assert select(4096, 4096, 4096, device="another") == select(4096, 4096, 4096) == "clustered_bands"
    assert select(4096, 4096, 4104, device=CARD) == select(4096, 4096, 4104)


@pytest.mark.usefixtures("folder")
def test_later_searches_add_to_the_stored_choices() -> None:
    other = Key((64, 64, 64))
    tuning_db.store_choices(CARD, {KEY: found("cooperative"), other: found("small")})
    tuning_db.store_choices(CARD, {KEY: found("clustered")})

    assert tuning_db.load_choices(CARD) == {KEY: found("clustered"), other: found("small")}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema": "argus.tuning/1"}', '{"schema": 7, "device": 7, "argus": 7, "choices": 7}'],
)
@pytest.mark.usefixtures("folder")
def test_a_damaged_file_counts_as_absent_and_is_replaced(text: str) -> None:
    path = tuning_db.store_choices(CARD, {KEY: found("cooperative")})
    path.write_text(text, encoding="utf-8")
    tuning_db.clear_cache()

    assert select(4096, 4096, 4096, device=CARD) == "clustered_bands"
    tuning_db.store_choices(CARD, {KEY: found("cooperative")})
    assert select(4096, 4096, 4096, device=CARD) == "cooperative"


@pytest.mark.parametrize("name", ["fast", "hopper_bn", "cdna3"])
@pytest.mark.usefixtures("folder")
def test_an_unknown_choice_is_ignored(name: str) -> None:
    tuning_db.store_choices(CARD, {KEY: found(name)})

    assert select(4096, 4096, 4096, device=CARD) == "clustered_bands"


def test_a_file_of_another_version_or_gpu_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tuning_db.store_choices(CARD, {KEY: found("cooperative")})
    path.rename(tuning_db.file_of("another"))
    tuning_db.clear_cache()
    assert tuning_db.load_choices("another") == {}

    path = tuning_db.store_choices(CARD, {KEY: found("cooperative")})
    monkeypatch.setattr(tuning_db, "sources_digest", lambda: "f" * 64)
    path.rename(tuning_db.file_of(CARD))
    assert tuning_db.load_choices(CARD) == {}
    assert [each.parent for each in folder.glob("*/*.new")] == []


def test_an_unwritable_folder_is_reported(folder: Path) -> None:
    (folder / "tuning").write_text("in the way", encoding="utf-8")

    with pytest.raises(ArgusError) as refused:
        tuning_db.store_choices(CARD, {KEY: found("cooperative")})
    assert refused.value.diagnostic.code == "E302"
    assert tuning_db.load_choices(CARD) == {}


def test_split_k_is_chosen_for_few_and_deep_tiles_once_its_exchange_is_measured() -> None:
    assert not is_fitted(Split(), evolve(H200, exchange=None))
    assert isinstance(CONFIGS[cheapest(CONFIGS, 512, 512, 16384)], Split)
    assert not isinstance(CONFIGS[cheapest(CONFIGS, 4096, 4096, 4096)], Split)


def test_split_k_uses_no_more_processors_than_there_are() -> None:
    measured = evolve(H200, exchange=1.2)
    waves = [microseconds(Split(splits=8), 128 * tiles, 128, 65536, measured) for tiles in (15, 16)]

    assert waves[1] - H200.once > 1.6 * (waves[0] - H200.once)
