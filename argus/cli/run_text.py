"""Formats the result of `argus run` as text and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

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
        yield "  compared        nothing: the kernel's claims do not determine its outputs"
    else:
        yield from _compared(ran.comparison)


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
