"""The gradients of attention: proved, right where they are run, and twins of one edit are not proved."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.proof.values.held import facts
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.interp.interpret import interpret_program
from argus.kernels.attention_backward import CONFIGS, FAMILIES, configs
from argus.kernels.schedules import attention_backward as problem
from argus.kernels.schedules import attention_backward_at_once as of_all
from argus.kernels.schedules import attention_backward_keys as of_keys
from argus.kernels.schedules import attention_backward_queries as of_queries
from argus.kernels.schedules import attention_backward_rows as of_rows
from argus.language import bf16, f16
from argus.runtime.cpu.validate import validate
from argus.verifier.program import verify_program
from tests.kernels.twins import twin

Matrix = np.ndarray[Any, Any]
BRIEF = evolve(Budget(), runs=0)
EACH = [(dtype, width, config) for dtype in (bf16, f16) for width in (64, 128, 256) for config in configs(width)]
SHORT = (bf16, 64)
SOME = [each if each[:2] == SHORT else pytest.param(*each, marks=pytest.mark.nightly) for each in EACH]


@pytest.mark.share(72, among="attention backward")
@pytest.mark.parametrize(("dtype", "width", "config"), SOME)
def test_every_configuration_is_proved(dtype: Any, width: int, config: str) -> None:  # noqa: ANN401 reason: a parameter
    verdict = verify_program(FAMILIES[dtype][width], config=config, solver="z3", budget=BRIEF).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I34", "I39"} <= dict(verdict.coverage).keys()
    assert sum("assert_equals" in each for each in verdict.results) == len(("Delta", "L", "dK", "dV", "dQ"))


ADDED = sorted(configs(64).keys() - CONFIGS.keys())
BY_CVC5 = [each for each in ADDED if "causal" not in each]
"""cvc5 gives up on the bound of the causal loop: a quotient of sizes times one of a difference, within 32 bits."""


@pytest.mark.nightly
@pytest.mark.parametrize("config", BY_CVC5)
def test_gradients_added_in_memory_are_proved_by_cvc5(config: str) -> None:
    verdict = verify_program(FAMILIES[bf16][64], config=config, solver="cvc5", budget=BRIEF).verdict

    assert isinstance(verdict, Proved), verdict


def gradients(given: dict[str, Matrix], *, causal: bool) -> dict[str, Matrix]:
    """The output, the log-sum-exp and the gradients in float64."""
    q, k, v, do = (given[name].astype(np.float64) for name in ("Q", "K", "V", "dO"))
    many, scale = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5
    wide_k, wide_v = (np.repeat(each, many, 1) for each in (k, v))
    scores = q @ wide_k.swapaxes(2, 3) * scale
    row, key = np.ogrid[: q.shape[2], : k.shape[2]]
    sees = (key <= row + k.shape[2] - q.shape[2]) if causal else np.ones(scores.shape[2:], bool)
    weights = np.where(sees, np.exp(scores), 0)
    sums = weights.sum(3)
    weights /= np.where(sums == 0, 1, sums)[..., None]
    out = weights @ wide_v
    changes = weights * (do @ wide_v.swapaxes(2, 3) - (do * out).sum(3)[..., None]) * scale
    grouped = (k.shape[0], k.shape[1], many, *k.shape[2:])
    with np.errstate(divide="ignore"):
        logs = np.log(sums)
    return {
        "O": out,
        "LSE": logs,
        "dQ": changes @ wide_k,
        "dK": (changes.swapaxes(2, 3) @ q).reshape(grouped).sum(2),
        "dV": (weights.swapaxes(2, 3) @ do).reshape(grouped).sum(2),
    }


EVERY = [(1, 2, 70, 1, 130), (1, 1, 130, 1, 70), (2, 2, 3, 2, 5)]
WIDE = ((1, 2, 70, 1, 130), 256)


RUNS = [*((sizes, 64, config) for config in configs(64) for sizes in EVERY), *((*WIDE, config) for config in CONFIGS)]


@pytest.mark.share(72, among="attention backward")
@pytest.mark.parametrize(
    ("sizes", "width", "config"),
    [pytest.param(*run, marks=[pytest.mark.nightly] if run[1] > 64 or run[2] in ADDED[1:] else []) for run in RUNS],
)
def test_the_interpreter_computes_gradients(sizes: tuple[int, ...], width: int, config: str) -> None:
    (batch, heads, queries, groups, keys), causal = sizes, not config.startswith("full")
    random = np.random.default_rng(1)
    shapes = {"Q": (heads, queries), "K": (groups, keys), "V": (groups, keys), "dO": (heads, queries)}
    given = {name: random.standard_normal((batch, *shape, width)).astype(bfloat16) for name, shape in shapes.items()}
    wanted = gradients(given, causal=causal)
    scale = np.array([width**-0.5 / np.log(2)], np.float32)
    outputs = [np.full_like(given[name[1]], np.nan) for name in ("dQ", "dK", "dV")]
    arrays = (given["Q"], given["K"], given["V"], wanted["O"].astype(bfloat16), given["dO"])
    found = interpret_program(
        FAMILIES[bf16][width].trace(config), *arrays, wanted["LSE"].astype(np.float32), scale, *outputs
    )

    for name in ("dQ", "dK", "dV"):
        worst = np.abs(found[name].astype(np.float64) - wanted[name]).max()
        assert worst < 2**-6 * max(1, np.abs(wanted[name]).max()), name


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "seeds"), [(64, (3, 4)), (256, (8, 11))])  # of others, some weights are beyond f32
@pytest.mark.parametrize("config", CONFIGS)
def test_the_text_agrees_with_the_interpreter(config: str, width: int, seeds: tuple[int, ...]) -> None:
    sizes = {"B": 1, "H": 2, "S": 70, "G": 1, "T": 130, "R": 128}
    for launch in FAMILIES[bf16][width].trace(config).launches:
        own = {symbol.name: sizes[symbol.name] for symbol in launch.kernel.sizes}
        found = validate(launch.kernel, (own,), seeds=seeds)
        assert all(each.right and each.elements for each in found.trials), found


MASKED = "        with when(m < own.clear):"
MEETING = '        sync("both", threads=2 * 128)\n'
ADDITION = "        copy(self.of_queries, self._target(b, h, m), combine=add)\n"
EDITS: dict[str, tuple[str, ModuleType, tuple[str, str]]] = {
    "mask off by one": ("causal", of_keys, ("m * bm + r, own", "m * bm + r + 1, own")),
    "mask of queries off by one": ("causal", of_queries, ("n * self.cfg.bn + t)", "n * self.cfg.bn + t - 1)")),
    "sums of another head": (
        "full",
        of_keys,
        ("problem.L[b].tile((1, bm), (h, m))", "problem.L[b].tile((1, bm), (g, m))"),
    ),
    "keys of another head": ("full", of_queries, ("(each, b, h // problem.group)", "(each, b, 0 * h)")),
    "scale in the wrong place": (
        "full",
        of_keys,
        (
            "fma(weights, own.scale, -sums)",
            "(weights - sums) * own.scale",
        ),
    ),
    "scale of keys left out": ("full", of_keys, ("self.of_keys.total * (c * LN_2)", "self.of_keys.total * LN_2")),
    "scale of queries in other units": ("full", of_queries, ("self.out * (c * LN_2)", "self.out * c")),
    "products not less their sum": ("full", of_queries, ("(self.products - own.delta)", "self.products")),
    "sums in other units": ("full", of_rows, ("sums * LOG2_E", "sums * 1.0")),
    "half of the rows": ("full", of_rows, ("padded // cfg.rows", "padded // cfg.rows // 2")),
    "values' products of the scores": ("full", of_keys, ("weights * (self.products - delta), q.q)", "weights, q.q)")),
    "one block less": (
        "full",
        of_keys,
        (
            "for i in loop(problem.group * count):\n            self",
            "for i in loop(problem.group * count - 1):\n            self",
        ),
    ),
    "first block too late": (
        "causal",
        problem,
        ("first - self.offset) // queries", "first - self.offset + 1) // queries"),
    ),
    "a masked block too few": ("causal", problem, ("+ keys - 1, queries)", "+ keys - 1 - queries, queries)")),
    "no mask": ("causal", of_keys, (MASKED, MASKED.replace("m <", "m < 0 *"))),
    "scores not waited for": ("full 256", of_keys, ("wait(0 if self.products is None else 1)", "wait(1)")),
    "early release": (
        "full",
        of_queries,
        (
            "        wgmma.wait(0)\n        self.rings.k.release()",
            "        self.rings.k.release()\n        wgmma.wait(0)",
        ),
    ),
    "no meeting in a step": ("full_added", of_all, (MEETING + "        mma(", "        sync()\n        mma(")),
    "no meeting before a tile": ("full_added", of_all, (MEETING[:-1] + "  #", "        sync()  #")),
    "a meeting of one warpgroup": (
        "full_added",
        of_all,
        (MEETING + "        mma(", MEETING.replace("2 *", "1 *") + "        mma("),
    ),
    "changes in one buffer": ("full_added", of_all, ("self.changes[i % 2]", "self.changes[0 * i]")),
    "changes not fenced": ("full_added", of_all, ('        fence("async proxy")\n', "")),
    "changes in one place": ("full_added", of_all, ("(ROWS, cfg.bm), (self.number, 0)", "(ROWS, cfg.bm), (0, 0)")),
    "changes in the other's place": (
        "full_added",
        of_all,
        ("(ROWS, cfg.bm), (self.number, 0)", "(ROWS, cfg.bm), (1 - self.number, 0)"),
    ),
    "columns of the other": (
        "full_added",
        of_all,
        ("(0, self.number)), init=True)", "(0, 1 - self.number)), init=True)"),
    ),
    "sums not waited for": (
        "full_added",
        of_all,
        ("        wgmma.wait(1)\n        self.rings.do", "        self.rings.do"),
    ),
    "added to the next queries": ("full_added", of_all, ("self._target(b, h, m)", "self._target(b, h, m + 1)")),
    "added to one head": (
        "full_added",
        of_all,
        ("self._target(b, h, m)", "self._target(b, h - h % self.problem.group, m)"),
    ),
    "added to one half": ("full_added", of_all, ("self.number * (width // 2) + c, width)", "c, width)")),
    "added twice": ("full_added", of_all, (ADDITION, ADDITION + ADDITION)),
    "cleared for one head": ("full_added", of_all, ("cfg.rows), sums.shape[1],", "cfg.rows), 1,")),
    "rounded at other places": (
        "full_added",
        of_all,
        ("(cfg.rows // 2) + row, column", "(cfg.rows // 2) + row, (column + 1) % width"),
    ),
    "rounded in other units": ("full_added", of_all, ("(s * LN_2)", "s")),
    "first block too late, added": (
        "causal_added",
        problem,
        ("first - self.offset) // queries", "first - self.offset + 1) // queries"),
    ),
}
"""Twins of one edit of a module: configuration, with its elements of a head if not 64, and edit."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    config, module, edit = EDITS[name]
    chosen, _, width = config.partition(" ")
    made = twin(FAMILIES[bf16][int(width or 64)], chosen, module, edit)
    verdict = verify_program(made, solver="z3", budget=BRIEF).verdict

    assert isinstance(verdict, Unknown | Refuted), verdict


def itself(value: object, *_: object) -> object:
    return value


@pytest.mark.nightly
def test_groups_have_their_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "by_digits", itself)
    verdict = verify_program(FAMILIES[bf16][64].trace("causal"), solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown)
