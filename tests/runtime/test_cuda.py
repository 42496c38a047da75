"""CUDA launches on a fake driver: conditions are checked before anything is sent to the GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.runtime.expressions import value_of
from argus.runtime.gpu import tensor_maps
from argus.runtime.gpu.launch import LoadedKernel, load
from tests.runtime.fake_driver import FakeDriver

SIZE = {"name": "M", "kind": "int"}
LAUNCH: dict[str, Any] = {
    "symbol": "k",
    "grid": ["(M + 127) // 128"],
    "threads": 384,
    "shared_bytes": 1024,
    "maps": [],
    "arguments": [SIZE],
    "checks": [{"condition": "M % 8 == 0", "why": "assumed by the program"}],
}


@frozen
class Tensor:
    """A tensor by shape, strides and address alone."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] = (8, 1)
    pointer: int = 0x1000

    def data_ptr(self) -> int:
        return self.pointer

    def stride(self) -> tuple[int, ...]:
        return self.strides


def loaded(launch: dict[str, Any], fake: FakeDriver | None = None) -> LoadedKernel:
    return LoadedKernel("k", launch, "k", (fake or FakeDriver()).driver)


def test_a_launch_outside_the_assumptions_is_refused() -> None:
    with pytest.raises(ArgusError) as refused:
        loaded(LAUNCH).bind({}, {"M": 12})

    diagnostic = refused.value.diagnostic
    assert diagnostic.code == "E405"
    assert "M % 8 == 0" in diagnostic.message
    assert diagnostic.facts == (("M", "12"),)


def test_a_launch_gives_the_driver_grid_threads_and_shared_memory() -> None:
    fake = FakeDriver()

    loaded(LAUNCH, fake).bind({}, {"M": 200}, stream=7)()

    ((function, *shape, stream, _arguments),) = fake.launches
    assert (function, shape, stream) == ("k", [2, 1, 1, 384, 1, 1, 1024], 7)


@pytest.mark.parametrize("early", [False, True])
def test_a_kernel_with_pdl_may_start_early(early: bool) -> None:
    fake = FakeDriver()

    loaded(LAUNCH | {"early": early}, fake).bind({}, {"M": 200})()

    assert fake.overlapping == [["CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"] if early else []]


POINTER = LAUNCH | {"arguments": [{"name": "A", "kind": "pointer", "shape": ["M", "8"], "align": 16}, SIZE]}
MAP = LAUNCH | {
    "maps": [{"tensor": "A", "dtype": "bf16", "shape": ["M", "8"], "strides": ["8", "1"], "box": [64, 8], "swizzle": 0}]
}


def test_pointers_and_sizes_reach_the_kernel_in_their_order() -> None:
    seen: list[list[int]] = []
    fake = FakeDriver(seen.append, pointers=1, sizes=1)

    loaded(POINTER, fake).bind({"A": Tensor((16, 8))}, {"M": 16})()

    assert seen == [[0x1000, 16]]


def test_a_launch_by_addresses_runs_on_tensors_that_lie_elsewhere() -> None:
    seen: list[list[int]] = []
    fake = FakeDriver(seen.append, pointers=1, sizes=1)
    prepared = loaded(POINTER, fake).prepare({"M": 16})

    launch = prepared.bind_places(("unused", "A"), 7)
    launch((0x10, 0x2000))
    launch((0x10, 0x3000))

    assert prepared.is_of_addresses
    assert seen == [[0x2000, 16], [0x3000, 16]]
    assert [stream for *_, stream, _ in fake.launches] == [7, 7]


def test_a_kernel_with_tensor_maps_is_bound_for_each_address() -> None:
    assert not loaded(MAP).prepare({"M": 16}).is_of_addresses
    assert not loaded(POINTER).prepare({"M": 0}).is_of_addresses  # nothing is launched


@pytest.mark.parametrize("launch", [POINTER, MAP], ids=["pointer", "map"])
@pytest.mark.parametrize(
    "tensor", [Tensor((16, 4)), Tensor((16, 8), (1, 16)), Tensor((16, 8), pointer=0x1008), Tensor((16,), (1,))], ids=str
)
def test_a_tensor_with_another_layout_is_refused(launch: dict[str, Any], tensor: Tensor) -> None:
    with pytest.raises(ArgusError) as refused:
        loaded(launch).bind({"A": tensor}, {"M": 16})

    assert refused.value.diagnostic.code == "E405"
    assert "`A`" in refused.value.diagnostic.message


def test_strides_of_axes_of_one_element_do_not_matter() -> None:
    loaded(MAP | {"checks": []}).bind({"A": Tensor((1, 8), (99, 1))}, {"M": 1})()


def test_an_empty_grid_launches_nothing() -> None:
    fake = FakeDriver(fails={"cuTensorMapEncodeTiled": "INVALID_VALUE"})

    loaded(MAP, fake).bind({"A": Tensor((0, 8))}, {"M": 0})()

    assert fake.launches == []


def test_a_grid_beyond_the_machine_is_refused() -> None:
    with pytest.raises(ArgusError) as refused:
        loaded(LAUNCH | {"grid": ["1", "M"]}).prepare({"M": 65_536})

    assert refused.value.diagnostic.code == "E405"
    assert "(1, 65536, 1)" in refused.value.diagnostic.message


def test_a_built_kernel_is_loaded_with_its_code(tmp_path: Path) -> None:
    (tmp_path / "k.json").write_text(json.dumps({"kernel": "k", "launch": LAUNCH}), encoding="utf-8")
    (tmp_path / "k.cubin").write_bytes(b"code")
    fake = FakeDriver()

    assert load(tmp_path / "k.json", fake.driver).launch == LAUNCH
    assert fake.calls[1:-1] == ["cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(M + 127) // 128", 2),
        ("0 <= M <= 1073741824", 1),
        ("(K) * 2 % 16 == 0", 0),
        ("min(M, K) - -1", 8),
        ("M == 200 and not K == 7 or K < 0", 0),
    ],
)
def test_expressions_over_sizes(expression: str, value: int) -> None:
    assert value_of(expression, {"M": 200, "K": 7}) == value


@pytest.mark.parametrize(
    "expression", ["().__class__", "open('x')", "M ** 9999", "[M]", "N", "M // (K - 7)", "M +", "print(M)", "'x'"]
)
def test_other_expressions_are_refused_and_never_executed(expression: str) -> None:
    with pytest.raises(ArgusError) as refused:
        value_of(expression, {"M": 200, "K": 7})
    assert refused.value.diagnostic.code == "E405"


CONTRACT = {
    "tensor": "expert",
    "shape": ["MB"],
    "condition": "(expert[i0] + 1 == 0) or ((expert[i0] < G) and (expert[i0] >= 0))",
}
DATA = LAUNCH | {
    "grid": ["MB"],
    "checks": [],
    "contracts": [CONTRACT],
    "arguments": [{"name": "expert", "kind": "pointer", "shape": ["MB"], "align": 16}],
}


def launched_with(fake: FakeDriver, experts: list[int], launch: dict[str, Any] = DATA) -> None:
    held = np.zeros(len(experts) + 4, np.int32)
    first = -held.ctypes.data % 16 // 4
    held[first : first + len(experts)] = experts
    tensor = Tensor((len(experts),), (1,), held.ctypes.data + 4 * first)
    loaded(launch, fake).bind({"expert": tensor}, {"MB": len(experts), "G": 3})()


def test_integers_that_satisfy_their_contract_are_launched() -> None:
    fake = FakeDriver()
    launched_with(fake, [2, -1, 0])
    assert len(fake.launches) == 1
    assert fake.calls.count("cuMemcpyDtoH") == 1


@pytest.mark.parametrize("expert", [3, -2])
def test_integers_that_violate_their_contract_are_refused(expert: int) -> None:
    fake = FakeDriver()
    with pytest.raises(ArgusError) as refused:
        launched_with(fake, [0, expert, 1])
    diagnostic = refused.value.diagnostic
    assert diagnostic.code == "E402"
    assert diagnostic.facts == (("expert[1]", str(expert)),)
    assert fake.launches == []


def test_a_contract_may_compare_neighbours() -> None:
    ascending = CONTRACT | {"condition": "(expert[i0] <= expert[i0 + 1]) or (MB <= i0 + 1)"}
    launch = DATA | {"contracts": [ascending]}
    launched_with(FakeDriver(), [0, 2, 2], launch)
    with pytest.raises(ArgusError) as refused:
        launched_with(FakeDriver(), [0, 2, 1], launch)
    assert refused.value.diagnostic.facts == (("expert[1]", "2"),)


# -- tensor maps -------------------------------------------------------------------------------------------------


def test_a_tensor_map_is_encoded_once_an_address_and_shape() -> None:
    fake = FakeDriver()
    kernel = loaded(MAP, fake)
    encoded = [fake.calls.count("cuTensorMapEncodeTiled")]
    for rows, place in ((8, 64), (8, 64), (8, 128), (16, 64), (8, 64)):
        kernel.bind({"A": Tensor((rows, 8), (8, 1), place)}, {"M": rows})()
        encoded.append(fake.calls.count("cuTensorMapEncodeTiled"))

    assert encoded == [0, 1, 1, 2, 3, 3]
    assert len(fake.launches) == 5


def test_cached_tensor_maps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_maps, "_MOST", 2)
    fake = FakeDriver()
    kernel = loaded(MAP, fake)
    for place in (64, 128, 192, 64):
        kernel.bind({"A": Tensor((8, 8), (8, 1), place)}, {"M": 8})()

    assert fake.calls.count("cuTensorMapEncodeTiled") == 4
    assert len(kernel.tensor_maps.cached) <= 2
