"""What can be told of launches without a GPU: conditions are checked before anything is sent to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.runtime import cuda
from argus.runtime.cuda import Loaded, load
from argus.runtime.expressions import value_of

LAUNCH = {
    "symbol": "k",
    "grid": ["(M + 127) // 128"],
    "threads": 384,
    "shared_bytes": 1024,
    "maps": [],
    "arguments": [{"name": "M", "kind": "int"}],
    "checks": [{"condition": "M % 8 == 0", "why": "assumed by the program"}],
}


def test_a_launch_outside_the_assumptions_is_refused() -> None:
    with pytest.raises(ArgusError) as refused:
        Loaded("k", LAUNCH, None).bind({}, {"M": 12})

    diagnostic = refused.value.diagnostic
    assert diagnostic.code == "E405"
    assert "M % 8 == 0" in diagnostic.message
    assert diagnostic.facts == (("M", "12"),)


def test_loading_without_a_driver_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cuda, "driver", None)

    with pytest.raises(ArgusError) as refused:
        load(tmp_path / "k.json")
    assert refused.value.diagnostic.code == "E405"


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
def test_anything_else_is_refused_and_never_run(expression: str) -> None:
    with pytest.raises(ArgusError) as refused:
        value_of(expression, {"M": 200, "K": 7})
    assert refused.value.diagnostic.code == "E405"
