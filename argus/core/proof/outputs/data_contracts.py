"""Facts about integers from memory: the caller's promises, instantiated at every term of a query.

A term `expert[i]` is an uninterpreted function of its index, so reads of one element by two roles, threads or blocks
are equal. Its value is bounded by its type and, where the index lies in the tensor, constrained by the promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from attrs import define, field

from argus.core import algebra
from argus.core.check import expressions
from argus.core.index import And, Cond, Const, Read, Sum, Symbol
from argus.core.ir import Buffer, Kernel, ascending_condition, walk
from argus.core.proof.prover import Prover
from argus.core.query import Answer
from argus.core.values.effort import Effort
from argus.core.walk import mentions, substitute, topological

_ROUNDS = 3
"""Depth to which terms that occur in instances are instantiated themselves; omitting instances is sound."""


@define(eq=False)
class PromiseProver:
    """A prover that adds the promises on tensors of integers to the hypotheses of each query. Caches instances."""

    prover: Prover
    tensors: Mapping[str, Buffer]
    _known: dict[Read, Cond] = field(factory=dict[Read, Cond], init=False)
    _read: dict[Cond, tuple[Read, ...]] = field(factory=dict[Cond, "tuple[Read, ...]"], init=False)
    _found: dict[tuple[Read, ...], tuple[Cond, ...]] = field(
        factory=dict["tuple[Read, ...]", "tuple[Cond, ...]"], init=False
    )
    _ascending: frozenset[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._ascending = frozenset(name for name, buffer in self.tensors.items() if is_ascending(buffer))

    @property
    def effort(self) -> Effort:
        return self.prover.effort

    def prove(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        return self.prover.prove([*hypotheses, *self.instances((*hypotheses, goal))], goal)

    def follows(self, hypotheses: Sequence[Cond], goal: Cond, *, steps: int | None = None) -> bool:
        return self.prover.follows([*hypotheses, *self.instances((*hypotheses, goal))], goal, steps=steps)

    def check(self, assertions: Sequence[Cond]) -> Answer:
        return self.prover.check([*assertions, *self.instances(assertions)])

    def instances(self, conditions: Sequence[Cond]) -> tuple[Cond, ...]:
        """The instances for every term in the conditions, and for the terms in those instances."""
        terms = tuple(dict.fromkeys(term for cond in conditions for term in self._reads(cond)))
        if terms not in self._found:
            self._found[terms] = tuple(cond for cond in self._instances(terms) if cond is not algebra.TRUE)
        return self._found[terms]

    def _reads(self, cond: Cond) -> tuple[Read, ...]:
        if cond not in self._read:
            self._read[cond] = tuple(node for node in topological([cond]) if isinstance(node, Read))
        return self._read[cond]

    def _instances(self, terms: Sequence[Read]) -> tuple[Cond, ...]:
        found: dict[Cond, None] = {}
        seen: dict[Read, None] = {}
        new = list(terms)
        for _ in range(_ROUNDS):
            new += [end for end in self._ends(new) if end not in seen and end not in new]
            seen |= dict.fromkeys(new)
            found |= dict.fromkeys(self._of(term) for term in new)
            new = [term for term in dict.fromkeys(self._beside(new)) if term not in seen]
        pairs = (pair for name in self._ascending for pair in permutations([t for t in seen if t.array == name], 2))
        found |= dict.fromkeys(self._monotone(*pair) for pair in pairs)
        return tuple(found)

    def _beside(self, terms: Sequence[Read]) -> Iterator[Read]:
        """The terms in the instances for these, but for neighbours in an ascending tensor.

        What a neighbour's neighbour is says nothing that the order of all terms does not.
        """
        pairs = ((term, other) for term in terms for other in self._reads(self._of(term)))
        return (other for term, other in pairs if other.array != term.array or term.array not in self._ascending)

    def _ends(self, terms: Sequence[Read]) -> tuple[Read, ...]:
        """The first and the last element of each ascending tensor."""
        tensors = [
            self.tensors[name] for name in dict.fromkeys(term.array for term in terms) if name in self._ascending
        ]
        ends = ((buffer, at) for buffer in tensors for at in (algebra.const(0), algebra.sub(buffer.shape[0], 1)))
        return tuple(algebra.read(buffer.name, (at,)) for buffer, at in ends)

    def _monotone(self, one: Read, two: Read) -> Cond:
        """Monotonicity for two terms of an ascending tensor; it follows from that of neighbours by induction."""
        extent = self.tensors[one.array].shape[0]
        ordered = (algebra.le(0, one.at[0]), algebra.le(one.at[0], two.at[0]), algebra.lt(two.at[0], extent))
        return algebra.any_of((algebra.negate(algebra.all_of(ordered)), algebra.le(one, two)))

    def _of(self, term: Read) -> Cond:
        if term not in self._known:
            buffer = self.tensors.get(term.array)
            self._known[term] = algebra.TRUE if buffer is None else promise_instance(buffer, term)
        return self._known[term]


def promised_size(buffer: Buffer) -> int | None:
    """The greatest size of an element by the tensor's promise, where that bounds it by numbers from both sides."""
    element = algebra.read(buffer.name, [algebra.coord(axis) for axis in range(len(buffer.shape))])
    parts = buffer.promise.parts if isinstance(buffer.promise, And) else (buffer.promise,)
    nodes = topological([buffer.promise])
    given = {
        node.value if isinstance(node, Const) else node.constant for node in nodes if isinstance(node, Const | Sum)
    }
    numbers = sorted({sign * each for each in given for sign in (-1, 1)})
    low = [each for each in numbers if algebra.le(each, element) in parts]
    high = [each for each in numbers if algebra.le(element, each) in parts]
    return max(abs(max(low)), abs(min(high))) if low and high else None


def is_ascending(buffer: Buffer) -> bool:
    """Whether the promise says that no element is less than its predecessor."""
    parts = buffer.promise.parts if isinstance(buffer.promise, And) else (buffer.promise,)
    return len(buffer.shape) == 1 and ascending_condition(buffer) in parts


def promise_instance(buffer: Buffer, term: Read) -> Cond:
    """The range of the element's type, and the promise if the index lies in the tensor."""
    half = 1 << (buffer.dtype.bits - 1)
    typed = (algebra.le(-half, term), algebra.lt(term, half))
    if buffer.promise is algebra.TRUE:
        return algebra.all_of(typed)
    promised = substitute(buffer.promise, {}, term.at)
    return algebra.all_of((*typed, algebra.any_of((algebra.negate(index_in_bounds(buffer, term)), promised))))


def index_in_bounds(buffer: Buffer, term: Read) -> Cond:
    """That the index of a term lies in its tensor."""
    pairs = zip(term.at, buffer.shape, strict=True)
    return algebra.all_of(each for at, extent in pairs for each in (algebra.le(0, at), algebra.lt(at, extent)))


def promise_prover(kernel: Kernel, prover: Prover, others: Sequence[Buffer] = ()) -> PromiseProver | None:
    """The prover for a kernel that reads integers from memory; None if it reads none.

    others: tensors that the values of its inputs depend on, by other names than its own.
    """
    roots = [*kernel.grid, *(root for stmt in walk(kernel.body) for root in expressions(stmt))]
    tensors = {each.name: each for each in (*others, *kernel.parameters)}
    return PromiseProver(prover, tensors) if others or any(mentions(root, (Read,)) for root in roots) else None


def declared_promises(kernel: Kernel) -> Iterator[Cond]:
    """The promises on a kernel's parameters."""
    return (buffer.promise for buffer in kernel.parameters if buffer.promise is not algebra.TRUE)


def promise_witnesses(kernel: Kernel) -> tuple[Cond, ...]:
    """That each tensor has an element that satisfies its promise: unsatisfiable if a promise contradicts itself."""
    found: list[Cond] = []
    for buffer in kernel.parameters:
        if buffer.promise is not algebra.TRUE:
            at = [algebra.sym(Symbol(f"{buffer.name}_{axis}", "fresh", 0)) for axis in range(len(buffer.shape))]
            term = algebra.read(buffer.name, at)
            found += [index_in_bounds(buffer, term), promise_instance(buffer, term)]
    return tuple(found)
