"""The gradients of packed sequences: proved for all lengths, right where they are run, and twins are not proved."""

from __future__ import annotations

from itertools import accumulate, pairwise
from types import ModuleType

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.interpret import interpret
from argus.kernels.packed_attention_backward import FAMILIES, MASKS
from argus.kernels.schedules import attention_backward as blocks
from argus.kernels.schedules import attention_backward_keys as of_keys
from argus.kernels.schedules import attention_backward_packed as packed
from argus.kernels.schedules import attention_backward_queries as of_queries
from argus.kernels.schedules import attention_backward_rows as of_rows
from argus.language import Template, bf16, sm_90a
from argus.runtime.cpu.validate import validate
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session
from argus.verifier.kernel import first_unproved, verify
from tests.kernels.test_attention_backward import Matrix, gradients
from tests.kernels.twins import twin

TEMPLATES = {
    each.name: each
    for widths in FAMILIES.values()
    for made in widths.values()
    for each in (made.rows, *(template for template, _ in made.gradients))
}
CLAIMS = {
    template.name: outputs
    for widths in FAMILIES.values()
    for made in widths.values()
    for template, outputs in ((made.rows, ("L", "Delta")), *made.gradients)
}
EACH = [(name, config) for name, each in TEMPLATES.items() for config in each.configs]
SHORT = {("packed_backward_rows_64", "packed"), ("packed_backward_queries_64", "full")}
SOME = [
    pytest.param(
        *each, marks=pytest.mark.share(16, among="packed attention backward") if each in SHORT else pytest.mark.nightly
    )
    for each in EACH
]


@pytest.mark.parametrize(("name", "config"), SOME)
def test_every_configuration_is_proved(name: str, config: str) -> None:
    verdict = verify(TEMPLATES[name], config=config, solver="z3", budget=evolve(Budget(), runs=0)).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I39"} <= dict(verdict.coverage).keys()
    for output in CLAIMS[name]:
        assert any(f"assert_equals({output}, " in each for each in verdict.results), output


SIZES = (
    {"H": 2, "G": 1, "S": 150, "T": 300, "R": 192, "N": 4, "sequences": 3, "longest_q": 150, "longest_k": 300},
    {"H": 1, "G": 1, "S": 130, "T": 20, "R": 192, "N": 3, "sequences": 2, "longest_q": 130, "longest_k": 20},
    {"H": 1, "G": 1, "S": 1, "T": 1, "R": 64, "N": 2, "sequences": 1, "longest_q": 1, "longest_k": 1},
)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "config"), EACH)
def test_the_text_agrees_with_the_interpreter(name: str, config: str) -> None:
    few = evolve(TEMPLATES[name], target=evolve(sm_90a, processors=2))  # each block takes several tiles
    kernel = few.trace(config)
    own = {symbol.name for symbol in kernel.sizes}
    found = validate(kernel, tuple({key: each[key] for key in own} for each in SIZES), seeds=1)
    assert all(each.right and each.elements for each in found.trials), found


def starts_of(lengths: tuple[int, ...]) -> Matrix:
    return np.array([0, *accumulate(lengths)], np.int32)


def wanted_of(given: dict[str, Matrix], starts_q: Matrix, starts_k: Matrix, *, causal: bool) -> dict[str, Matrix]:
    """Outputs, log-sum-exps and gradients in float64, rows first but for the log-sum-exps."""
    rows, keys = given["Q"].shape[0], given["K"].shape[0]
    heads, groups, width = given["Q"].shape[1], *given["K"].shape[1:]
    found: dict[str, Matrix] = {name: np.zeros((rows, heads, width)) for name in ("O", "dQ")}
    found |= {name: np.zeros((keys, groups, width)) for name in ("dK", "dV")}
    found["LSE"] = np.full((heads, rows), -np.inf)
    for (q, q_end), (k, k_end) in zip(pairwise(starts_q), pairwise(starts_k), strict=True):
        if q == q_end or k == k_end:
            continue
        ends = {"Q": (q, q_end), "dO": (q, q_end), "K": (k, k_end), "V": (k, k_end)}
        own = {name: given[name][slice(*ends[name])].swapaxes(0, 1)[None] for name in ends}
        one = gradients(own, causal=causal)
        found["LSE"][:, q:q_end] = one["LSE"][0]
        for name, (first, end) in {"O": (q, q_end), "dQ": (q, q_end), "dK": (k, k_end), "dV": (k, k_end)}.items():
            found[name][first:end] = one[name][0].swapaxes(0, 1)
    return found


def operands(
    queries: tuple[int, ...], keys: tuple[int, ...], heads: int, groups: int, width: int
) -> tuple[dict[str, Matrix], Matrix, Matrix]:
    """Random rows of each operand, (rows, heads, elements), and the offsets of queries and of keys."""
    random = np.random.default_rng(1)
    rows = {"Q": (sum(queries), heads), "K": (sum(keys), groups), "V": (sum(keys), groups), "dO": (sum(queries), heads)}
    given = {name: random.standard_normal((*shape, width)).astype(bfloat16) for name, shape in rows.items()}
    return given, starts_of(queries), starts_of(keys)


def interpreted(
    given: dict[str, Matrix], forward: dict[str, Matrix], starts: tuple[Matrix, Matrix], config: str
) -> dict[str, Matrix]:
    """The gradients that the interpreter computes. forward: the output and the log-sum-exp."""
    (rows, heads, width), (starts_q, starts_k) = given["Q"].shape, starts
    kernels, padded = FAMILIES[bf16][width], -(-rows // 64) * 64
    sums = [np.full((heads, padded), np.nan, np.float32) for _ in range(2)]
    out, lse = forward["O"].astype(bfloat16), forward["LSE"].astype(np.float32)
    made = interpret(kernels.rows.trace("packed"), out, given["dO"], lse, *sums)
    turned = {name: given[name].swapaxes(0, 1).copy() for name in given}
    scale = np.array([width**-0.5 / np.log(2)], np.float32)
    common = (*(turned[name] for name in ("Q", "K", "V", "dO")), made["L"], made["Delta"], scale, starts_q, starts_k)
    longest_q, longest_k = (int(np.diff(each).max()) for each in starts)
    sizes = {"sequences": len(starts_q) - 1, "longest_q": longest_q, "longest_k": longest_k}
    blank = {name: np.full_like(given[name[1:]], np.nan) for name in NAMES}
    found: dict[str, Matrix] = {}
    for template, outputs in kernels.gradients:
        found |= interpret(template.trace(config), *common, *(blank[name] for name in outputs), given_sizes=sizes)
    return found


NAMES = ("dQ", "dK", "dV")
MIXES = [
    ((3, 0, 70, 5), (9, 4, 0, 131), 2, 1, 64),
    pytest.param((66, 2, 40), (20, 3, 70), 1, 1, 64, marks=pytest.mark.nightly),
    pytest.param((3, 0, 70, 5), (9, 4, 0, 131), 2, 1, 256, marks=pytest.mark.nightly),
]


@pytest.mark.share(16, among="packed attention backward")
@pytest.mark.parametrize("config", MASKS)
@pytest.mark.parametrize(("queries", "keys", "heads", "groups", "width"), MIXES)
def test_the_interpreter_computes_gradients_of_each_sequence(
    queries: tuple[int, ...], keys: tuple[int, ...], heads: int, groups: int, width: int, config: str
) -> None:
    given, starts_q, starts_k = operands(queries, keys, heads, groups, width)
    wanted = wanted_of(given, starts_q, starts_k, causal=config == "causal")
    found = interpreted(given, wanted, (starts_q, starts_k), config)

    for name in NAMES:
        worst = np.abs(found[name].astype(np.float64) - wanted[name]).max()
        assert worst < 2**-6 * max(1, np.abs(wanted[name]).max()), name


@pytest.mark.nightly
@pytest.mark.parametrize("config", MASKS)
def test_what_a_neighbour_holds_reaches_no_other_sequence(config: str) -> None:
    given, starts_q, starts_k = operands((30, 40), (70, 50), 2, 1, 64)
    wanted = wanted_of(given, starts_q, starts_k, causal=config == "causal")
    for name, first in {"Q": 30, "dO": 30, "K": 70, "V": 70}.items():
        given[name][first::2], given[name][first + 1 :: 2] = np.nan, np.inf
    wanted["O"][30:], wanted["LSE"][:, 30:] = np.nan, np.nan
    found = interpreted(given, wanted, (starts_q, starts_k), config)

    for name, end in {"dQ": 30, "dK": 70, "dV": 70}.items():
        own = wanted[name][:end]
        assert np.abs(found[name][:end].astype(np.float64) - own).max() < 2**-6 * max(1, np.abs(own).max()), name


QUERIES, KEYS, ROWS = (FAMILIES[bf16][64].queries, FAMILIES[bf16][64].keys, FAMILIES[bf16][64].rows)
OF_QUERIES, OF_KEYS = "tensor[h].rows(*ends_of(self.starts_q, b))", "tensor[g].rows(*ends_of(self.starts_k, b))"
EDITS: dict[str, tuple[Template, ModuleType, tuple[str, str]]] = {
    "keys of the sequence after": (
        KEYS,
        packed,
        (OF_KEYS, "tensor[g].rows(ends_of(self.starts_k, b)[1], self.K.shape[1])"),
    ),
    "keys to the end of all": (QUERIES, packed, (OF_KEYS, "tensor[g].rows(ends_of(self.starts_k, b)[0])")),
    "queries from one row further": (
        QUERIES,
        packed,
        (OF_QUERIES, "tensor[h].rows(ends_of(self.starts_q, b)[0] + 1, ends_of(self.starts_q, b)[1])"),
    ),
    "queries by the offsets of keys": (KEYS, packed, (OF_QUERIES, "tensor[h].rows(*ends_of(self.starts_k, b))")),
    "queries to the end of all": (KEYS, packed, (OF_QUERIES, "tensor[h].rows(ends_of(self.starts_q, b)[0])")),
    "queries without the last one": (
        KEYS,
        packed,
        (OF_QUERIES, "tensor[h].rows(ends_of(self.starts_q, b)[0], ends_of(self.starts_q, b)[1] - 1)"),
    ),
    "queries of the sequence after are counted": (
        KEYS,
        packed,
        (OF_QUERIES, "tensor[h].rows(ends_of(self.starts_q, b)[0], self.Q.shape[1])"),
    ),
    "a tile of dQ that is stored whole": (
        QUERIES,
        packed,
        ("dQ[:, h].rows(*ends_of(self.starts_q, b))", "dQ[:, h].rows(ends_of(self.starts_q, b)[0])"),
    ),
    "gradients of keys in the rows of queries": (
        KEYS,
        packed,
        ("gradients[:, g].rows(*ends_of(self.starts_k, b))", "gradients[:, g].rows(*ends_of(self.starts_q, b))"),
    ),
    "a masked block too few": (KEYS, blocks, ("+ keys - 1, queries)", "+ keys - 1 - queries, queries)")),
    "mask of keys off by one": (KEYS, of_keys, ("own.seen.sees(q, key)", "own.seen.sees(q + 1, key)")),
    "mask of queries off by one": (QUERIES, of_queries, ("n * self.cfg.bn + t)", "n * self.cfg.bn + t - 1)")),
    "sums of another head": (
        KEYS,
        of_keys,
        ("self.problem.of_query_head(tensor, b, h)", "self.problem.of_query_head(tensor, b, 0 * h)"),
    ),
    "sums of the first sequence": (
        KEYS,
        of_keys,
        ("self.problem.of_query_head(tensor, b, h)", "self.problem.of_query_head(tensor, 0 * b, h)"),
    ),
    "keys of another head": (
        QUERIES,
        of_queries,
        ("of_key_head(each, b, h // problem.group)", "of_key_head(each, b, 0 * h)"),
    ),
    "queries of one head of the group": (
        KEYS,
        of_keys,
        ("h, m = g * problem.group + i // each,", "h, m = g * problem.group + 0 * i,"),
    ),
    "first block too late": (
        KEYS,
        blocks,
        ("first - self.offset) // queries", "first - self.offset + 1) // queries"),
    ),
    "a bound on no length of keys": (KEYS, packed, ("last=T, most=self.longest_k", "last=T")),
    "offsets in any order": (QUERIES, packed, ("self.starts_q, ascending=True, ", "self.starts_q, ")),
    "numbers of half of the rows": (ROWS, of_rows, ("padded // cfg.rows\n", "padded // cfg.rows // 2\n")),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    template, module, edit = EDITS[name]
    config = next(each for each in ("causal", "packed") if each in template.configs)
    made = twin(template, config, module, edit)
    assert first_unproved(made, Session(resolve("z3"), Budget(), None)) is not None
