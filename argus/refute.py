"""Refutation: a fault of the program shown on a concrete run of the interpreter, or recomputed if it is static."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import cast

from attrs import frozen

from argus.core.diagnostic import Diagnostic, Label
from argus.core.invariants import invariant
from argus.core.ir import Kernel
from argus.core.proof.obligation import ASKED_FIRST, Obligation
from argus.core.verdict import Counterexample
from argus.core.walk import evaluate, symbols
from argus.interp.prepared import Prepared
from argus.interp.run import run_prepared
from argus.interp.schedule import DIRECTED
from argus.interp.search import Witness, sizes_in_order
from argus.interp.violation import Violation


@frozen(eq=False)
class Refutation:
    """A counterexample with its report."""

    kernel: Kernel
    counterexample: Counterexample
    diagnostic: Diagnostic


@frozen(eq=False)
class Suspect:
    """An obligation that is not proved, and the sizes at which a solver saw it fail, if one did."""

    obligation: Obligation
    sizes: Mapping[str, int] | None


def refute(kernel: Kernel, suspects: Sequence[Suspect]) -> Refutation | None:
    """Show one of the suspected faults, the cause before its symptoms; None if no run within the bound shows any.

    suspects: in the order in which they should be reported.
    """
    obligations = [suspect.obligation for suspect in suspects]
    for suspect in suspects:
        if suspect.sizes is not None and is_static(suspect.obligation):
            return static_fault(kernel, suspect)
    models = [suspect.sizes for suspect in suspects if suspect.sizes is not None]
    sizes = list(sizes_in_order(kernel, [model for model in models if _affordable(kernel, model)]))
    witness = None
    for codes in _in_stages(suspects):
        witness = witness or search(kernel, sizes, codes)
    return None if witness is None else _shown(kernel, witness, obligations)


def _in_stages(suspects: Sequence[Suspect]) -> Iterable[frozenset[str]]:
    """The invariant most to blame; then any under suspicion; then any."""
    first = next((suspect.obligation.invariant for suspect in suspects if suspect.sizes is not None), None)
    if first is not None:
        yield frozenset((first,))
    yield frozenset(suspect.obligation.invariant for suspect in suspects)
    yield frozenset(ASKED_FIRST)


def search(kernel: Kernel, sizes: Sequence[Mapping[str, int]], codes: frozenset[str]) -> Witness | None:
    """The first run that violates one of the invariants, and of what it violates the cause before the symptoms.

    Most faults show under every schedule, so all sizes are tried under one before the next.
    """
    prepared = Prepared(kernel)
    for schedule in DIRECTED:
        for size in sizes:
            outcome = run_prepared(prepared, size, None, schedule, tags=True, values=False)
            found = [violation for violation in outcome.violations if violation.code in codes]
            if found:
                return Witness(size, schedule, min(found, key=lambda v: ASKED_FIRST.index(v.code)))
    return None


def is_static(obligation: Obligation) -> bool:
    """Whether the fault shows without a run: a budget, a layout, the range of an integer."""
    return obligation.invariant in ("I18", "I22", "I28", "I33")


def _affordable(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether tensors of these sizes are small enough to run."""
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    counts = [prod(int(cast(int, evaluate(extent, env))) for extent in b.shape) for b in kernel.parameters]
    return sum(counts) <= _MOST_ELEMENTS


_MOST_ELEMENTS = 1 << 20


def static_fault(kernel: Kernel, suspect: Suspect) -> Refutation:
    """A fault that needs no run: its witness is computed from the program, at the sizes that show it."""
    obligation = suspect.obligation
    message = f"not so: {obligation.what}"
    sizes: Mapping[str, int] = suspect.sizes or {}
    sizes = sizes if symbols(obligation.goal) else {}
    launch = (("launch", ", ".join(f"{name}={value}" for name, value in sizes.items())),) if sizes else ()
    diagnostic = Diagnostic(
        obligation.invariant,
        "error",
        message,
        Label(obligation.stmt.span, invariant(obligation.invariant).title),
        facts=(*launch, *obligation.witness, ("recomputed", "yes, from the layouts and the machine's limits")),
        help=obligation.help,
        kernel=kernel.name,
    )
    place = str(obligation.stmt.span)
    found = Counterexample(obligation.invariant, message, "recomputed", tuple(sizes.items()), place=place)
    return Refutation(kernel, found, diagnostic)


def _shown(kernel: Kernel, witness: Witness, suspects: Sequence[Obligation]) -> Refutation:
    violation = witness.violation
    advice = [o for o in suspects if o.invariant == violation.code]
    exact = [o for o in advice if o.stmt.span == violation.stmt.span]
    help_text = next((o.help for o in (*exact, *advice) if o.help), "")
    counterexample = Counterexample(
        violation.code,
        violation.message,
        "interpreter",
        tuple(witness.sizes.items()),
        violation.block,
        violation.thread,
        violation.other_thread,
        violation.buffer,
        violation.element,
        violation.iteration,
        str(violation.stmt.span),
        f"{witness.schedule.style}, waves {witness.schedule.order}, seed {witness.schedule.seed}",
    )
    return Refutation(kernel, counterexample, _diagnostic(kernel, counterexample, violation, help_text))


def _diagnostic(kernel: Kernel, found: Counterexample, violation: Violation, help_text: str) -> Diagnostic:
    unit = kernel.target.unit
    secondary: tuple[Label, ...] = ()
    if violation.other is not None:
        who = "" if violation.other_thread is None else f" by {_thread(violation.other_thread, unit)}"
        secondary = (Label(violation.other.span, f"the other access{who}{_when(violation.other_iteration)}"),)
    return Diagnostic(
        violation.code,
        "error",
        violation.message,
        Label(violation.stmt.span, f"{_thread(violation.thread, unit)}{_when(violation.iteration)}"),
        secondary,
        tuple(_facts(found, violation)),
        help=help_text,
        kernel=kernel.name,
    )


def _thread(thread: int, unit: int) -> str:
    return f"thread {thread} (wave {thread // unit}, lane {thread % unit})"


def _when(iteration: tuple[tuple[str, int], ...]) -> str:
    return "".join(f", {name} = {value}" for name, value in iteration)


def _facts(found: Counterexample, violation: Violation) -> Iterable[tuple[str, str]]:
    yield "launch", ", ".join(f"{name}={value}" for name, value in found.sizes)
    yield "block", f"({', '.join(map(str, found.block))})"
    if found.element is not None:
        at = ", ".join(map(str, found.element))
        value = "" if violation.value is None else f", register element {violation.value} of the thread"
        yield "element", f"`{found.buffer}`[{at}]{value}"
    yield from violation.facts
    yield "replayed", f"yes, by the interpreter (asynchronous operations {found.schedule})"
