"""Formats the result of `argus run` as text and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import assert_never

from argus.core.verdict import Proved, Refuted, Unknown, Vacuous, Verdict
from argus.runtime.run import RunResult
from argus.verifier.reference import Comparison


def lines(ran: RunResult) -> Iterator[str]:
    """The result of a run as lines of text."""
    verdict = "not compared" if ran.comparison is None else "right" if ran.comparison.right else "wrong"
    yield f"{ran.kernel} ({ran.target}): {verdict}, {where(ran)}"
    sizes = ", ".join(f"{name} = {value}" for name, value in ran.sizes.items())
    yield f"  sizes           {sizes}; inputs from seed {ran.seed}"
    yield f"  time            {_time(ran)}"
    if ran.comparison is None:
        yield "  compared        nothing: no claim, no formula and no --reference determines an output"
    else:
        yield from _compared(ran.comparison)
        if ran.uncompared:
            yield f"  not compared    {', '.join(ran.uncompared)}"


def verdict_line(verdict: Verdict, uncovered: Sequence[str]) -> str:
    """What the verifier says about the kernel that was run. uncovered: the outputs that no assertion determines."""
    match verdict:
        case Proved() if uncovered:
            text = f"the kernel is proved, but no assertion determines {', '.join(uncovered)}"
        case Proved():
            text = "the kernel is proved for all sizes that meet the assumptions"
        case Refuted(counterexample=found):
            text = f"the kernel is refuted by {found.code}: {found.message}"
        case Unknown(reason=reason):
            text = f"the kernel is not proved: {reason}"
        case Vacuous():
            text = "the kernel is not proved: its assumptions contradict each other"
        case _:
            assert_never(verdict)
    return f"  verdict         {text}"


def where(ran: RunResult) -> str:
    """The GPU's name, or the reason why the kernel was interpreted."""
    return f"on the GPU {ran.gpu}" if ran.gpu else f"in the interpreter ({ran.why})"


def _time(ran: RunResult) -> str:
    if not ran.gpu:
        return f"{ran.milliseconds[0] / 1000:.2f} s, asynchronous operations as late as the waits allow"
    times = ran.milliseconds
    return f"{median(times):.4g} ms, the median of {len(times)} launches ({min(times):.4g} to {max(times):.4g})"


def _compared(found: Comparison) -> Iterator[str]:
    yield f"  compared        {found.elements:,} elements with {found.with_what}"
    yield f"  largest error   {found.worst:.3g}, where rounding may cause {found.allowed:.3g}"
    yield f"  outside         {found.outside} elements; the largest error is {100 * found.share:.3g} % of its bound"


def as_data(ran: RunResult) -> dict[str, object]:
    """The result of a run in the schema `argus.run/1`."""
    found = ran.comparison
    return {
        "kernel": ran.kernel,
        "target": ran.target,
        "sizes": dict(ran.sizes),
        "seed": ran.seed,
        "gpu": ran.gpu,
        "why_interpreted": ran.why,
        "milliseconds": list(ran.milliseconds),
        "uncompared": list(ran.uncompared),
        "comparison": None
        if found is None
        else {
            "with": found.with_what,
            "elements": found.elements,
            "worst": found.worst,
            "allowed": found.allowed,
            "share": found.share,
            "outside": found.outside,
        },
    }
