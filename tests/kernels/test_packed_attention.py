"""Attention of packed sequences: proved for all lengths, its text computes what the interpreter does, twins are not."""

from __future__ import annotations

from itertools import accumulate
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.interp.interpret import interpret
from argus.kernels.packed_attention import CONFIGS, FAMILIES, choose
from argus.kernels.schedules import attention as problem
from argus.kernels.schedules import attention_hopper as hopper
from argus.kernels.schedules import attention_packed as packed
from argus.language import sm_90a
from argus.runtime.cpu.validate import run_text, validate
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

Array = npt.NDArray[Any]
OF_NAME = {family.name: family for families in FAMILIES.values() for family in families.values()}
ALL = [(name, config) for name in OF_NAME for config in CONFIGS[128]]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "config"), ALL)
def test_every_configuration_is_proved(name: str, config: str) -> None:
    verdict = verify(OF_NAME[name], config=config, solver="z3").verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I37", "I39"} <= dict(verdict.coverage).keys()
    assert any("starts_q[i0 + 1] <= longest + starts_q[i0]" in each for each in verdict.assumptions)


SIZES = (
    {"H": 2, "G": 1, "S": 150, "T": 300, "N": 4, "sequences": 3, "longest": 150},
    {"H": 1, "G": 1, "S": 130, "T": 20, "N": 3, "sequences": 2, "longest": 130},
    {"H": 1, "G": 1, "S": 1, "T": 1, "N": 2, "sequences": 1, "longest": 1},
)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "config"), ALL)
def test_the_text_agrees_with_the_interpreter(name: str, config: str) -> None:
    few = evolve(OF_NAME[name], target=evolve(sm_90a, processors=2))  # each block takes several tiles
    found = validate(few.trace(config), SIZES, seeds=1)
    assert all(each.right and each.elements for each in found.trials), found


def packed_rows(lengths: tuple[int, ...], heads: int, after: int) -> Array:
    """Rows of 64 random elements of sequences, (heads, rows, elements), with NaN and infinity from `after` on."""
    rows = np.random.default_rng(heads).standard_normal((heads, sum(lengths), 64))
    rows[:, after::2], rows[:, after + 1 :: 2] = np.nan, np.inf
    return rows.astype(bfloat16)


def of_neighbours(name: str, kernel: Kernel) -> dict[str, Array]:
    """What the interpreter or the emitted text gives for two sequences, the second one of NaN and infinity."""
    queries, keys, heads = (30, 40), (70, 50), 2
    starts_q, starts_k = (np.array([0, *accumulate(each)], np.int32) for each in (queries, keys))
    arrays = {
        "Q": packed_rows(queries, heads, queries[0]),
        "K": packed_rows(keys, 1, keys[0]),
        "V": packed_rows(keys, 1, keys[0]),
        "O": np.full((sum(queries), heads, 64), np.nan, bfloat16),
        "LSE": np.full((heads, sum(queries)), np.nan, np.float32),
        "scale": np.array([64**-0.5 / np.log(2)], np.float32),
        "starts_q": starts_q,
        "starts_k": starts_k,
    }
    sizes = {"H": heads, "S": sum(queries), "G": 1, "T": sum(keys), "N": 3, "sequences": 2, "longest": max(queries)}
    found = (
        interpret(kernel, *arrays.values(), given_sizes=sizes)
        if name == "interpreter"
        else run_text(kernel, arrays, sizes)
    )
    return {key: found[key] for key in ("O", "LSE")}


@pytest.mark.parametrize("config", ["full", pytest.param("causal", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("run_by", ["interpreter", pytest.param("text", marks=pytest.mark.nightly)])
def test_what_a_neighbour_holds_reaches_no_other_sequence(run_by: str, config: str) -> None:
    few = evolve(OF_NAME["packed_64"], target=evolve(sm_90a, processors=2))
    found = of_neighbours(run_by, few.trace(config))
    assert np.isfinite(found["O"][:30].astype(np.float32)).all()
    assert np.isfinite(found["LSE"][:, :30]).all()


@pytest.mark.nightly
def test_rows_of_a_neighbour_are_not_multiplied_by_zero() -> None:
    """Without an end, values of the sequence after are multiplied by weights of 0: what holds NaN gives NaN."""
    few = evolve(OF_NAME["packed_64"], target=evolve(sm_90a, processors=2))
    made = twin(few, "full", *EDITS["values to the end of all"])
    assert np.isnan(of_neighbours("interpreter", made)["O"][:30].astype(np.float32)).all()
    verdict = verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert isinstance(verdict, Unknown)
    assert "rows of `V` that belong together" in verdict.reason


EDITS: dict[str, tuple[ModuleType, tuple[str, str]]] = {
    "queries from one row further": (packed, ("self.Q[h].rows(q)", "self.Q[h].rows(q + 1)")),
    "keys from one row further": (packed, ("self.K[g].rows(k)", "self.K[g].rows(k + 1)")),
    "values of the sequence after": (packed, ("self.V[g].rows(k, k_end)", "self.V[g].rows(k_end, k_end + k_end - k)")),
    "values to the end of all": (packed, ("self.V[g].rows(k, k_end)", "self.V[g].rows(k)")),
    "values to one before the last": (packed, ("self.V[g].rows(k, k_end)", "self.V[g].rows(k, k_end - 1)")),
    "keys of the sequence before its own": (
        packed,
        ("self.K[g].rows(k)", "self.K[g].rows(scalar(self.starts_k[b - 1]))"),
    ),
    "keys to the end of all": (
        packed,
        (
            "return Seen(q_end - q, k_end - k, self.causal",
            "return Seen(q_end - q, self.K.shape[1] - k, self.causal",
        ),
    ),
    "a key more than a query sees": (problem, ("else t <= last, x", "else t <= last + 1, x")),
    "a causal mask by the lengths of all": (
        problem,
        ("return q + self.offset if self.causal else None", "return q + 1 if self.causal else None"),
    ),
    "a tile of O that is stored whole": (packed, ("self.O[:, h].rows(q, q_end)", "self.O[:, h].rows(q)")),
    "a tile of LSE that is stored whole": (packed, ("self.LSE[h].rows(q, q_end)", "self.LSE[h].rows(q)")),
    "LSE in the rows of the keys": (
        packed,
        ("self.LSE[h].rows(q, q_end)", "self.LSE[h].rows(k, scalar(self.starts_k[b + 1]))"),
    ),
    "the last block is not masked": (
        hopper,
        ("self._softmax(own, end - 1, masked=True)", "self._softmax(own, end - 1, masked=False)"),
    ),
    "a block too many is not masked": (
        problem,
        ("end, self.visible(first) // keys", "end, self.visible(first) // keys + 1"),
    ),
    "the last block is not summed": (
        problem,
        ("self.masked_rows and not some else last, keys)", "self.masked_rows and not some else last - 1, keys)"),
    ),
    "keys to the end of the sequence after": (
        packed,
        (
            "return Seen(q_end - q, k_end - k, self.causal",
            "return Seen(q_end - q, scalar(self.starts_k[b + 2 - (b + 1) // self.sequences]) - k, self.causal",
        ),
    ),
    "tiles whose queries see one key are left out": (
        packed,
        ("visible(first + queries - 1) >= 1", "visible(first + queries - 1) >= 2"),
    ),
    "tiles whose queries see no key are not stored": (
        hopper,
        ("problem.where_rows(b, i * bm)", "problem.where_seen(b, i * bm, bm)"),
    ),
    "a bound on no length": (packed, (", first=0, last=S, most=self.longest", ", first=0, last=S")),
    "offsets in any order": (packed, ("ascending=True, first=0, last=T", "first=0, last=T")),
}


CAUSAL = ("a key more than a query sees", "a causal mask by the lengths of all", "a block too many is not masked")


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    made = twin(OF_NAME["packed_128"], "causal" if name in CAUSAL else "full", *EDITS[name])
    verdict = verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert not isinstance(verdict, Proved)


@pytest.mark.parametrize(
    ("sequences", "rows", "longest", "wanted"),
    [
        (8, 16384, 2048, "causal"),
        (61, 24000, 8192, "causal"),  # one long sequence
        (2000, 128000, 128, "causal_short"),  # as many tiles as sequences
        (2000, 128000, 8192, "causal"),  # most of 64 tiles a sequence would hold no query
    ],
)
def test_blocks_run_through_tiles_of_many_short_sequences(sequences: int, rows: int, longest: int, wanted: str) -> None:
    assert choose(128, sequences, rows, longest, 16, causal=True) == wanted
    assert choose(128, sequences, rows, longest, 16, causal=False) == wanted.replace("causal", "full")
