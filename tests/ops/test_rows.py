"""Operators along the last axis without a GPU: operands, the chosen configuration, and what is launched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from math import inf, prod
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from attrs import define, evolve

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.rows.configs import CONFIGS, choose
from argus.ops.call_path import Plan
from tests.ops.fake_torch import Card, Matrix, gpu

module = import_module("argus.ops.row_calls")
operators: Any = argus
Launches = list[tuple[Plan, tuple[Any, ...]]]


@define
class Rows(Matrix):
    """A tensor of any shape."""

    def reshape(self, *shape: int) -> Self:
        return evolve(self, array=self.array.reshape(shape))

    def view(self, *dtype: Any) -> Self:  # noqa: ANN401 reason: NumPy's
        return evolve(self, array=self.array.view(*dtype), dtype="torch.int32")


KINDS = {"bfloat16": np.uint16, "float16": np.uint16, "float32": np.float32, "int64": np.int64}


def rows(*shape: int, dtype: str = "bfloat16") -> Rows:
    room = np.zeros(prod(shape) * 8 + 16, np.uint8)
    held = room[-room.ctypes.data % 16 :][: prod(shape) * np.dtype(KINDS[dtype]).itemsize]
    return Rows(held.view(KINDS[dtype]).reshape(shape), f"torch.{dtype}")


TYPES = (("bfloat16", "bf16"), ("float16", "f16"), ("float32", "f32"))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launches]:
    """The plans and operands of all launches, of which none is made."""
    made: Launches = []

    def launch(plan: Plan, operands: tuple[Any, ...], unproved: str) -> tuple[Any, None]:
        assert unproved == "refuse"
        made.append((plan, operands))
        return ("S", "Y") if len(plan.results) > 1 else "Y", None

    def full(shape: tuple[int], value: float, *, dtype: str, device: str) -> Rows:
        assert device == "cuda:0"
        found = rows(*shape, dtype=dtype)
        if dtype == "float32":
            found.array[:] = value
        return found

    kinds = {name: name for name in ("bfloat16", "float16", "float32")} | {"int32": np.int32}
    cuda = SimpleNamespace(is_current_stream_capturing=lambda: False, get_device_properties=gpu(9))
    fake = SimpleNamespace(cuda=cuda, is_grad_enabled=lambda: True, full=full, **kinds)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(module, "launch", launch)
    module.clear_cache()
    yield made
    module.clear_cache()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "row_sum", "row_mean", "cumsum"])
@pytest.mark.parametrize(("dtype", "kind"), TYPES)
def test_the_kernel_of_the_type_and_the_length_is_launched(
    launches: Launches, name: str, dtype: str, kind: str
) -> None:
    x = rows(3, 5, 1000, dtype=dtype)
    assert getattr(operators, name)(x) == "Y"
    ((plan, given),) = launches
    assert [(each.family, each.config) for each in plan.candidates] == [(f"{name}_{kind}", choose(kind, 1000))]
    assert dict(plan.sizes) == {"R": 15, "N": 1000}
    assert given == (x,)
    shape = (3, 5) if name.startswith("row") else (3, 5, 1000)
    assert plan.results == [(shape, x.dtype)]
    named = plan.named(x, rows(*shape, dtype=dtype))
    assert {key: each.shape for key, each in named.items()} == {
        "X": (15, 1000),
        "Y": (15,) if len(shape) == 2 else (15, 1000),
    }


def test_norms_take_weights_or_ones_and_the_sum_with_a_residual(launches: Launches) -> None:
    x, weight, bias = rows(4, 64), rows(64), rows(64)
    assert operators.rms_norm(x, weight) == "Y"
    assert operators.rms_norm(x, residual=rows(4, 64), eps=1e-6) == ("Y", "S")
    assert operators.layer_norm(x, weight, bias) == "Y"
    assert operators.layer_norm(x, residual=rows(4, 64)) == ("Y", "S")
    assert [each.candidates[0].family for each, _ in launches] == [
        *("rms_norm_bf16", "rms_norm_of_sum_bf16", "layer_norm_bf16", "layer_norm_of_sum_bf16")
    ]
    first, second, third, last = (given for _, given in launches)
    assert first[1] is weight
    assert third[1:3] == (weight, bias)
    assert [tuple(each.shape) for each in last] == [(4, 64), (4, 64), (64,), (64,), (1,)]
    assert second[3].array == pytest.approx([1e-6])
    assert first[2].array == pytest.approx([1e-5])
    names = [list(plan.named(*given, *(x for _ in plan.results))) for plan, given in launches]
    assert names == [
        ["X", "G", "eps", "Y"],
        ["X", "Z", "G", "eps", "S", "Y"],
        ["X", "G", "B", "eps", "Y"],
        ["X", "Z", "G", "B", "eps", "S", "Y"],
    ]


@pytest.mark.parametrize(("dtype", "kind"), TYPES)
def test_groups_of_channels_are_rows(launches: Launches, dtype: str, kind: str) -> None:
    x, weight = rows(2, 12, 7, 6, dtype=dtype), rows(12, dtype=dtype)
    assert operators.group_norm(x, 4, weight) == "Y"
    ((plan, given),) = launches
    assert dict(plan.sizes) == {"R": 8, "N": 126, "G": 4, "K": 3, "S": 42}
    assert [(each.family, each.config) for each in plan.candidates] == [(f"group_norm_{kind}", choose(kind, 126, 42))]
    assert plan.results == [((2, 12, 7, 6), x.dtype)]
    named = plan.named(*given, rows(2, 12, 7, 6, dtype=dtype))
    assert list(named) == ["X", "W", "B", "eps", "Y"]
    assert [each.shape for each in named.values()] == [(8, 126), (4, 3), (4, 3), (1,), (8, 126)]


def test_an_access_lies_in_one_channel() -> None:
    assert CONFIGS["bf16"][choose("bf16", 8 * 49, 49)].vector == 1
    assert CONFIGS["bf16"][choose("bf16", 8 * 48, 48)].vector == 8
    assert CONFIGS["f32"][choose("f32", 6 * 2, 2)].vector == 2


def test_a_repeated_call_with_other_groups_is_another(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    x, taken = rows(2, 12, 8), module.launch

    def again(*_: object) -> str:
        return "again"

    def launch(*given: Any) -> tuple[Any, Callable[..., str]]:  # noqa: ANN401 reason: as the operator gives them
        return taken(*given)[0], again

    monkeypatch.setattr(module, "launch", launch)
    assert [operators.group_norm(x, each) for each in (4, 4, 3)] == ["Y", "again", "Y"]
    assert [dict(plan.sizes)["G"] for plan, _ in launches] == [4, 3]


def test_columns_of_64_bits_are_read_as_pairs(launches: Launches) -> None:
    x, target = rows(2, 3, 10), rows(2, 3, dtype="int64")
    assert operators.cross_entropy(x, target) == "Y"
    ((plan, given),) = launches
    assert plan.results == [((2, 3), "float32")]
    named = plan.named(*given, rows(2, 3, dtype="float32"))
    assert named["target"].shape == (6, 2)
    assert named["Y"].shape == (6,)


def test_rows_apart_or_unaligned_are_copied(launches: Launches) -> None:
    copies: list[str] = []
    apart = evolve(rows(4, 8), array=np.zeros((8, 4), np.uint16).T, copies=copies)
    operators.softmax(apart)
    operators.softmax(evolve(rows(4, 8), shift=8, copies=copies))
    for plan, given in launches:
        assert plan.named(*given, rows(4, 8))["X"].is_contiguous()
    assert copies == ["contiguous", "clone"]


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no tensor": (lambda: operators.softmax("x"), "softmax: `x` is not a torch tensor, found str"),
    "no tensor of a norm": (lambda: operators.rms_norm("x"), "rms_norm: `x` is not a torch tensor, found str"),
    "integers": (lambda: operators.row_sum(rows(2, 3, dtype="int64")), "`x` expects elements of type torch.bfloat16"),
    "no axis": (lambda: operators.row_mean(rows()), "`x` has no axis"),
    "on the host": (lambda: operators.layer_norm(evolve(rows(2, 3), is_cuda=False, device="cpu")), "`x` is on cpu"),
    "a gradient": (lambda: operators.softmax(evolve(rows(2, 3), requires_grad=True)), "`x` requires a gradient"),
    "other columns": (lambda: operators.rms_norm(rows(2, 3), rows(4)), "`weight` is (4,), expected (3,)"),
    "another residual": (lambda: operators.rms_norm(rows(2, 3), residual=rows(3)), "`residual` is (3,), expected"),
    "weights of another type": (
        lambda: operators.layer_norm(rows(2, 3), rows(3, dtype="float32")),
        "`weight` expects elements of type torch.bfloat16, found torch.float32",
    ),
    "weights elsewhere": (
        lambda: operators.rms_norm(rows(2, 3), evolve(rows(3), device=Card(1))),
        "`weight` on Card(index=1)",
    ),
    "targets of 32 bits": (
        lambda: operators.cross_entropy(rows(2, 3), rows(2, dtype="float32")),
        "`target` expects elements of type torch.int64, found torch.float32",
    ),
    "targets of other rows": (lambda: operators.cross_entropy(rows(2, 3), rows(3, dtype="int64")), "expected (2,)"),
    "no channels": (lambda: operators.group_norm(rows(4), 2), "`x` has 1 axes, expected samples, channels"),
    "groups of unequal channels": (
        lambda: operators.group_norm(rows(2, 6, 4), 4),
        "`groups` is 4, expected a divisor of 6",
    ),
    "no groups": (lambda: operators.group_norm(rows(2, 6, 4), 0), "`groups` is 0, expected a divisor"),
    "weights of other channels": (
        lambda: operators.group_norm(rows(2, 6, 4), 2, rows(4)),
        "`weight` is (4,), expected (6,)",
    ),
    "an epsilon below 0": (lambda: operators.rms_norm(rows(2, 3), eps=-1.0), "`eps` is -1"),
    "an infinite epsilon": (lambda: operators.layer_norm(rows(2, 3), eps=inf), "`eps` is inf"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_operands_are_refused(name: str, launches: Launches) -> None:
    call, said = REFUSED[name]
    with pytest.raises(ArgusError) as caught:
        call()
    assert caught.value.diagnostic.code == "E401"
    assert said in caught.value.diagnostic.message
    assert caught.value.diagnostic.help
    assert not launches


def test_a_new_constant_is_refused_within_a_capture(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    operators.rms_norm(rows(2, 3))
    monkeypatch.setattr(sys.modules["torch"].cuda, "is_current_stream_capturing", lambda: True)
    operators.rms_norm(rows(2, 3))
    with pytest.raises(ArgusError, match="first call with these constants is captured"):
        operators.rms_norm(rows(2, 3), eps=0.5)
    assert len(launches) == 2


@pytest.mark.usefixtures("launches")
def test_a_repeated_call_takes_the_bound_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []

    def product(operands: tuple[Any, ...], places: tuple[int, ...]) -> str:
        seen.append((operands, places))
        return "again"

    def launch(*_: object) -> tuple[str, object]:
        return "Y", product

    monkeypatch.setattr(module, "launch", launch)
    x, other = rows(2, 16), rows(2, 16)
    assert [operators.softmax(each) for each in (x, other, rows(2, 8))] == ["Y", "again", "Y"]
    assert seen == [((other,), (other.data_ptr(),))]
    with pytest.raises(ArgusError, match="requires a gradient"):
        operators.softmax(evolve(x, requires_grad=True))
