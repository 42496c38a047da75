"""Tiles that agents of a role exchange at a barrier of all of them: each check is needed."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.proof.sync import visibility
from argus.core.proof.sync.progress import SharedAccess
from argus.core.proof.sync.roles import agent_exchange
from argus.core.proof.sync.stages import may_conflict
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import load_edited, no_obligations, no_refusal

BRIEF = evolve(Budget(), runs=0)
NAME = "agents_exchange_tiles"
INNER = '                sync("both", threads=256)\n                mma('
STORE = "both[k % 2].tile((64, 16), (0, wg))"
ONLY_ONE = (
    ("persistent, registers", "persistent, when, registers"),
    (
        INNER,
        '                with when(eq(wg, 0)):\n                    sync("both", threads=256)\n' + INNER,
    ),
)


def one_agents(later: SharedAccess, earlier: SharedAccess, *, agents: bool = False) -> bool:
    del agents
    return may_conflict(later, earlier)


RACES = {
    "no barrier before a tile": ('sync("both", threads=256)  #', "sync()  #"),
    "no barrier in a step": (INNER, INNER.replace('"both", threads=256', "")),
    "no fence": ('                fence("async proxy")\n', ""),
    "one buffer": ("both[k % 2].tile", "both[0 * k].tile"),
}
TWINS = {
    "another's place": ((STORE, STORE.replace("wg", "1 - wg")),),
    "columns of the other": (("slot.b.tile((16, 32), (wg, 0))", "slot.b.tile((16, 32), (1 - wg, 0))"),),
    "half of the threads": ((INNER, INNER.replace("256", "128")),),
    "one place": ((STORE, STORE.replace("wg", "0")),),
    "a barrier of one": ONLY_ONE,
}


@pytest.mark.share(10, among="verifier: agents that exchange")
@pytest.mark.parametrize("name", RACES)
def test_a_race_is_not_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = [RACES[name]]
    if name == "one buffer":
        edits.append(("both[k % 2], slot", "both[0 * k], slot"))
    kernel = load_edited(NAME, *edits)
    assert isinstance(verify(kernel, solver="z3", budget=BRIEF).verdict, Unknown)
    monkeypatch.setattr(agent_exchange, "exchange_obligations", no_obligations)
    assert isinstance(verify(kernel, solver="z3", budget=BRIEF).verdict, Proved)


@pytest.mark.share(3)
def test_threads_of_one_number_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread loads what the thread of its number of agent 0 stores, without a barrier."""
    other = "load(both.tile((64, 16), (0, 0)), spread((64, 16), threads=128, vector=8))"
    one_buffer = (
        ("(2, 64, 32), swizzle", "(64, 32), swizzle"),
        ("to(bf16), both[k % 2]", "to(bf16), both"),
        ("acc, both[k % 2]", "acc, both"),
        ("ring.wait()\n", 'ring.wait()\n                sync("both", threads=256)\n'),
    )
    assert isinstance(verify(load_edited(NAME, *one_buffer), solver="z3", budget=BRIEF).verdict, Proved)
    kernel = load_edited(NAME, *one_buffer, (INNER, f"                {other}\n{INNER}"))
    assert isinstance(verify(kernel, solver="z3", budget=BRIEF).verdict, Unknown)
    monkeypatch.setattr(visibility, "may_conflict", one_agents)
    assert isinstance(verify(kernel, solver="z3", budget=BRIEF).verdict, Proved)


@pytest.mark.share(10, among="verifier: agents that exchange")
@pytest.mark.parametrize("name", TWINS)
def test_a_twin_is_not_proved(name: str) -> None:
    verdict = verify(load_edited(NAME, *TWINS[name]), solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown), verdict


def test_a_barrier_of_one_agent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for ever for the others."""
    kernel = load_edited(NAME, *ONLY_ONE)
    verdict = verify(kernel, solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown)
    assert "in a branch" in verdict.reason
    monkeypatch.setattr(agent_exchange, "_check", no_refusal)
    assert isinstance(verify(kernel, solver="z3", budget=BRIEF).verdict, Proved)


STEP = """                part = load(slot.b.tile((16, 32), (wg, 0)), spread((16, 32), threads=128, vector=4))
                copy(part, rows[wg, k % 2])
"""
STAGED = (
    ("b=shared(bf16, (32, 32), swizzle=64)", "b=shared(bf16, (32, 32))"),
    ("    tiles = persistent", "    rows = shared(bf16, (2, 2, 16, 32), swizzle=64)\n    tiles = persistent"),
    ('                fence("async proxy")\n', STEP + '                fence("async proxy")\n'),
    ("slot.b.tile((16, 32), (wg, 0)), init", "rows[wg, k % 2], init"),
)
"""Edits after which the product reads no stage: one factor is what the agents exchange, the other an agent's own."""


@pytest.mark.share(3)
def test_a_product_of_no_stage_is_complete_before_what_it_reads_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is ahead by a step may store into what the other's product of the step before still reads."""
    assert isinstance(verify(load_edited(NAME, *STAGED), solver="z3", budget=BRIEF).verdict, Proved)
    last = ("            copy(acc.to(bf16), C", "            wgmma.wait(0)\n            copy(acc.to(bf16), C")
    kernel = load_edited(NAME, *STAGED, ("                wgmma.wait(0)\n", "                wgmma.wait(1)\n"), last)
    verdict = verify(kernel, solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown)
    assert "products that read `both` are complete" in verdict.reason
    monkeypatch.setattr(agent_exchange, "exchange_obligations", no_obligations)
    assert isinstance(verify(kernel, solver="z3", budget=BRIEF).verdict, Proved)


def test_a_product_of_no_stage_needs_a_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    without = ('                fence("async proxy")\n                sync', "                sync")
    kernel = load_edited(NAME, *STAGED, without)
    verdict = verify(kernel, solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown)
    assert "asynchronous read" in verdict.reason
    monkeypatch.setattr(agent_exchange, "exchange_obligations", no_obligations)
    monkeypatch.setattr(visibility, "visibility_obligations", no_obligations)
    assert isinstance(verify(kernel, solver="z3", budget=BRIEF).verdict, Proved)


def test_a_release_needs_no_barrier_of_its_own_after_another() -> None:
    alone = ("ring.release()", "ring.release(sync=False)")
    assert isinstance(verify(load_edited(NAME, alone), solver="z3", budget=BRIEF).verdict, Proved)
    verdict = verify(load_edited(NAME, alone, (INNER, "                mma(")), solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown)
    assert "released by one thread while others may still read it" in verdict.reason


@pytest.mark.share(2)
def test_agents_release_equally_often() -> None:
    """A release an iteration late is the same for all agents; one from the iteration of the agent's number is not."""
    names = ("persistent, registers", "persistent, when, registers")
    late = "                with when(k >= {first}):\n                    ring.release()\n"
    last = ("            copy(acc.to(bf16), C", "            ring.release()\n            copy(acc.to(bf16), C")
    release = "                ring.release()\n"
    kernel = load_edited(NAME, names, (release, late.format(first=1)), last)
    assert isinstance(verify(kernel, solver="z3", budget=BRIEF).verdict, Proved)
    kernel = load_edited(NAME, names, (release, late.format(first="wg")), last)
    verdict = verify(kernel, solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown)
    assert "barriers of some agents alone" in verdict.reason
