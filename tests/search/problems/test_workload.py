"""Known work of kernels: products, boxes read and outputs written."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.search.problems.required_reads import required_bytes
from argus.search.problems.workload import bytes_of, declared_work, parse_declared_work, size_sources, work_of
from argus.verifier.api import interpret
from argus.verifier.loader import load

CORPUS = Path(__file__).parents[2] / "corpus" / "proved"
HEAD = "from argus.language import *\n\n\n@kernel(target=gfx942, threads=64)\n"


def shipped(name: str) -> Kernel:
    return load(str(CORPUS / f"{name}.py"))[0].trace()


def kernel_of(folder: Path, text: str) -> Kernel:
    path = folder / "kernel.py"
    path.write_text(HEAD + text, encoding="utf-8")
    return load(str(path))[0].trace()


def share(kernel: Kernel, name: str, sizes: dict[str, int]) -> float:
    buffer = next(each for each in kernel.parameters if each.name == name)
    return required_bytes(buffer, kernel, sizes) / bytes_of(buffer, kernel, sizes)


def test_a_product_is_counted_from_its_claims_and_not_from_tiles_over_the_edge() -> None:
    counted = work_of(shipped("slabs_by_ordinary_copies"), {"M": 65, "N": 17, "K": 65})

    assert dict(counted.work.flops) == {"bf16": 2.0 * 65 * 17 * 65}
    assert (counted.work.reads, counted.work.writes) == (2.0 * (65 + 17) * 65, 2.0 * 65 * 17)
    assert counted.unknown == ()
    assert counted.description == "2 x 65 x 17 x 65 operations that are claimed, 10,660 bytes read, 2,210 written"


def test_of_another_kernel_its_instructions_are_counted_tiles_over_the_edge_among_them() -> None:
    counted = work_of(shipped("relu_output"), {"M": 65, "N": 64, "K": 64})

    assert dict(counted.work.flops) == {"bf16": 2.0 * 128 * 64 * 64}
    assert counted.unknown == ("other arithmetic",)
    assert counted.work.reads == 2.0 * (65 + 64) * 64


def test_trips_that_blocks_or_data_decide_count_no_products() -> None:
    for name in ("causal_trips", "grouped_experts"):
        kernel = shipped(name)
        counted = work_of(kernel, {each.name: 512 for each in kernel.sizes})
        assert counted.work.flops == ()
        assert any("matrix instructions" in each for each in counted.unknown)


def test_certain_reads_count_and_the_rest_is_reported() -> None:
    counted = work_of(shipped("causal_trips"), {"M": 1024, "N": 1024, "K": 1024})

    assert 0 < counted.work.reads < 2.0 * 2 * 1024 * 1024
    assert any(each.startswith("whether more than") for each in counted.unknown)


def test_a_kernel_without_products_is_bound_by_its_bytes() -> None:
    counted = work_of(shipped("layer_norm_merged"), {"R": 100, "N": 512})

    assert counted.work.flops == ()
    assert counted.work.reads == 4.0 * (100 * 512 + 2 * 512)
    assert counted.work.writes == 4.0 * 100 * 512
    assert counted.unknown == ("other arithmetic",)
    assert not counted.work.known


COPIED = """def copied(A: Tensor["M N", f32], C: Tensor["M N", f32]):
    M, N = A.shape
    tag(A, lambda m, n: dict(m=m, n=n))
    a = registers(f32, spread((8, 32), threads=64, vector=4))
    {at} = block_id({grid})
    copy(A.tile((8, 32), ({place})), a, via=global_load, edge=0)
    vmem.wait(0)
    copy(a, C.tile((8, 32), ({place})), edge=0)
"""


@pytest.mark.parametrize(
    ("grid", "at", "place", "read"),
    [
        ("(ceil_div(M, 8), ceil_div(N, 32))", "m, n", "m, n", 1.0),
        ("(ceil_div(M, 8),)", "(m,)", "m, 0", 0.5),
        ("(ceil_div(M, 8), ceil_div(N, 32))", "m, n", "m // 2, n", 0.5),
        ("(4, 4)", "m, n", "m * 0, n * 0", 1 / 8),
    ],
)
def test_each_box_counts_once(grid: str, at: str, place: str, read: float, tmp_path: Path) -> None:
    kernel = kernel_of(tmp_path, COPIED.format(grid=grid, at=at, place=place))

    assert share(kernel, "A", {"M": 32, "N": 64}) == read


@pytest.mark.parametrize("place", ["m, 0", "m, n", "m // 2, n", "m, n // 2", "m * 2, n"])
def test_counted_reads_never_exceed_the_interpreters(place: str, tmp_path: Path) -> None:
    """For a copy kernel, everything read is in the output."""
    text = COPIED.format(grid="(ceil_div(M, 8), ceil_div(N, 32))", at="m, n", place=place)
    kernel, shape = kernel_of(tmp_path, text), (20, 72)
    left = np.arange(1.0, 1 + prod(shape), dtype=np.float32).reshape(shape)
    made = interpret(kernel, left, np.zeros(shape, np.float32))["C"]

    read = np.isin(left, made).sum()
    assert 0 < share(kernel, "A", dict(zip("MN", shape, strict=True))) * left.size <= read


def test_sizes_are_read_off_axes() -> None:
    assert size_sources(shipped("slabs_by_ordinary_copies")) == {"M": ("A", 0), "K": ("A", 1), "N": ("B", 0)}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (3, "returned another type or other keys"),
        ({"operations": 3}, "returned another type or other keys"),
        ({"flops": 3}, "not a mapping from element type to count"),
        ({"flops": {"i4": 3}}, "are of i4"),
        ({"flops": {"bf16": -1}}, "the count -1"),
        ({"reads": "many"}, "the count 'many'"),
        ({"reads": float("nan")}, "the count nan"),
        (json.loads('{"reads": Infinity}'), "the count inf"),
    ],
)
def test_work_that_is_declared_otherwise_is_refused(found: object, said: str) -> None:
    with pytest.raises(ArgusError) as refused:
        parse_declared_work(found)

    assert refused.value.diagnostic.code == "E903"
    assert said in refused.value.diagnostic.message


def test_work_that_raises_is_reported() -> None:
    def work(M: int) -> object:
        return M / 0

    with pytest.raises(ArgusError, match="`work` raised ZeroDivisionError"):
        declared_work(work, {"M": 3})
    assert parse_declared_work({"reads": np.float64(3)}).work.reads == 3.0
