"""Decode attention on paged keys and values: proved, its text computes what the interpreter does, twins are refuted."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

import pytest
from attrs import evolve

from argus.core.verdict import Proved, Verdict
from argus.kernels.decode import CONFIGS, FAMILIES
from argus.kernels.schedules import decode as schedule
from argus.runtime.kernel_cache import LAUNCH
from argus.verifier.program import verify_program

NO_RUNS = evolve(LAUNCH, runs=0)
BF16, F16 = FAMILIES


def verdict(dtype: str, width: int, config: str, solver: str = "z3") -> Verdict:
    return verify_program(FAMILIES[dtype][width], config=config, solver=solver, budget=NO_RUNS).verdict


FIRST = (BF16, 128, "page_64_blocks_4")
EACH = [(BF16, width, name) for width, configs in CONFIGS.items() for name in configs]
OTHERS = [(F16, width, name) for width, configs in CONFIGS.items() for name in configs if "_blocks_16" in name]


@pytest.mark.share(12, among="attention and decoding")
@pytest.mark.parametrize(
    ("dtype", "width", "config"),
    [each if each == FIRST else pytest.param(*each, marks=pytest.mark.nightly) for each in EACH + OTHERS],
)
def test_every_configuration_is_proved(dtype: str, width: int, config: str) -> None:
    found = verdict(dtype, width, config)

    assert isinstance(found, Proved), found
    assert {"I4", "I5", "I34", "I37", "I39"} <= dict(found.coverage).keys()
    claimed = [line.split("(")[1].split(",")[0] for line in found.results if line.startswith("assert_equals")]
    assert sorted(claimed) == ["LSE", "LSE", "O", "O"]


ONE, SEVERAL = "page_16_blocks_4", "page_16_blocks_4_tokens_8"
TWINS = {
    "minimum(first // cfg.page, N - 1)": ("minimum(first // cfg.page + 1, N - 1)", ONE),
    "held.tile((fetched, width), (n, 0))": ("held.tile((fetched, width), (bn // fetched - 1 - n, 0))", ONE),
    "i * bn + j < seen(": ("i * bn + j <= seen(", ONE),
    "out[:] = out * rescale\n": ("\n", ONE),
    "low, high = z * cfg.blocks,": ("low, high = z * cfg.blocks + minimum(z, 1),", ONE),
    "count = ceil_div(ceil_div(": ("count = ceil_div((lambda n, d: n // d)(", ONE),
    "rescale + w * load(values": ("rescale + load(values", ONE),
    "out[:] = out * rescale + w": ("out[:] = out + w", ONE),
    "weights[:] = weights * rescale + w": ("weights[:] = weights + w", ONE),
    "(slot.v, cache.V)": ("(slot.v, cache.K)", ONE),
    "length - (tokens - 1 - s) if": ("length - (tokens - s) if", SEVERAL),
    "length - (tokens - 1 - s)": ("length - tokens + 1", SEVERAL),
    "lambda r, d: (r % cfg.heads, token + r // cfg.heads, d)": (
        "lambda r, d: (r % cfg.heads, 7 - token - r // cfg.heads, d)",
        SEVERAL,
    ),
    "lambda r: (token + r // cfg.heads, r % cfg.heads)": (
        "lambda r: (7 - token - r // cfg.heads, r % cfg.heads)",
        SEVERAL,
    ),
    "rescale + w * load(sums": ("rescale + load(sums", SEVERAL),
    "guard = where(now == -inf, 0.0, now) if cfg": ("guard = now if cfg", SEVERAL),
    "guard = where(now == -inf, 0.0, now) if of": ("guard = now if of", SEVERAL),
}


@pytest.mark.nightly
@pytest.mark.parametrize("twin", TWINS)
def test_twins_of_one_edit_are_not_proved(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, (other, config) = inspect.getsource(schedule), TWINS[twin]
    assert source.count(twin) == 1
    edited = ModuleType("edited")
    edited.__dict__.update(schedule.__dict__)
    exec(compile(source.replace(twin, other), schedule.__file__, "exec"), edited.__dict__)  # noqa: S102 reason: one edit
    kernels, claims = import_module("argus.kernels.decode"), import_module("argus.kernels.schedules.decode_claims")
    assert claims.seen is schedule.seen  # the claims stay as they are
    for name in ("decode_parts", "decode_merge"):
        monkeypatch.setattr(kernels, name, edited.__dict__[name])

    assert not isinstance(verdict(BF16, 128, config), Proved)
