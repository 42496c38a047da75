"""Standard repair advice for violations, by invariant."""

from __future__ import annotations

from collections.abc import Mapping

from argus.core.ir import Arrive, Await, Kernel, walk

_ADVICE: Mapping[str, str] = {
    "I1": "both operands of a product must carry equal tags, such as the same k: compare the tile indices of the two "
    "loads, the swizzles of the write and the read of shared memory, and the fragments' layouts",
    "I2": "multiply and accumulate only elements of the same output row and column",
    "I3": "check the loop that adds up: its trip count, the tile index of each load, how many products each "
    "accumulator gets, and where `init` resets it",
    "I4": "store each element of the output in exactly one statement of one block, from the tile at its coordinates",
    "I5": "wait for the phase of `full` before the stage is read, and for that of `empty` before it is written; "
    "synchronise all readers before one of them releases the stage",
    "I6": "let use u of a ring of S stages wait for phase `u // S` of `full` and `u // S - 1` of `empty`, with u "
    "counted across tiles; agents that skip uses need an order (`Turns`); `Ring` and `Turns` compute the phases",
    "I7": "announce with `arrive(bytes=...)` the bytes that the copies of the phase write: whole boxes, including the "
    "part outside the tensor",
    "I8": "let exactly as many threads arrive in each phase as the barrier counts, once per use: one thread of an "
    "agent with `with elected():`; a loop without iterations has no stage to release",
    "I9": "make sure that every path arrives where others wait: the same number of uses in every role, and fewer "
    "products in flight than stages",
    "I10": "put `wgmma.wait(...)` before the release of the stage that the product reads",
    "I11": "put `wgmma.wait(0)` before the registers of a wgmma are used",
    "I12": 'after the writes, `fence("async proxy")` by every thread that wrote, then `sync()`, then the copy',
    "I13": "call `bulk.wait(...)` in the thread that issued the store, then `sync()` before other threads write the "
    "buffer",
    "I14": "make barriers before the roles; the language then adds a fence and a barrier of all threads",
    "I15": "end the producer role with `ring.finish()`, or let all threads call `cluster.sync()` after the roles",
    "I16": "let all blocks of a multicast's mask work on tiles that share the operand, and name the same ranks",
    "I29": "call `bulk.wait(0)` in the thread that issued the copies before `replace`; after it, call `release()` and "
    "then `acquire()` before the next copy",
    "I31": "wait for the copy before its target is used: `cp_async.commit()`, `cp_async.wait(0)`, then `sync()`",
    "I34": "let the parts of a contraction adjoin, the first from 0 and the last to its end, add each of them once, "
    "and set what is added to in memory to zero first",
    "I36": "put a `sync()` between the reads and the writes that follow",
}

_WITHOUT_PHASES: Mapping[str, str] = {
    "I5": "put a `sync()` between the writes and the reads that follow, by all threads that take part; wait for an "
    "asynchronous copy before it",
    "I10": "put `wgmma.wait(...)`, then `sync()`, between the product and the writes that follow",
}
"""The advice for kernels in which no barrier has phases: there is no stage to wait for or to release."""


def advice_for(kernel: Kernel, code: str) -> str:
    """The advice for an invariant that a kernel violates; empty if there is none."""
    phases = any(isinstance(stmt, Await | Arrive) for stmt in walk(kernel.body))
    return _ADVICE.get(code, "") if phases else _WITHOUT_PHASES.get(code, _ADVICE.get(code, ""))
