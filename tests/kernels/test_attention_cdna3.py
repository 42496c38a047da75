"""The attention family on MI300X: proved, right as interpreted and as emitted, compiled; wrong twins are refuted."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.run import run
from argus.kernels.attention import CDNA3, attention_64
from argus.kernels.attention import FAMILIES as KERNELS
from argus.kernels.schedules import attention as problem
from argus.kernels.schedules import attention_cdna3 as schedule
from argus.language import Template, bf16, f16
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

Array = npt.NDArray[Any]
FAMILIES: dict[str, tuple[int, Template]] = {
    f"{width}{suffix}": (width, family)
    for dtype, suffix in ((bf16, ""), (f16, " f16"))
    for width, family in KERNELS[dtype].items()
}
ALL = [(name, config) for name, (width, _) in FAMILIES.items() for config in CDNA3[width]]


@pytest.mark.share(64, among="attention on gfx942")
@pytest.mark.parametrize(("name", "config"), ALL)
def test_every_configuration_is_proved(name: str, config: str) -> None:
    verdict = verify(FAMILIES[name][1], config=config, solver="z3").verdict

    assert isinstance(verdict, Proved), verdict
    wanted = {"I1", "I3", "I4", "I5", "I24", "I25", "I26", "I30", "I31", "I36"}
    assert wanted <= dict(verdict.coverage).keys()


@pytest.mark.share(64, among="attention on gfx942")
@pytest.mark.parametrize("options", [{"branch": True}, {"slices": 4, "branch": True}], ids=str)
def test_what_is_not_shipped_is_proved_too(options: dict[str, Any]) -> None:
    trial = evolve(attention_64, configs={"trial": evolve(CDNA3[64]["cdna3_causal"], **options)})

    assert isinstance(verify(trial.trace("trial"), solver="z3").verdict, Proved)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "config"), [each for each in ALL if "f16" not in each[0]])
def test_the_other_solver_proves_it_too(name: str, config: str) -> None:
    assert isinstance(verify(FAMILIES[name][1], config=config, solver="cvc5").verdict, Proved)


RUN = [
    pytest.param(
        *each, marks=pytest.mark.share(96, among="attention cdna3") if each[0].startswith("64") else pytest.mark.nightly
    )
    for each in ALL
]
"""What the interpreter runs: the narrow ones in the default tier."""
SIZES = (
    {"B": 1, "H": 1, "S": 1, "G": 1, "T": 1},
    {"B": 1, "H": 2, "S": 65, "G": 1, "T": 300},
    {"B": 2, "H": 2, "S": 130, "G": 2, "T": 140},
    {"B": 1, "H": 1, "S": 270, "G": 1, "T": 290},
)
"""One key; grouped heads and keys of several blocks; two sequences; two tiles of queries."""


@pytest.mark.share(64, among="texts of attention")
@pytest.mark.parametrize(("name", "config"), RUN)
def test_the_text_agrees_with_the_interpreter(name: str, config: str) -> None:
    found = validate(FAMILIES[name][1].trace(config), SIZES, seeds=1)

    assert all(each.right and each.elements for each in found.trials), found


def exact(q: Array, k: Array, v: Array, scale: float, *, causal: bool) -> tuple[Array, Array]:
    """O and LSE in float64."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(each.astype(np.float64), group, axis=1) for each in (k, v))
    scores = np.einsum("bhqd,bhtd->bhqt", q.astype(np.float64), k) * scale
    if causal:
        rows, keys = scores.shape[2:]
        scores[:, :, ~np.tri(rows, keys, keys - rows, dtype=np.bool_)] = -np.inf
    high = scores.max(-1, keepdims=True)
    weights = np.exp(scores - high)
    total = weights.sum(-1, keepdims=True)
    return np.einsum("bhqt,bhte->bhqe", weights / total, v), (high + np.log(total))[..., 0]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("name", "config"), RUN)
def test_the_interpreter_agrees_with_float64(name: str, config: str, sizes: dict[str, int]) -> None:
    (width, family), random = FAMILIES[name], np.random.default_rng(sum(sizes.values()))
    kind = np.dtype(np.float16 if "f16" in name else ml_dtypes.bfloat16)
    kernel, scale = family.trace(config), 1.5 / sqrt(width)
    q, k, v = (
        random.standard_normal((sizes["B"], sizes[heads], sizes[rows], width)).astype(kind)
        for heads, rows in ("HS", "GT", "GT")
    )

    given = {"Q": q, "K": k, "V": v, "scale": np.array([scale / np.log(2.0)], np.float32)}
    outcome = run(kernel, sizes, given)

    found = outcome.arrays
    assert not outcome.violations
    out, lse = exact(q, k, v, scale, causal=family.configs[config].causal)
    assert np.abs(found["O"].astype(np.float64) - out).max() < 2.0**-6 * np.abs(out).max()
    assert np.abs(found["LSE"] - lse).max() < 1e-4


@pytest.mark.share(96, among="attention cdna3")
@pytest.mark.parametrize(("name", "config"), ALL)
def test_it_is_compiled_without_spills_for_two_waves_a_simd(name: str, config: str, tmp_path: Path) -> None:
    width, family = FAMILIES[name]
    kernel, cfg = family.trace(config), CDNA3[width][config]
    assert isinstance(kernel, Kernel)
    made = build(kernel, directory=tmp_path)

    report = made.report
    assert isinstance(report, ResourceReport)
    assert made.warnings == ()
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)
    assert report.registers <= 256
    assert report.occupancy == 2
    assert report.lds_bytes == 2 * 2 * cfg.bn * width * 2  # two buffers each of keys and values
    products = cfg.bn * cfg.bm * width * 2 // 8  # of a block and a wave, in both products
    depth = {16: 16, 32: 8}[cfg.mfma]
    assert report.count("v_mfma") >= products // (cfg.mfma**2 * depth)


FULL = CDNA3[64]["cdna3"]
TRIED = evolve(
    attention_64,
    configs={**attention_64.configs, "branch": evolve(FULL, branch=True), "sliced": evolve(FULL, slices=4)},
)
EDITS: dict[str, tuple[str, ModuleType, tuple[str, str]]] = {
    "mask off by one": ("cdna3_causal", problem, ("(t <= last) & below", "(t <= last + 1) & below")),
    "keys of another head": ("cdna3", schedule, ("problem.K[b, g]", "problem.K[b, 0 * g]")),
    "values of another head": ("cdna3", schedule, ("problem.V[b, g]", "problem.V[b, 0 * g]")),
    "one block less": ("cdna3", schedule, ("loop(count)", "loop(count - 1)")),
    "last values left out": ("cdna3", schedule, ("        self._sum_values(count - 1)\n", "")),
    "values not behind": ("cdna3", schedule, ("self._sum_values(n - 1)", "self._sum_values(n)")),
    "keys of the block after": ("cdna3", schedule, ("stage.keys[n % 2].part", "stage.keys[(n + 1) % 2].part")),
    "first values of another block": ("cdna3", schedule, ("stage.fetch_values(0)", "stage.fetch_values(1)")),
    "one buffer of values": (
        "cdna3",
        schedule,
        ("self.values[n % 2], via=ds_write_b64", "self.values[0 * n], via=ds_write_b64"),
    ),
    "early overwrite": ("cdna3", schedule, ("stage.store_values(ahead)", "stage.store_values(ahead + 1)")),
    "groups store alike": (
        "cdna3",
        schedule,
        ("self.stage, n + self.group", "self.stage, n + 0 * self.group"),
    ),
    "no barrier before stores": ("cdna3", schedule, ("        sync()\n        weights", "        weights")),
    "stores not waited for": (
        "cdna3",
        schedule,
        ("        lds.wait(0)  # before the barrier that lets the other group read\n", ""),
    ),
    "loads not waited for": ("cdna3", schedule, ("        vmem.wait(0)\n        self.turned", "        self.turned")),
    "second group left behind": (
        "cdna3",
        schedule,
        ("        with when(eq(self.group, 0)):\n            sync()\n", ""),
    ),
    "bank conflicts": ("cdna3", schedule, ("Swizzle(4, 2, max", "Swizzle(3, 2, max")),
    "mask without the end": ("cdna3", problem, ("below, last = t < self.keys", "below, last = t >= 0")),
    "another head": ("cdna3", schedule, ("b, h // problem.group)", "b, h % problem.K.shape[1])")),
    "no rescale": ("cdna3", schedule, ("self.out[:] = self.out * factor", "self.out[:] = self.out * 1.0")),
    "rescaled twice": ("branch", schedule, ("rescale(self.out, factor)", "rescale(self.out, factor * factor)")),
    "rescaled by none": ("branch", schedule, ("            rescale(self.out, factor)\n", "            pass\n")),
    "a slice of keys twice": ("sliced", schedule, ("self._read_keys(n, s + 1)", "self._read_keys(n, s)")),
    "a slice not waited for": (
        "sliced",
        schedule,
        ("                lds.wait(0)\n                following", "                following"),
    ),
    "sum without its rescale": ("cdna3", problem, ("rows.sums * rescale + weights", "rows.sums + weights")),
    "scale of the maximum left out": ("cdna3", problem, ("else high * -self.scale", "else -high")),
}
FOUND = {
    "mask off by one": "I25",
    "keys of another head": "I2",
    "values of another head": "I26",
    "one block less": "I5",
    "last values left out": "I25",
    "values not behind": "I5",
    "keys of the block after": "I5",
    "one buffer of values": "I5",
    "early overwrite": "I5",
    "groups store alike": "I5",
    "no barrier before stores": "I36",
    "stores not waited for": "I31",
    "loads not waited for": "I31",
    "second group left behind": "I32",
    "bank conflicts": "I33",
    "a slice of keys twice": "I1",
    "a slice not waited for": "I31",
}
"""The invariant that refutes a twin. Of the others no run that is tried shows a violation: they compute wrong values of
the right elements, in which no claim without a formula is violated, or need more heads or keys than are tried."""


@pytest.mark.share(128, among="twins of attention on gfx942")
@pytest.mark.parametrize("solver", ["z3", pytest.param("cvc5", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", FOUND)
def test_a_twin_of_one_edit_is_refuted(name: str, solver: str) -> None:
    config, module, edit = EDITS[name]
    verdict = verify(twin(TRIED, config, module, edit), solver=solver).verdict

    assert isinstance(verdict, Refuted), verdict
    assert verdict.counterexample.code == FOUND[name]


@pytest.mark.share(128, among="twins of attention on gfx942")
@pytest.mark.parametrize("name", sorted(EDITS.keys() - FOUND.keys()))
def test_another_twin_is_not_proved(name: str) -> None:
    config, module, edit = EDITS[name]
    made = twin(TRIED, config, module, edit)
    verdict = verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict

    assert isinstance(verdict, Unknown), verdict
