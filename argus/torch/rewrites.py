"""Sums of a graph in another order, each proved equal to what the graph says before kernels are made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from time import perf_counter

from attrs import define, evolve, field

from argus.core.walk import symbols
from argus.nests.as_values import are_equal
from argus.nests.exchanged import Exchanged, exchanged
from argus.nests.fusion import inlined
from argus.nests.nest import Expr, Nest, TensorType
from argus.nests.rewrite import reads, reductions
from argus.nests.text import nest_text
from argus.torch.report import RewriteEntry
from argus.torch.steps import EagerStep, Lowered, NestStep, Step, Tensor

_KNOWN: dict[tuple[str, ...], bool] = {}
"""Whether sums are equal, by their text."""


@define
class Rewrites:
    """values: of sizes. without: outputs that are left as they are. entries: what was rewritten, by the output.

    made: the output for which each nest was made. seconds: in proofs.
    """

    values: Mapping[str, int]
    without: set[str] = field(factory=set[str])
    entries: dict[str, RewriteEntry] = field(factory=dict[str, RewriteEntry])
    made: dict[str, str] = field(factory=dict[str, str])
    seconds: float = 0.0

    def of(self, graph: Lowered) -> Lowered:
        """The graph with sums in the order that takes least."""
        self.entries.clear()
        self.made.clear()
        known = {step.nest.output: step.nest for step in graph.steps if isinstance(step, NestStep)}
        once = _read_once(graph, known.values())
        types, steps = dict(graph.types), list[Step]()
        for step in graph.steps:
            found = self._rewritten(step.nest, known, once, types) if isinstance(step, NestStep) else ()
            types |= {each.output: each.type for each in found}
            steps += [NestStep(each, step.node) for each in found] or [step]
        return evolve(graph, steps=tuple(steps), types=types)

    def _rewritten(
        self, nest: Nest, known: Mapping[str, Nest], once: Collection[str], types: Mapping[str, TensorType]
    ) -> tuple[Nest, ...]:
        """The nests that compute what a nest does, the last its output; none where it stays."""
        if nest.output in self.without or not self._sums(nest):
            return ()
        whole = _whole(nest, known, once)
        found = None if whole is None or not self._sums(whole) else exchanged(whole, types, self.values)
        if whole is None or found is None:
            return ()
        if not self._is_proved(found, whole, types):
            self.without.add(nest.output)
            return ()
        return (*found.before, found.nest)

    def _is_proved(self, found: Exchanged, whole: Nest, types: Mapping[str, TensorType]) -> bool:
        start, output = perf_counter(), whole.output
        text = tuple(map(nest_text, (whole, *found.before, found.nest)))
        if text not in _KNOWN:
            before = {each.output: each for each in found.before}
            every = {**types, **{each.output: each.type for each in found.before}}
            _KNOWN[text] = are_equal(found.new, found.old, before, every, whole.domain)
        self.seconds += perf_counter() - start
        if _KNOWN[text]:
            self.entries[output] = RewriteEntry(found.rule, text[0], text[1:])
            self.made |= {each.output: output for each in (*found.before, found.nest)}
        return _KNOWN[text]

    def _sums(self, nest: Nest) -> bool:
        """Whether it sums, over axes whose extents are known."""
        found = reductions(nest.body)
        axes = (*nest.domain, *(axis for each in found for axis in each.axes))
        known = all(symbol.name in self.values for axis in axes for symbol in symbols(axis.extent))
        return known and any(each.op == "add" for each in found)


def _whole(nest: Nest, known: Mapping[str, Nest], once: Collection[str]) -> Nest | None:
    """The nest with the sums that it sums, and what is between, in place of reads; None where others need these."""
    whole, summed = nest, False
    while not summed:
        inner = [each for each in reductions(whole.body) if each.op == "add"]
        read = [known[name] for name in _tensors(*(each.body for each in inner)) if name in known]
        found = [each for each in read if not reductions(each.body)] or [each for each in read if _adds(each)]
        if not found:
            return None
        for each in found:
            merged = inlined(each, whole) if each.output in once else None
            if merged is None:
                return None
            whole = merged
        summed = any(map(_adds, found))
    return whole


def _adds(nest: Nest) -> bool:
    return any(each.op == "add" for each in reductions(nest.body))


def _tensors(*roots: Expr) -> list[str]:
    """The tensors that are read, each once."""
    return list(dict.fromkeys(each.tensor for each in reads(*roots)))


def _read_once(graph: Lowered, nests: Iterable[Nest]) -> set[str]:
    """The tensors that one nest reads, and nothing else needs."""
    found = Counter(name for nest in nests for name in _tensors(nest.body))
    kept = {each.name for each in graph.outputs if isinstance(each, Tensor)}
    kept |= {name for step in graph.steps if isinstance(step, EagerStep) for name in step.reads}
    return {name for name, times in found.items() if times == 1} - kept
