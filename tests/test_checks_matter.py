"""Each check of the verifier earns its place: with it switched off, a broken twin passes as proved."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argus.core.algebra import TRUE
from argus.core.dsl.kernel import Template
from argus.core.index import Cond
from argus.core.proof import budgets, claims, epochs, flow, integers, memory, outputs, races, timeline
from argus.core.proof.obligation import Obligation
from argus.core.verdict import Proved, Refuted
from argus.verify import verify

REFUTED = Path(__file__).parent / "corpus" / "refuted"
Patch = Callable[[pytest.MonkeyPatch], None]


def load(name: str) -> Template:
    spec = importlib.util.spec_from_file_location(f"twin_{name}", REFUTED / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(value for value in vars(module).values() if isinstance(value, Template))


def nothing(*_: object) -> Iterator[Obligation]:
    return iter(())


def always(*_: object) -> bool:
    return True


def without(module: object, name: str) -> Patch:
    return lambda patch: patch.setattr(module, name, nothing)


def loads_arrive_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(flow.Flow, "_arrived", always)


def any_count_will_do(patch: pytest.MonkeyPatch) -> None:
    for module in (claims, outputs):
        patch.setattr(module, "holds_once", yes)


def yes(*_: object) -> Cond:
    return TRUE


def every_queue_is_a_counter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timeline, "_elsewhere", no_objection)


def no_objection(_: object) -> str:
    return ""


def nobody_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epochs.Epochs, "lead", never_ahead)


def never_ahead(*_: object) -> int:
    return 0


CASES: tuple[tuple[str, str, Patch], ...] = (
    ("cp_async_without_a_wait", "I31", every_queue_is_a_counter),
    ("lds_over_budget", "I22", without(budgets, "_storage")),
    ("bank_conflicts", "I33", without(budgets, "_banks")),
    ("store_without_predicate", "I37", without(memory, "_bounds")),
    ("misaligned_vector", "I19", without(memory, "_vectors")),
    ("descriptor_too_large", "I28", without(integers, "_offsets")),
    ("missing_barrier_raw", "I5", without(races, "obligations")),
    ("missing_barrier_war", "I36", without(races, "obligations")),
    ("undrained_read", "I30", without(races, "obligations")),
    ("undrained_write", "I31", without(races, "obligations")),
    ("dropped_skew", "I32", without(epochs, "obligations")),
    ("dropped_unskew", "I32", without(epochs, "obligations")),
    ("wait_after_the_licensing_barrier", "I30", nobody_leads),
    ("pingpong_missing_barrier", "I36", nobody_leads),
    ("half_stored_twice", "I4", without(claims, "written_once")),
    ("wait_dropped", "I31", loads_arrive_at_once),
    ("wait_too_weak", "I31", loads_arrive_at_once),
    ("swapped_k_order", "I1", without(claims, "products")),
    ("k_counted_twice", "I3", any_count_will_do),
    ("blocks_collide", "I4", without(claims, "written_once")),
    ("grid_too_small", "I4", without(claims, "written_once")),
    ("claim_off_by_one", "I4", without(outputs, "_holds_record")),
    ("relation_too_strong", "I39", without(claims, "_relation")),
)


@pytest.mark.parametrize(("twin", "code", "switch_off"), CASES, ids=[f"{code}-{twin}" for twin, code, _ in CASES])
def test_a_twin_slips_past_without_its_check(
    twin: str, code: str, switch_off: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load(twin)
    verdict = verify(kernel, solver="z3").verdict
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == code

    switch_off(monkeypatch)

    assert isinstance(verify(kernel, solver="z3").verdict, Proved)
