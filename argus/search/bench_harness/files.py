"""The test subject of a user's kernel file: float64 reference, the problem's own sizes and unseen ones.

If the kernel's claims state a matrix product, each element must satisfy the error bound of f32 sums rounded once, and
the errors its statistics. For other kernels the intermediate roundings are unknown: elements may differ by some
roundings of the largest element, and at small sizes the error must be close to the interpreter's, which rounds where
the kernel does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.policy.bounds import Bounds
from argus.runtime.sandbox.user_reference import REFERENCE, Exact, Oracle, call_reference, reference_outputs
from argus.search.bench_harness.inputs import MOST_HOSTILE, Array, Case, RandomInputs, Sizes, adversarial
from argus.search.bench_harness.outputs import (
    LEAST_SAMPLES,
    SIGMAS,
    check_precision,
    compare_elements,
    rms,
    sample_indices,
)
from argus.search.bench_harness.subject import CheckScope, Mismatch, Tensor
from argus.search.problems.input_rules import PLAIN, InputRules
from argus.search.problems.references import check_types, tolerance
from argus.search.problems.traced import (
    MOST_INTERPRETED,
    Traced,
    admits,
    interpretable,
    read_names,
    shape_at,
    small_sizes,
    written_names,
)
from argus.verifier.api import interpret
from argus.verifier.reference import F32_ROUNDING, Contraction, claimed_contraction

SLOWEST = 4.0
"""Most seconds per call of the reference at the problem's sizes; it is called about forty times."""
_SLACK = 1.5
"""Largest ratio of the RMS error to the interpreter's; truncation instead of rounding has a ratio of 2."""
_ROUNDINGS = 8
"""Allowance for hardware functions that differ from the interpreter's, in f32 roundings (RMS)."""
_EDGES = 12
_DRAWS = 400
_WHOLE = "iub"
"""Kinds of types that rules give the contents of."""
_COARSE = (1, 1, 2, 8, 16, 64)


@define
class _Watch:
    """slowest: longest call of the reference so far, in seconds."""

    slowest: float = 0.0


@frozen
class KernelOfFile:
    """The subject of one design. kernel: as built, or a program. reference: in float64. rules: for inputs."""

    kernel: Traced
    sizes: Sizes
    bounds: Bounds
    reference: Oracle
    rules: InputRules = PLAIN
    tensors: tuple[Tensor, ...] = field(init=False)
    product: Contraction | None = field(init=False)
    _watch: _Watch = field(factory=_Watch, init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        check_types(self.kernel, self.rules)
        read, written = read_names(self.kernel), written_names(self.kernel)
        tensors = tuple(
            Tensor(each.name, each.dtype.numpy, each.name in read, each.name in written)
            for each in self.kernel.parameters
        )
        object.__setattr__(self, "tensors", tensors)
        product = claimed_contraction(self.kernel) if isinstance(self.kernel, Kernel) else None
        object.__setattr__(self, "product", product)

    def shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
        return tuple(shape_at(each, self.kernel, sizes) for each in self.kernel.parameters)

    def normal(self, draws: RandomInputs, sizes: Sizes) -> Case:
        shapes = self._floats(sizes)
        arrays = draws.normal(list(shapes.values()))
        case = Case(sizes, dict(zip(shapes, arrays, strict=True)), statistical=True)
        return self._by_rules(case, draws.generator())

    def _by_rules(self, case: Case, generator: np.random.Generator) -> Case:
        """The case with constants and integers; of the kinds of integers the first one at the problem's own sizes."""
        kinds = self.rules.kinds
        kind = kinds[0] if case.sizes == self.sizes else kinds[int(generator.integers(len(kinds)))]
        given = self.rules.given(case.sizes, kind, generator)
        integers = {each.name: given[each.name].astype(each.dtype) for each in self.tensors if each.name in given}
        held = {name: np.full_like(case.arrays[name], value) for name, value in self.rules.constants.items()}
        return evolve(case, arrays={**case.arrays, **held, **integers}) if held or integers else case

    def unseen(self, draws: RandomInputs, count: int) -> list[Sizes]:
        """Some of the smallest admissible sizes, then random ones; fewer if the assumptions admit few."""
        edges = list(islice(self._least(draws), _EDGES))
        sample_indices = draws.generator().permutation(len(edges))[:2]
        found: list[Sizes] = [edges[int(number)] for number in sample_indices]
        return [*found, *islice(self._drawn(draws.generator()), count)]

    def adversarial(self, draws: RandomInputs, sizes: Sizes | None) -> Mapping[str, Case]:
        chosen = next(self._drawn(draws.generator()), None) or next(self._least(draws)) if sizes is None else sizes
        shapes = self._floats(chosen)
        wide = [name for name, (shape, _) in shapes.items() if len(shape) > 1 and min(shape) > 0]
        made = adversarial(draws, shapes, chosen, (wide or list(shapes))[:MOST_HOSTILE])
        return {name: self._by_rules(case, draws.generator()) for name, case in made}

    def _floats(self, sizes: Sizes) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shapes and types of the inputs whose numbers are random."""
        pairs = zip(self.tensors, self.shapes(sizes), strict=True)
        return {each.name: (shape, each.dtype) for each, shape in pairs if each.read and each.dtype.kind not in _WHOLE}

    def _least(self, draws: RandomInputs) -> Iterator[Sizes]:
        """The smallest sizes, or such as the rules have."""
        if self.rules.small is None:
            return iter(small_sizes(self.kernel))
        return self._drawn(draws.generator())

    def _drawn(self, generator: np.random.Generator) -> Iterator[Sizes]:
        """Random small admissible sizes: of the rules, else multiples of 1 to 64."""
        if self.rules.small is not None:
            drawn = islice(self.rules.small(generator), _DRAWS)
            yield from (sizes for sizes in drawn if admits(self.kernel, sizes))
            return
        names = [symbol.name for symbol in self.kernel.sizes]
        most = int(MOST_INTERPRETED ** (1 / max(1, len(names))))
        for _ in range(_DRAWS):
            places: list[int] = generator.integers(0, len(_COARSE), len(names)).tolist()
            steps = [_COARSE[place] for place in places]
            values = [step * int(generator.integers(1, most // step + 1)) for step in steps]
            sizes = dict(zip(names, values, strict=True))
            if prod(values) <= MOST_INTERPRETED and admits(self.kernel, sizes):
                yield sizes

    def expected(self, case: Case) -> Mapping[str, Array]:
        types = {each.name: each.dtype for each in self.tensors}
        return {name: array.astype(types[name]) for name, array in self._exact(case).items()}

    def _exact(self, case: Case) -> dict[str, Exact]:
        given = {name: array.astype(np.float64) for name, array in case.arrays.items()}
        begun = perf_counter()
        with np.errstate(all="ignore"):
            found = call_reference(self.reference, given)
        self._watch.slowest = max(self._watch.slowest, perf_counter() - begun)
        if self._watch.slowest > SLOWEST:
            message = f"`{REFERENCE}` took {self._watch.slowest:.1f} s at {case.at}, and is called about forty times"
            advice = "give smaller sizes, make it faster, or use predicted times: --on model"
            raise ArgusError(Diagnostic("E903", "error", message, help=advice))
        pairs = zip(self.tensors, self.shapes(case.sizes), strict=True)
        return reference_outputs(found, {tensor.name: shape for tensor, shape in pairs if tensor.written})

    def compare(
        self, case: Case, found: Mapping[str, Array], generator: np.random.Generator, looked: CheckScope
    ) -> Mismatch | None:
        expected = self._exact(case)
        mismatch = self._numbers(case, found, expected, generator, looked) if looked.numbers else None
        if mismatch is not None and case.hostile and self._also_interpreted(case, expected):
            return None
        if mismatch is None and looked.precision and case.statistical:
            return self._precision(case, found, expected)
        return mismatch

    def _numbers(
        self,
        case: Case,
        found: Mapping[str, Array],
        expected: Mapping[str, Exact],
        generator: np.random.Generator,
        looked: CheckScope,
    ) -> Mismatch | None:
        for name, exact in expected.items():
            made = found[name].astype(np.float64)
            mismatch = compare_elements(made, exact, tolerance(exact, self.kernel, case.sizes), f"`{REFERENCE}`", name)
            if mismatch is not None:
                return mismatch
        if self.product is None:
            return None
        (exact,), (made,) = expected.values(), found.values()
        products = prod(case.sizes.values()) // max(1, len(exact))
        rows = sample_indices(len(exact), looked.most_products // max(1, products), generator)
        _, bound = self.product.exact(case.arrays, rows)
        return compare_elements(made[rows].astype(np.float64), exact[rows], bound, f"`{REFERENCE}`")

    def _precision(self, case: Case, found: Mapping[str, Array], expected: Mapping[str, Exact]) -> Mismatch | None:
        types = {each.name: each.dtype for each in self.tensors}
        if self.product is not None:
            ((name, exact),) = expected.items()
            return check_precision(found[name].astype(np.float64), exact, types[name], self.product.depth(case.arrays))
        if not interpretable(self.kernel, case.sizes) or all(each.size < LEAST_SAMPLES for each in expected.values()):
            return None
        interpreted, depth = self._interpreted(case), max(case.sizes.values(), default=1)
        for name, exact in expected.items():
            ours, theirs = (rms(each[name].astype(np.float64) - exact) for each in (interpreted, found))
            summed = (SIGMAS * depth**0.5 + _ROUNDINGS) * F32_ROUNDING * rms(exact)
            if exact.size >= LEAST_SAMPLES and np.isfinite(ours) and not theirs <= _SLACK * ours + summed:
                text = f"the RMS error of {name} is {theirs:.3g}, but {ours:.3g} in the interpreter"
                return Mismatch(text, precise=True)
        return None

    def _also_interpreted(self, case: Case, expected: Mapping[str, Exact]) -> bool:
        """Whether the interpreted kernel differs from the reference, too; then the device is not at fault.

        On normal numbers the interpreter has already been compared with the reference.
        """
        if not interpretable(self.kernel, case.sizes):
            return False
        made = self._interpreted(case)
        quiet = CheckScope(numbers=True, precision=False, most_products=MOST_INTERPRETED)
        return self._numbers(case, made, expected, np.random.default_rng(0), quiet) is not None

    def _interpreted(self, case: Case) -> dict[str, Array]:
        pairs = zip(self.tensors, self.shapes(case.sizes), strict=True)
        arrays = [case.arrays[t.name] if t.read else np.full(shape, np.nan).astype(t.dtype) for t, shape in pairs]
        return interpret(self.kernel, *arrays, tags=False)
