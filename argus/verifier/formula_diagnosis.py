"""What differs where a run refutes a formula: elements left out, in place of others, counted twice, or a factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, isclose
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core.index import Symbol
from argus.core.ir import Assert, Equals, Program, axes_of
from argus.core.values.bounds import Inputs, bounded
from argus.core.values.expr import Expr
from argus.core.values.rewriting import elements
from argus.interp.compiled_kernel import Prepared
from argus.interp.programs import run_program
from argus.interp.run import run_prepared
from argus.interp.search.diagnosis import Witness
from argus.interp.search.influence import Influence, influence
from argus.interp.search.schedule import Schedule
from argus.interp.violation import UnsatisfiedPromiseError, Violation

Array = npt.NDArray[Any]
Run = Callable[[Mapping[str, Array] | None, Schedule], Mapping[str, Array]]
_RUNS = 64
_MOST = 1 << 14
"""Elements of all tensors of a run that is repeated with changed inputs."""
_SHOWN = 4
_WHOLE = 1e-3
"""How far, relatively, the factor of an element that is counted several times may be from a whole number."""
_DRAWS = (0, 2)
"""Inputs at which derivatives are taken: random ones, and primes where those give no number or show nothing."""


@frozen
class Diagnosis:
    """facts: named texts for the report. advice: what to look for; empty if nothing more specific is known."""

    facts: tuple[tuple[str, str], ...] = ()
    advice: str = ""


NO_DIAGNOSIS = Diagnosis()


def diagnose_kernel(prepared: Prepared, witness: Witness) -> Diagnosis:
    """Why an element differs from the formula that the kernel claims; empty for other violations."""
    blocks = (witness.violation.block,) if prepared.kernel.peers == 1 else None

    def run(arrays: Mapping[str, Array] | None, schedule: Schedule) -> Mapping[str, Array]:
        return run_prepared(
            prepared, witness.sizes, arrays, schedule, tags=True, values=False, blocks=blocks if arrays else ()
        ).arrays

    sizes = {symbol: witness.sizes[symbol.name] for symbol in prepared.kernel.sizes}
    return _diagnose(run, witness, sizes)


def diagnose_program(program: Program, witness: Witness) -> Diagnosis:
    """The same of a formula that a program claims."""

    def run(arrays: Mapping[str, Array] | None, schedule: Schedule) -> Mapping[str, Array]:
        return run_program(program, witness.sizes, arrays, schedule, tags=True, values=False).arrays

    return _diagnose(run, witness, {symbol: witness.sizes[symbol.name] for symbol in program.sizes})


def _diagnose(run: Run, witness: Witness, sizes: Mapping[Symbol, int]) -> Diagnosis:
    violation = witness.violation
    claim = violation.stmt.claim if isinstance(violation.stmt, Assert) else None
    order = axes_of(claim.view) if isinstance(claim, Equals) else None
    stored = any(name == "found" for name, _ in violation.facts)
    if not isinstance(claim, Equals) or order is None or violation.element is None:
        return NO_DIAGNOSIS
    if not stored:
        return Diagnosis((), "store every element that the claim is about, or restrict the claim: `where=lambda ...`")
    at = tuple(violation.element[axis] for axis in order)
    best: Influence | None = None
    for draw in _DRAWS:
        found = _influence(run, evolve(witness.schedule, draw=draw), violation, (claim.formula, at, sizes))
        best = found or best
        if found is not None and found.counted:
            break
    return NO_DIAGNOSIS if best is None else _in_words(best)


def _influence(
    run: Run, schedule: Schedule, violation: Violation, claimed: tuple[Expr, tuple[int, ...], Mapping[Symbol, int]]
) -> Influence | None:
    formula, at, sizes = claimed
    element, output = violation.element, violation.buffer
    try:
        tensors = run(None, schedule)
    except UnsatisfiedPromiseError:
        return None
    if sum(each.size for each in tensors.values()) > _MOST:
        return None
    named = {each.tensor for each in elements(formula)}
    if not named | {output} <= tensors.keys():
        return None  # a launch's claim about a workspace, or of a tensor that has another name in it
    varied = [name for name, held in tensors.items() if held.dtype.kind == "f" and (name in named or name != output)]

    def ran(arrays: Mapping[str, Array]) -> float:
        return float(run(arrays, schedule)[output][element])

    def meant(arrays: Mapping[str, Array]) -> float:
        floats = {name: held.astype(np.float64) for name, held in arrays.items() if name in named}
        integers = {name: held for name, held in arrays.items() if held.dtype.kind == "i"}
        mesh = [np.array([axis]) for axis in at]
        return float(bounded(formula, mesh, Inputs(sizes, floats, integers, 0.0, 0.0)).value.reshape(-1)[0])

    return influence(ran, meant, tensors, varied, _RUNS)


# -- in words ------------------------------------------------------------------------------------------


def _in_words(found: Influence) -> Diagnosis:
    facts = [fact for tensor in dict.fromkeys(each.tensor for each in found.counted) for fact in _facts(found, tensor)]
    if not found.complete:
        facts.append(("not looked at", f"some elements: {_RUNS} runs with changed inputs showed these"))
    return Diagnosis(tuple(facts), _advice(found))


def _facts(found: Influence, tensor: str) -> Iterator[tuple[str, str]]:
    """How the elements of one tensor count."""
    mine = [each for each in found.counted if each.tensor == tensor]
    for name, ratio, remark in (("left out", 0.0, "depends"), ("also counted", inf, "does not depend")):
        places = [at for each in mine if each.ratio == ratio for at in each.elements]
        if places:
            yield name, f"{_listed(tensor, places)}: the formula {remark} on {'it' if len(places) == 1 else 'them'}"
    rest = [each for each in mine if each.ratio not in (0.0, inf)]
    if rest:
        low, high = min(each.ratio for each in rest), max(each.ratio for each in rest)
        often = f"{low:.4g}" if len(rest) == 1 else f"from {low:.4g} to {high:.4g}"
        places = sorted(at for each in rest for at in each.elements)
        yield "counted", f"{_listed(tensor, places)}: {often} times as much as in the formula"


def _listed(tensor: str, places: Sequence[tuple[int, ...]]) -> str:
    shown = [f"`{tensor}`[{', '.join(map(str, at))}]" for at in places[:_SHOWN]]
    more = len(places) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _advice(found: Influence) -> str:
    out = {each.tensor for each in found.counted if each.ratio == 0}
    also = {each.tensor for each in found.counted if each.ratio == inf}
    rest = [each for each in found.counted if each.ratio not in (0.0, inf)]
    ratios = {each.ratio for each in rest}
    if out & also:
        tensors = " and ".join(f"`{name}`" for name in sorted(out & also))
        if len(ratios) == 1 and not {each.tensor for each in rest} & out:
            return f"a scale of {tensors} is that of another block (I35): correct the index by which it is loaded"
        return f"elements of {tensors} take the place of others (I1): correct the index, or the block that it names"
    if out:
        return "a part is left out (I3): correct the range of the loop, the tail, or the condition"
    if also:
        return (
            "more is counted than the formula says (I3): correct the range, the padding, the condition or the operation"
        )
    if found.agrees and ratios and all(map(_several, ratios)):
        return "elements are counted more than once (I3): let each range or tile begin where the one before ends"
    there = "all elements are there" if found.complete else "no element is known to be left out"
    if len(ratios) == 1 and not found.agrees:
        return f"{there}, and a factor differs: a constant in place of a size, or a scale (I35)"
    if ratios:
        return f"{there}, with unlike factors: a rescale is missing, or is that of another step (I23)"
    return "no element counts otherwise: a constant is added, or a test decides otherwise" if found.complete else ""


def _several(ratio: float) -> bool:
    return ratio > 1.5 and isclose(ratio, round(ratio), rel_tol=_WHOLE)
