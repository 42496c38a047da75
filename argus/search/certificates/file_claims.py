"""What a certificate says of a kernel of a user's own file: as it is made, and as it is checked without that file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

from argus.core.ir import Kernel
from argus.interp.search.search import assumed, holds, sizes_in_order
from argus.runtime.sandbox.answers import REFERENCE
from argus.search.certificates import certificate
from argus.search.certificates.certificate import Baseline, Design, Numbers, Run
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.kernel_file import KernelFile, Variant
from argus.search.problems.references import TOLERANCE, Trial, compare_outputs, random_trials
from argus.verifier.reference import Comparison

PROBLEM = "problem.py"
"""The user's file as it is delivered."""
_SMALL = 64
_SIZE = r"\w+=[1-9]\d{0,11}"
_NAME = re.compile(rf"file:([0-9a-f]{{16}}):((?:{_SIZE}(?:,{_SIZE})*)?):{re.escape(PROBLEM)}(?::([\w.]+))?")


@frozen
class Named:
    """What the name of a file's problem says. digest: of its text. kernel: that is meant, empty for all."""

    digest: str
    sizes: Mapping[str, int]
    kernel: str


def name_of(asked: KernelFile) -> str:
    """With the name of the delivered file in place of the path: no path of a machine gets into what is delivered."""
    sizes = ",".join(f"{name}={extent}" for name, extent in asked.extents)
    return f"file:{asked.digest}:{sizes}:{PROBLEM}" + (f":{asked.kernel_name}" if asked.kernel_name else "")


def named(text: str) -> Named | None:
    """None for the name of another kind of problem."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    pairs = (part.split("=") for part in found[2].split(",") if part)
    return Named(found[1], {name: int(extent) for name, extent in pairs}, found[3] or "")


def problem(asked: KernelFile) -> certificate.Problem:
    return certificate.Problem(name_of(asked), asked.target, dict(asked.sizes))


def design(variant: Variant) -> Design:
    done = "+".join(f"{step.technique} {step.change}".strip() for step in variant.steps)
    knobs = {"kernel": variant.base, "rewritten": done, "claims": "suggested" if variant.suggested else "the file's"}
    return Design(variant.name, knobs, tuple(str(step) for step in variant.steps))


def baseline(variants: Iterable[Variant], times: Mapping[str, float]) -> Baseline:
    """The first kernel of the file, as it is. times: that are known."""
    first = next(iter(variants)).name
    return Baseline(first, "the first kernel of the file, as it is", times.get(first))


def numbers(found: tuple[Run, ...]) -> Numbers:
    return Numbers(REFERENCE, TOLERANCE, found)


def runs(kernel: Kernel, asked: KernelFile) -> tuple[Run, ...]:
    """In the interpreter, each beside the user's reference. Raises ArgusError (E903)."""
    return tuple(run(kernel, each, asked.answer(each.given)) for each in random_trials(kernel, SEEDS))


def run(kernel: Kernel, trial: Trial, expected: object) -> Run:
    """All outputs as one: the errors are those of the output that comes nearest to what is allowed."""
    found = [comparison for _, comparison in compare_outputs(kernel, trial, expected)]
    worst = max(found, key=_share)
    elements, outside = (sum(getattr(each, name) for each in found) for name in ("elements", "outside"))
    return Run(tuple(trial.sizes.values()), trial.seed, elements, outside, worst.worst, worst.allowed)


def _share(found: Comparison) -> float:
    return found.share


def small(kernel: Kernel, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """Sizes for an interpreter: the problem's own where these are small, else some that the kernel admits."""
    least = next(sizes_in_order(kernel), dict(sizes))
    chosen = {name: min(extent, max(_SMALL, least[name])) for name, extent in sizes.items()}
    return chosen if holds(kernel, assumed(kernel), chosen) else least
