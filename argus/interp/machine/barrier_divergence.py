"""Detects barrier divergence (I32): waves of a block that execute different numbers of block barriers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from argus.interp.machine.waves import Wave
from argus.interp.state import Block


def check(block: Block) -> None:
    """Report waves that still wait at a barrier after all other waves have ended."""
    waiting = [wave for wave in block.waves if wave.blocked]
    if not waiting:
        return
    block.launch.halted = True
    wave = waiting[0]
    done = min(block.waves, key=lambda other: other.arrivals)
    assert wave.barrier is not None
    last = None if done.barrier is None else done.barrier.stmt
    block.launch.reporter.report(
        "I32",
        f"wave {wave.number} waits at barrier {wave.arrivals}, but wave {done.number} ended after {done.arrivals}",
        wave.barrier,
        thread=block.base + wave.first,
        other_thread=block.base + done.first,
        facts=tuple((_name(run), _describe(run[0])) for run in _runs_of_equal_state(block.waves)),
        related=() if last is None or last is wave.barrier.stmt else ((last, f"the last of wave {done.number}"),),
    )


def _runs_of_equal_state(waves: Sequence[Wave]) -> list[list[Wave]]:
    """Runs of consecutive waves in the same state."""
    return [list(run) for _, run in groupby(waves, lambda wave: (wave.blocked, wave.arrivals))]


def _name(waves: Sequence[Wave]) -> str:
    first, last = waves[0].number, waves[-1].number
    return f"wave {first}" if first == last else f"waves {first} to {last}"


def _describe(wave: Wave) -> str:
    if wave.blocked:
        return f"at barrier {wave.arrivals}, which the others never reach"
    return f"ended after {wave.arrivals} barriers"
