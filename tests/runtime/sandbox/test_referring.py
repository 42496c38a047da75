"""An untrusted reference runs in the sandbox and yields arrays, or a reason why it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus.runtime.sandbox import ReferenceOutputs, Refused, evaluate_reference
from argus.runtime.sandbox.messages import Floats

KERNEL = (Path(__file__).parents[3] / "examples" / "01_prove.py").read_text(encoding="utf-8")
LEFT, RIGHT = np.arange(6.0).reshape(2, 3), np.ones((4, 3))
CALLS = [{"A": LEFT, "B": RIGHT}, {"A": -LEFT, "B": RIGHT}]


def asked(body: str, more: str = "") -> ReferenceOutputs | Refused:
    return evaluate_reference(f"{KERNEL}\n\ndef reference(A, B):\n    {body}\n{more}", CALLS, {"M": 2, "N": 4, "K": 3})


@pytest.mark.share(2)
def test_an_array_and_arrays_by_name_come_back_exactly() -> None:
    alone, several = asked("return A @ B.T / 3"), asked("return {'C': A @ B.T, 'D': A[0, 0]}")

    assert isinstance(alone, ReferenceOutputs)
    assert [each.keys() for each in alone.given] == [{""}, {""}]
    assert np.array_equal(alone.given[1][""], -LEFT @ RIGHT.T / 3)
    assert alone.work is None
    assert isinstance(several, ReferenceOutputs)
    assert several.given[0].keys() == {"C", "D"}
    assert several.given[0]["D"].shape == ()


def test_declared_work_comes_back_as_data() -> None:
    found = asked("return A @ B.T", '\n\ndef work(M, N, K):\n    return {"flops": {"bf16": M * N * K}}\n')

    assert isinstance(found, ReferenceOutputs)
    assert found.work == {"flops": {"bf16": 24}}


@pytest.mark.share(72)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("return 1 / 0", "E903"),
        ("return 'x'", "E903"),
        ("return A.missing", "E903"),
        ("import os; os._exit(0)", "E945"),
        ("import os; os.write(1, b'{}'); os._exit(0)", "E945"),
        ("import sys; sys.exit(3)", "E944"),
        ("open('/etc/passwd').read()", "E903"),
        ("import socket; socket.create_connection(('127.0.0.1', 22), 1)", "E903"),
        ("return {'C': [[0.0] * 4096] * 65536}", "E9"),
    ],
)
def test_a_reference_that_returns_nothing_is_refused(body: str, code: str) -> None:
    found = asked(body)

    assert isinstance(found, Refused)
    assert found.diagnostic.code.startswith(code), found.diagnostic
    assert found.diagnostic.help


@pytest.mark.parametrize("floats", [Floats((2, 2), b"1234"), Floats((-1, -1), b"12345678"), Floats((1,), b"1")])
def test_malformed_array_bytes_are_refused(floats: Floats) -> None:
    with pytest.raises(ValueError, match=r".+"):
        _ = floats.values
