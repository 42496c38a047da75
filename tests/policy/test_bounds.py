import pytest

from argus.policy.bounds import CEILINGS, H200, MI300X, Impossible, Share, Work, bounds, check_time, gemm


def test_work_of_a_gemm_counted_by_hand() -> None:
    work = gemm(4, 8, 16, "bf16")
    assert dict(work.flops) == {"bf16": 2.0 * 4 * 8 * 16}
    assert (work.reads, work.writes) == ((4 + 8) * 16 * 2, 4 * 8 * 2)
    assert work.intensity == 1024 / 448


def test_a_batch_multiplies_the_work() -> None:
    one, three = gemm(4, 8, 16), gemm(4, 8, 16, batch=3)
    assert three.bytes == 3 * one.bytes
    assert three.flops[0][1] == 3 * one.flops[0][1]


def test_large_cubes_are_bound_by_the_matrix_unit() -> None:
    found = bounds(gemm(8192, 8192, 8192), H200)
    assert found.bottleneck == "tensor"
    assert found.light == pytest.approx(2 * 8192**3 / 989e6)
    assert found.reachable == pytest.approx(2 * 8192**3 / 810e6)


def test_few_rows_are_bound_by_memory() -> None:
    found = bounds(gemm(16, 8192, 8192), H200)
    assert found.bottleneck == "memory"
    assert found.light == pytest.approx(((16 + 8192) * 8192 * 2 + 16 * 8192 * 2) / 4.8e6)


def test_tiny_products_are_bound_by_the_launch() -> None:
    assert bounds(gemm(16, 16, 16), H200).bottleneck == "launch"


def test_faster_than_physics_is_flagged() -> None:
    bound = bounds(gemm(8192, 8192, 8192), H200)
    assert isinstance(check_time(0.9 * bound.tensor, bound), Impossible)
    measured = check_time(1375.6, bound)  # microseconds, of `benchmarks/results/gemm.json`
    assert isinstance(measured, Share)
    assert measured.light == pytest.approx(0.808, abs=2e-3)


def test_a_time_explained_by_a_faster_clock_is_possible() -> None:
    bound = bounds(gemm(8192, 8192, 8192), H200)
    assert isinstance(check_time(0.95 * bound.tensor, bound), Share)


def test_operands_left_in_the_cache_are_no_cheat_unless_caches_were_emptied() -> None:
    work = gemm(16, 4096, 4096)  # 34 MB, all of which the second-level cache holds
    warm, cold = bounds(work, H200), bounds(work, H200, cold=True)
    assert isinstance(check_time(0.7 * warm.memory, warm), Share)
    assert isinstance(check_time(0.7 * warm.memory, cold), Impossible)


def test_even_tiny_products_pass_through_the_ports() -> None:
    assert isinstance(check_time(0.4, bounds(gemm(640, 640, 640), H200)), Impossible)


@pytest.mark.parametrize("time", [0.0, -1.0, float("nan")])
def test_invalid_times_are_refused(time: float) -> None:
    with pytest.raises(ValueError, match="no time"):
        check_time(time, bounds(gemm(640, 640, 640), H200))


def test_headroom_is_relative_to_the_reachable_bound() -> None:
    bound = bounds(gemm(8192, 8192, 8192), MI300X)
    assert bound.headroom(2 * bound.reachable) == pytest.approx(0.5)
    assert bound.headroom(0.9 * bound.reachable) == 0.0
    assert bound.gap(2 * bound.light) == 2.0


def test_every_rate_says_where_it_is_from() -> None:
    for each in CEILINGS.values():
        rates = (*each.peak.values(), *each.reached.values(), each.memory_peak, each.memory, each.ports)
        assert all(rate.value > 0 and rate.source for rate in (*rates, each.cached, each.launch, each.overclock))
        assert all(each.reached[dtype].value < each.peak[dtype].value for dtype in each.reached)


def test_an_unknown_element_type_has_no_bound() -> None:
    with pytest.raises(KeyError):
        bounds(Work.of({"i4": 1.0}, 1, 1), H200)
