"""Schedules whose rows of C may have any length, and pairs of CTAs with swap-AB: proved, and not after one edit."""

# pyright: reportInvalidTypeForm=false
# Reason: extents in quotes are names of sizes.

from __future__ import annotations

import inspect
from types import ModuleType

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.schedules import hopper, narrow, skinny
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import identity, of_each
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.skinny import Skinny
from argus.language import Template, Tensor, bf16, kernel
from argus.verifier.kernel import verify

Config = Hopper | Narrow | Skinny
OF_ROWS, PAIRS = Hopper(bm=64, bn=96, stages=3, pingpong=True, single=True), Skinny(32, 64, 3, 128, peers=2)
LEFT = "place), via=st_global_b16, edge=0)"
SYNCED, LAST = "copy(deferred(), box)\n        sync()\n", "    sync()  # the last tile's last part has been read\n"
EDITS: dict[str, tuple[ModuleType, Config, str, str]] = {
    "boxes are read before all have written them": (hopper, OF_ROWS, SYNCED, "copy(deferred(), box)\n"),
    "the last tile's part is overwritten": (hopper, OF_ROWS, LAST, ""),
    "one box for all parts": (hopper, OF_ROWS, "boxes[j % 2]", "boxes[0]"),
    "rows of C are stored beyond its end": (hopper, OF_ROWS, LEFT, "place), via=st_global_b16)"),
    "a tile is read before it is written": (narrow, Narrow(bn=64), "    sync()\n    by = spread", "    by = spread"),
    "parts of columns change places": (narrow, Narrow(bn=64), "at[1] * count + j", "at[1] * count + count - 1 - j"),
    "each loads the same part": (skinny, PAIRS, "part(each, cluster.rank,", "part(each, 0 * cluster.rank,"),
    "a CTA ends before its peer": (skinny, PAIRS, "        ring.finish()\n", ""),
}


def traced(module: ModuleType, config: Config) -> Template:
    @kernel(configs={"trial": config}, name="any_rows")
    def product(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
        problem = Contraction(A, B, C)
        match cfg:
            case Hopper():
                module.hopper_pingpong(problem, cfg, of_each(identity))
            case Narrow():
                module.hopper_narrow(problem, cfg)
            case Skinny():
                module.hopper_skinny(problem, cfg)
        problem.finish()

    return product


def verdict_of(module: ModuleType, config: Config) -> object:
    return verify(traced(module, config), config="trial", solver="z3", budget=evolve(Budget(), runs=0)).verdict


@pytest.mark.share(3)
@pytest.mark.parametrize(("module", "config"), [(hopper, OF_ROWS), (narrow, Narrow(bn=64)), (skinny, PAIRS)])
def test_the_schedules_are_proved(module: ModuleType, config: Config) -> None:
    assert isinstance(verdict_of(module, config), Proved)


@pytest.mark.share(12)
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    module, config, old, new = EDITS[name]
    text, made = inspect.getsource(module), ModuleType("edited")
    assert text.count(old) == 1
    exec(compile(text.replace(old, new), module.__file__ or "", "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    assert not isinstance(verdict_of(made, config), Proved), name
