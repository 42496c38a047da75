"""Computes the claims about a kernel of a user's file. Shared by delivery and check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

from argus.core.ir import Kernel
from argus.runtime.sandbox.user_reference import REFERENCE
from argus.search.certificates import certificate
from argus.search.certificates.certificate import Baseline, Design, Numbers, Run
from argus.search.evaluation.numerics import SEEDS
from argus.search.problems.kernel_file import KernelFile, Variant
from argus.search.problems.references import TOLERANCE, Trial, compare_outputs, random_trials
from argus.search.problems.traced import Traced, admits
from argus.search.problems.traced import small_sizes as admissible_sizes
from argus.verifier.reference import Comparison

PROBLEM = "problem.py"
"""Name of the user's file in a delivery."""
_SMALL = 64
_SIZE = r"\w+=[1-9]\d{0,11}"
_NAME = re.compile(rf"file:([0-9a-f]{{16}}):((?:{_SIZE}(?:,{_SIZE})*)?):{re.escape(PROBLEM)}(?::([\w.]+))?")


@frozen
class ParsedName:
    """A parsed problem name. digest: of the file's text. kernel: selected kernel, empty for all."""

    digest: str
    sizes: Mapping[str, int]
    kernel: str


def name_of(asked: KernelFile) -> str:
    """The problem's name with the delivered file's name instead of its path."""
    sizes = ",".join(f"{name}={extent}" for name, extent in asked.extents)
    return f"file:{asked.digest}:{sizes}:{PROBLEM}" + (f":{asked.kernel_name}" if asked.kernel_name else "")


def parse_name(text: str) -> ParsedName | None:
    """Parse a problem name; None for another kind of problem."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    pairs = (part.split("=") for part in found[2].split(",") if part)
    return ParsedName(found[1], {name: int(extent) for name, extent in pairs}, found[3] or "")


def problem(asked: KernelFile) -> certificate.Problem:
    return certificate.Problem(name_of(asked), asked.target, dict(asked.sizes))


def design(variant: Variant) -> Design:
    done = "+".join(f"{step.technique} {step.change}".strip() for step in variant.steps)
    knobs = {"kernel": variant.base, "rewritten": done, "claims": "suggested" if variant.suggested else "the file's"}
    return Design(variant.name, knobs, tuple(str(step) for step in variant.steps))


def baseline(variants: Iterable[Variant], times: Mapping[str, float]) -> Baseline:
    """The file's first kernel, unchanged. times: known times by design."""
    first = next(iter(variants)).name
    return Baseline(first, "the first kernel of the file, as it is", times.get(first))


def numbers(found: tuple[Run, ...]) -> Numbers:
    return Numbers(REFERENCE, TOLERANCE, found)


def runs(kernel: Kernel, asked: KernelFile) -> tuple[Run, ...]:
    """Run the kernel in the interpreter against the user's reference. Raises ArgusError (E903)."""
    return tuple(run(kernel, each, asked.answer(each.given)) for each in random_trials(kernel, SEEDS))


def run(kernel: Traced, trial: Trial, expected: object) -> Run:
    """Compare all outputs of one trial; reports the errors of the output closest to its bound."""
    found = [comparison for _, comparison in compare_outputs(kernel, trial, expected)]
    worst = max(found, key=_share)
    elements, outside = (sum(getattr(each, name) for each in found) for name in ("elements", "outside"))
    return Run(tuple(trial.sizes.values()), trial.seed, elements, outside, worst.worst, worst.allowed)


def _share(found: Comparison) -> float:
    return found.share


def small_sizes(kernel: Traced, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """Admissible small sizes for the interpreter: the problem's own, reduced to at most 64 if possible."""
    least = next(iter(admissible_sizes(kernel)), dict(sizes))
    chosen = {name: min(extent, max(_SMALL, least[name])) for name, extent in sizes.items()}
    return chosen if admits(kernel, chosen) else least
