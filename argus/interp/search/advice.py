"""What usually does against a fault, by the invariant that it breaks."""

from __future__ import annotations

from collections.abc import Mapping

_ADVICE: Mapping[str, str] = {
    "I1": "the two operands must bring the same number to every product: compare the tiles' numbers, the swizzles on "
    "both sides of shared memory, and the fragments' layouts",
    "I2": "give both operands, and every product of one sum, elements of one row and column",
    "I3": "follow the tiles through the loop: its trip count, each tile's number, how often the sum is fed, and where "
    "`init` resets it",
    "I4": "let each element of the output be stored by one statement of one block, from the tile of its coordinates",
    "I5": "wait for the phase of `full` before the slot is read, and for that of `empty` before it is written; "
    "all readers meet before one of them gives the slot back",
    "I6": "let use u of a ring of S slots wait for phase `u // S` of `full` and `u // S - 1` of `empty`, u counted on "
    "across tiles; agents that skip uses take turns; `Ring` and `Turns` do both",
    "I7": "announce with `arrive(bytes=...)` what the copies of the phase land: whole boxes, also outside the tensor",
    "I8": "let as many threads arrive in each phase as the barrier is set up for, once for each use: one of an agent, "
    "`with elected():`; a loop of no trip has nothing to give back",
    "I9": "let every path arrive where others wait: as many uses in every role, fewer products in flight than slots",
    "I10": "put `wgmma.wait(...)` before the release of the slot that the product reads",
    "I11": "put `wgmma.wait(0)` before the registers of a product are used",
    "I12": 'after the writes, `fence("async proxy")` by every thread that wrote, then `sync()`, then the copy',
    "I13": "the thread that issued the store calls `bulk.wait(...)`; a `sync()` tells those who write the buffer next",
    "I14": "make barriers before the roles: a fence and a meeting of all threads follow them",
    "I15": "let the role that fills end with `ring.finish()`, or all threads with `cluster.sync()` after the roles",
    "I16": "let all blocks of a multicast's mask work on tiles that share the operand, and name the same ranks",
    "I29": "the thread that issued the copies waits, `bulk.wait(0)`, before `replace`; after it, `release()` and then "
    "`acquire()` come before the next copy",
    "I31": "wait for the copy before its target is used: `cp_async.commit()`, `cp_async.wait(0)`, then `sync()`",
    "I36": "put a `sync()` between the reads and the writes that follow",
}


def advised(code: str) -> str:
    """A repair, empty if there is none of this kind."""
    return _ADVICE.get(code, "")
