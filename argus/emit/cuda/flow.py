"""Control flow of a machine function: basic blocks, dominators and natural loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from attrs import frozen

from argus.emit.cuda.sass import Function, Instruction

_INDIRECT = frozenset({"BRX", "JMX", "JMP"})
_ENDS = frozenset({"EXIT", "RET"}) | _INDIRECT
_JUMPS = frozenset({"BRA"})


@frozen
class Loop:
    """A natural loop: its first block, and all its blocks."""

    head: int
    blocks: frozenset[int]


@frozen
class Flow:
    """blocks: ranges of instructions, the entry first. dominators: of each block that is reached, itself among them.

    indirect: whether a jump's target is not known, so that there may be more paths. loops: inner ones first.
    """

    blocks: tuple[range, ...]
    dominators: Mapping[int, frozenset[int]]
    loops: tuple[Loop, ...]
    indirect: bool

    def block(self, instruction: int) -> int:
        """The block of an instruction."""
        return next(number for number, block in enumerate(self.blocks) if instruction in block)

    def loop(self, block: int) -> Loop | None:
        """The innermost loop around a block."""
        return next((loop for loop in self.loops if block in loop.blocks), None)

    def precedes(self, first: int, second: int) -> bool:
        """Whether every path to instruction `second` passes `first`, unless it begins at a later iteration."""
        one, other = self.block(first), self.block(second)
        return first < second if one == other else one in self.dominators.get(other, ())


def flow_of(function: Function) -> Flow:
    """The control flow of a function that is entered at its first instruction."""
    starts = sorted(set(_starts(function)))
    blocks = tuple(range(start, stop) for start, stop in pairwise([*starts, len(function.instructions)]))
    number = {block.start: place for place, block in enumerate(blocks)}
    after = [tuple(number[start] for start in _successors(function, block)) for block in blocks]
    dominators = _dominators(after)
    indirect = any(each.name in _INDIRECT for each in function.instructions)
    return Flow(blocks, dominators, tuple(_loops(after, dominators)), indirect)


def _starts(function: Function) -> Iterator[int]:
    """First instructions of blocks."""
    count = len(function.instructions)
    yield from (place for place in function.labels.values() if place < count)
    for place, each in enumerate(function.instructions):
        if place == 0:
            yield place
        if (each.name in _JUMPS or each.name in _ENDS) and place + 1 < count:
            yield place + 1


def _successors(function: Function, block: range) -> Iterator[int]:
    last = function.instructions[block.stop - 1]
    jumps, ends = last.name in _JUMPS, last.name in _ENDS
    if jumps and last.target in function.labels and function.labels[last.target] < len(function.instructions):
        yield function.labels[last.target]
    if (not (jumps or ends) or _conditional(last)) and block.stop < len(function.instructions):
        yield block.stop


def _conditional(last: Instruction) -> bool:
    """Whether a jump may be passed: it has a predicate, in front or as an operand."""
    return bool(last.predicate) or (last.name in _JUMPS and not last.operands.startswith("`"))


def _dominators(after: list[tuple[int, ...]]) -> dict[int, frozenset[int]]:
    order = _reverse_postorder(after)
    before: dict[int, list[int]] = {block: [] for block in order}
    for block in order:
        for successor in after[block]:
            before[successor].append(block)
    everything = frozenset(order)
    found = {block: frozenset({0}) if block == 0 else everything for block in order}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = everything
            for each in before[block]:
                new &= found[each]
            new |= {block}
            changed, found[block] = changed or new != found[block], new
    return found


def _reverse_postorder(after: list[tuple[int, ...]]) -> list[int]:
    """The blocks that are reached from the first."""
    seen, done = {0}, list[int]()
    stack = [(0, iter(after[0]))]
    while stack:
        block, rest = stack[-1]
        new = next((each for each in rest if each not in seen), None)
        if new is None:
            done.append(block)
            stack.pop()
        else:
            seen.add(new)
            stack.append((new, iter(after[new])))
    return done[::-1]


def _loops(after: list[tuple[int, ...]], dominators: Mapping[int, frozenset[int]]) -> list[Loop]:
    """Natural loops, those of one head joined, inner ones first."""
    before: dict[int, set[int]] = {block: set() for block in dominators}
    for block in dominators:
        for successor in after[block]:
            before[successor].add(block)
    bodies: dict[int, set[int]] = {}
    for block in dominators:
        for head in after[block]:
            if head in dominators[block]:
                bodies.setdefault(head, {head}).update(_ahead(block, head, before))
    return sorted((Loop(head, frozenset(body)) for head, body in bodies.items()), key=lambda loop: len(loop.blocks))


def _ahead(block: int, head: int, before: Mapping[int, set[int]]) -> set[int]:
    """Blocks from which `block` is reached without passing `head`."""
    found, stack = {head}, [block]
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack += before[each]
    return found
