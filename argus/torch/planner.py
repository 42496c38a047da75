"""Which kernels a graph runs: nests are fused, each goes to the first template whose kernel is proved."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from time import perf_counter, thread_time
from typing import Any

from attrs import define, field

from argus.core.diagnostic import ArgusError, InternalError
from argus.core.ir import Program
from argus.core.query import Budget
from argus.core.walk import symbols
from argus.nests.affine import computed, product_of
from argus.nests.canonical import Canonical
from argus.nests.fusion import fused, together
from argus.nests.nest import Nest, TensorType
from argus.nests.partials import LONG, in_parts
from argus.nests.rewrite import reads, reductions
from argus.nests.text import canonical_text
from argus.nests.work import multiplies
from argus.ops.call_path import Candidate
from argus.runtime.kernel_cache import build_ahead, verify_cached, verify_program_cached
from argus.torch.compiled import KernelStep, Step, form_of
from argus.torch.families import FAMILIES, LONG_ROWS, NOT_PROVED, Family, candidates
from argus.torch.lowering import SMALL, lowered
from argus.torch.report import KernelEntry
from argus.torch.rewrites import Rewrites
from argus.torch.steps import EagerStep, Lowered, NestStep, Tensor

PROOF_SECONDS = 300.0
"""Of the processor, for the proofs of a graph; what has no proof then runs otherwise."""
_MOST_SECONDS = 60.0
"""Of the processor, for the proof of a kernel."""
_NEST_SECONDS = 2 * _MOST_SECONDS
"""Of the processor: once a family's kernels for a nest have taken so much, no other one of them is tried."""
_MOMENTS = ("aten.var", "aten.std")
_PROOFS: dict[tuple[str, str], KernelEntry | str] = {}
"""What is known of kernels in this process, by name and configuration; those that are unknown are on no disk."""


Tried = tuple[Canonical, tuple[Candidate, ...], str]
"""A form, its kernels, and why there is none."""


@define
class Planner:
    """hints: values of sizes. left: seconds of the processor for proofs. compiles: whether code is compiled while other
    kernels are proved. kernels: what was chosen, by the output's name. failed: kernels that are not proved, and why.
    in_proofs: seconds.

    A graph is planned again until each of its nests has a kernel: first without the fusion of a nest that has none,
    then with its operands in memory, at last with its operation in eager torch. whole: moments of long rows are not of
    parts, which is given up where a kernel then reads such rows again for each pass. rewrites: of sums, if there are to
    be any.
    """

    hints: Mapping[str, int]
    left: float = PROOF_SECONDS
    compiles: bool = False
    kernels: dict[str, KernelEntry] = field(factory=dict[str, KernelEntry])
    eager: dict[str, str] = field(factory=dict[str, str])
    stored: set[str] = field(factory=set[str])
    apart: set[str] = field(factory=set[str])
    failed: dict[str, str] = field(factory=dict[str, str])
    tried: dict[tuple[tuple[int, ...], str], tuple[tuple[Nest, ...], Tried]] = field(
        factory=dict[tuple[tuple[int, ...], str], "tuple[tuple[Nest, ...], Tried]"]
    )
    """What each family has for nests, by their identity; with the nests, so that they stay what they are."""
    forms: dict[tuple[tuple[int, ...], int, bool], Canonical] = field(
        factory=dict[tuple[tuple[int, ...], int, bool], Canonical]
    )
    in_proofs: float = 0.0
    whole: bool = True
    rewrites: Rewrites | None = None

    @property
    def entries(self) -> tuple[KernelEntry, ...]:
        return tuple(self.kernels.values())

    def planned(self, module: Any) -> tuple[Lowered, list[Step]]:  # noqa: ANN401 reason: a module of torch.fx
        """The steps of a graph of aten operations."""
        while True:
            graph = lowered(module.graph, self.eager, self.stored, whole=self.whole)
            if self.rewrites is not None:
                graph = self.rewrites.of(graph)
            steps = self._steps(graph)
            if steps is not None and self.whole and any(self._is_for_parts(each) for each in steps):
                self.whole = False
                for noted in (self.eager, self.stored, self.apart):
                    noted.clear()
            elif steps is not None:
                return graph, steps

    def _steps(self, graph: Lowered) -> list[Step] | None:
        """The steps; None where a nest has no kernel, of which is then noted what to do otherwise."""
        self.kernels.clear()
        own = {step.nest.output: step for step in graph.steps if isinstance(step, NestStep)}
        merged = {each.output: each for each in self._fused(graph)}
        groups = {each[0].output: each for each in together([self._apart(each, merged) for each in graph.steps])}
        steps: list[Step] = []
        done: set[str] = set()
        without: set[str] = set()
        for step in graph.steps:
            if isinstance(step, EagerStep):
                steps.append(step)
                continue
            nest = merged.get(step.nest.output)
            if nest is None or nest.output in done:
                continue
            group = groups.get(nest.output, (nest,))
            if len(group) > 1 and isinstance(at_once := self._kernel(group, graph.types), KernelStep):
                done |= {each.output for each in group}
                steps.append(at_once)
                continue
            found = self._kernels(nest, graph.types, fused=nest is not step.nest)
            if isinstance(found, str):
                if step.node not in without:
                    self._otherwise(step, nest, own, found)
                without.add(step.node)
                continue
            steps += found
        return None if without else steps

    def _is_for_parts(self, step: Step) -> bool:
        """Whether a kernel reads long rows from memory for each of several passes, or moments have none."""
        if isinstance(step, EagerStep):
            return step.operation.startswith(_MOMENTS)
        found = [each for each in reductions(*(nest.body for nest in step.nests)) if reductions(each.body)]
        lengths = [product_of(axis.extent for axis in each.axes) for each in found]
        known = [each for each in lengths if all(symbol.name in self.hints for symbol in symbols(each))]
        held = self.kernels[step.nests[0].output].name.startswith(LONG_ROWS.name)
        return not held and any(int(computed(each, self.hints)) >= LONG for each in known)

    def _apart(self, step: NestStep | EagerStep, merged: Mapping[str, Nest]) -> Nest | None:
        """The nest of a step; None of one that is no nest any more, which others are not moved across."""
        return merged.get(step.nest.output) if isinstance(step, NestStep) else None

    def _kernels(self, nest: Nest, types: Mapping[str, TensorType], *, fused: bool) -> list[KernelStep] | str:
        """The kernels of a nest, two for a long reduction: of its parts, and of what they combine to. Or why none.

        fused: it is several nests, of which one for matrix units is left to these by itself.
        """
        why = ""
        for parts in dict.fromkeys((in_parts(nest, self.hints), (nest,), in_parts(nest, self.hints, always=True))):
            known = {**types, **{part.output: part.type for part in parts}}
            found = [self._kernel((part,), known, fused=fused) for part in parts]
            kernels = [each for each in found if isinstance(each, KernelStep)]
            if len(kernels) == len(parts):
                return kernels
            why = why or next(each for each in found if isinstance(each, str))
        return why

    def _fused(self, graph: Lowered) -> list[Nest]:
        kept = {each.name for each in graph.outputs if isinstance(each, Tensor)}
        for step in graph.steps:
            kept |= step.reads if isinstance(step, EagerStep) else set()
        nests = [step.nest for step in graph.steps if isinstance(step, NestStep)]

        def fits(nest: Nest, shares: bool) -> bool:
            return self._fits(nest, graph.types, shares=shares)

        def costs(nest: Nest) -> bool:
            return self._reads_more(nest, graph.types)

        return fused(nests, kept, fits, self.apart, costs)

    def _reads_more(self, nest: Nest, types: Mapping[str, TensorType]) -> bool:
        """Whether the result of a nest is large, and it is computed from several tensors of about its size."""
        count = self._elements(nest.type)
        read = {each.tensor for each in reads(nest.body)}
        return count > SMALL and sum(2 * self._elements(types[name]) >= count for name in read) > 1

    def _elements(self, of: TensorType) -> int:
        return prod(int(computed(extent, self.hints)) for extent in of.shape)

    def _otherwise(self, step: NestStep, nest: Nest, own: Mapping[str, NestStep], why: str) -> None:
        inlined = {each.tensor for each in reads(step.nest.body)} - {each.tensor for each in reads(nest.body)}
        if inlined & set(own):
            self.apart |= inlined
        elif self.rewrites is not None and step.nest.output in self.rewrites.made:
            self.rewrites.without.add(self.rewrites.made[step.nest.output])
        elif step.node not in self.stored:
            self.stored.add(step.node)
        else:
            if step.node in self.eager:
                raise InternalError(f"`{step.node}` has no kernel and is not left to eager torch: {why}")
            self.eager[step.node] = why

    # -- templates ---

    def _fits(self, nest: Nest, types: Mapping[str, TensorType], *, shares: bool) -> bool:
        """Whether a template takes the nest, whose kernel may still not be proved.

        shares: only one that computes a reduction once for all elements of the output that it is for. A nest for matrix
        units is taken by templates for many products alone.
        """
        heavy = multiplies(nest, self.hints)
        families = [each for each in _for((nest,)) if (each.shares or not shares) and (each.multiplies or not heavy)]
        return any(self._candidates((nest,), types, family)[1] for family in families)

    def _candidates(self, nests: tuple[Nest, ...], types: Mapping[str, TensorType], family: Family) -> Tried:
        """The form of nests for a family, its kernels, and why there is none."""
        key = tuple(map(id, nests)), family.name
        if key not in self.tried:
            self.tried[key] = nests, self._form_and_candidates(nests, types, family)
        return self.tried[key][1]

    def _form_and_candidates(self, nests: tuple[Nest, ...], types: Mapping[str, TensorType], family: Family) -> Tried:
        key = tuple(map(id, nests)), family.most_axes, family.join
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = form_of(nests, types, family, self.hints)
        if len(form.parameters) == len(nests):
            return form, (), "it reads no tensor"
        sizes = {name: int(computed(extent, self.hints)) for name, extent in form.sizes.items()}
        try:
            return form, candidates(family, form, sizes), ""
        except ArgusError as problem:
            return form, (), problem.diagnostic.message

    def _kernel(
        self, nests: tuple[Nest, ...], types: Mapping[str, TensorType], *, fused: bool = False
    ) -> KernelStep | str:
        """The first template that computes nests of one domain, or why none does. fused: as of `_kernels`."""
        why, heavy = "no template computes it", fused and any(multiplies(each, self.hints) for each in nests)
        for family in _for(nests):
            if heavy and not family.multiplies:
                break
            form, tried, reason = self._candidates(nests, types, family)
            why, before = reason or why, self.left
            for each in tried:
                if before - self.left >= _NEST_SECONDS:
                    break
                found = self._proved(each, form)
                if isinstance(found, KernelEntry):
                    self.kernels[nests[0].output] = found
                    return KernelStep.of(nests, family, form)
                why = found
        return why

    def _proved(self, candidate: Candidate, form: Canonical) -> KernelEntry | str:
        """What the report says of a kernel that is proved; otherwise a reason."""
        key = candidate.family, candidate.config
        found = _PROOFS.get(key)
        if found is None:
            start, own = perf_counter(), thread_time()
            total = max(0.0, min(_MOST_SECONDS, self.left))
            found = _proof(candidate, form, Budget(runs=0, total=total))
            if self.compiles and isinstance(found, KernelEntry):
                build_ahead(candidate.traced()[0])
            self.in_proofs += perf_counter() - start
            self.left -= thread_time() - own
            if isinstance(found, KernelEntry) or total == _MOST_SECONDS:
                _PROOFS[key] = found
                if isinstance(found, str):
                    NOT_PROVED.add(key)
        if isinstance(found, str):
            self.failed[f"{candidate.family}_{candidate.config}"] = found
        return found


def _for(nests: tuple[Nest, ...]) -> list[Family]:
    """The families for nests with reductions, or those for nests without."""
    reduces = any(reductions(each.body) for each in nests)
    return [each for each in FAMILIES if each.reduces == reduces]


def _proof(candidate: Candidate, form: Canonical, budget: Budget) -> KernelEntry | str:
    """What the report says of a kernel. No run of the interpreter is searched that shows a kernel to be wrong."""
    start = perf_counter()
    try:
        traced, _ = candidate.traced()
        is_program = isinstance(traced, Program)
        known = verify_program_cached(traced, None, budget) if is_program else verify_cached(traced, None, budget)
    except ArgusError as problem:
        return f"{candidate.family}: {problem.diagnostic.message}"
    if known.verdict != "proved":
        said = f": {known.reason}" if known.reason else ""
        return f"`{candidate.family}_{candidate.config}` is {known.verdict}{said}"
    text, seconds = canonical_text(form), perf_counter() - start
    return KernelEntry(candidate.family, candidate.config, text, known.verdict, known.assumptions, seconds)
