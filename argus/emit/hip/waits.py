"""Lower `Wait` to `s_waitcnt`: from outstanding statements to outstanding instructions.

`Wait` counts statements of a queue, the hardware counts instructions. The immediate must not exceed the fewest
instructions that the youngest statements issue on any path; a smaller one is safe and waits longer.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from argus.core.atom import Queue
from argus.core.ir import Copy, For, If, Kernel, Stmt, Wait, bodies, walk
from argus.emit.copies import is_predicated, vector_starts
from argus.emit.faults import not_built
from argus.emit.scope import Scope

# For each path, the fewest instructions that each of the queue's youngest statements issues; the youngest is last.
_Paths = frozenset[tuple[int, ...]]

_FIELD_LIMIT: Mapping[str, int] = {"vmem": 63, "lds": 15}


def wait_immediate(queue: Queue, count: int) -> int:
    """The operand of `s_waitcnt` on gfx9 that waits for one counter and leaves the others alone.

    vmcnt is bits 15:14 and 3:0, expcnt bits 6:4, lgkmcnt bits 11:8 [LLVM AMDGPU user guide, "waitcnt" operand].
    A count above what the field holds is clamped, which waits longer. Raises ArgusError (E501) for other queues.
    """
    if queue not in _FIELD_LIMIT:
        raise not_built(f"a wait on the queue `{queue}`")
    clamped = min(count, _FIELD_LIMIT[queue])
    vector, local = (clamped, 15) if queue == "vmem" else (63, clamped)
    return (vector & 15) | (vector >> 4) << 14 | 7 << 4 | local << 8


def wait_counts(kernel: Kernel, scope: Scope) -> dict[Wait, int]:
    """For each wait, the number of instructions it may leave outstanding."""
    waits = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Wait)]
    counts: dict[Wait, int] = {}
    queues: tuple[Queue, ...] = tuple(dict.fromkeys(stmt.queue for stmt in waits))
    for queue in queues:
        depth = max(stmt.pending for stmt in waits if stmt.queue == queue)
        _QueueAnalysis(queue, depth, scope, counts).body(kernel.body, frozenset({()}))
    return counts


@define
class _QueueAnalysis:
    queue: Queue
    depth: int
    scope: Scope
    counts: dict[Wait, int]

    def body(self, body: tuple[Stmt, ...], paths: _Paths) -> _Paths:
        for stmt in body:
            paths = self._stmt(stmt, paths)
        return paths

    def _stmt(self, stmt: Stmt, paths: _Paths) -> _Paths:
        match stmt:
            case Copy() if stmt.atom.completion.queue == self.queue:
                issued = fewest_instructions(stmt, self.scope)
                return frozenset(self._youngest((*path, issued), self.depth) for path in paths)
            case Wait() if stmt.queue == self.queue:
                left = frozenset(self._youngest(path, stmt.pending) for path in paths)
                count = min(sum(path) for path in left)
                self.counts[stmt] = min(count, self.counts.get(stmt, count))
                return left
            case For(body=body):
                return self._loop(body, paths)
            case If(then=then, otherwise=otherwise):
                return self.body(then, paths) | self.body(otherwise, paths)
            case _:
                for part in bodies(stmt):
                    paths = paths | self.body(part, paths)
                return paths

    def _loop(self, body: tuple[Stmt, ...], paths: _Paths) -> _Paths:
        while True:
            after = paths | self.body(body, paths)
            if after == paths:
                return paths
            paths = after

    def _youngest(self, path: tuple[int, ...], count: int) -> tuple[int, ...]:
        return path[max(0, len(path) - count) :]


def fewest_instructions(copy: Copy, scope: Scope) -> int:
    """Fewest instructions that a wave issues, assuming that the compiler merges adjacent ones up to 128 bits."""
    if is_predicated(copy, scope):
        return 0
    bits = copy.atom.vector_bits
    count = len(vector_starts(copy))
    return count if bits >= 128 else count * bits // 128
