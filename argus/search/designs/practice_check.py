"""Checks pages of practices: each has experiments or is marked as conjecture, and their figures are the records'."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from argus.core.invariants import INVARIANTS
from argus.core.target import TARGETS
from argus.policy.practice import Experiment, Practice

_NUMBER = re.compile(r"\d+(?:,\d{3})+|\d+\.\d+|\d+")
_SCRIPT = re.compile(r"benchmarks/\w+\.py")
_CLOSE = 0.006
"""Figures of records are rounded to two or three digits."""
_EXACT = 0.0005
"""Ratios of a table of times are given in four digits."""
_HUNDRED = 100


@frozen
class PracticeCheck:
    """Result of checking a page. compared: experiments whose records were read. faults: empty if it is correct."""

    practice: Practice
    compared: int
    faults: tuple[str, ...]


def support_faults(experiments: Sequence[object], *, conjecture: bool) -> Iterator[str]:
    """Why a page's claims have no support: no experiment, and no mark of a conjecture; or both."""
    if not experiments and not conjecture:
        yield "it has no experiment: name one, or mark the page with `conjecture = true`"
    if experiments and conjecture:
        yield "it is marked as conjecture, but has experiments: remove the mark"


def check_practice(practice: Practice, root: Path | None) -> PracticeCheck:
    """Check a page. root: of the checkout whose records are read; None for an installed package, which has none."""
    faults = [
        *support_faults(practice.experiments, conjecture=practice.conjecture),
        *unknown_names(practice.invariants, practice.targets),
    ]
    if root is None:
        return PracticeCheck(practice, 0, tuple(faults))
    for row in practice.experiments:
        faults += [f"experiment of {row.shape}: {fault}" for fault in _record_faults(row, root)]
    return PracticeCheck(practice, len(practice.experiments), tuple(faults))


def unknown_names(invariants: Sequence[str], targets: Sequence[str]) -> Iterator[str]:
    """Invariants and targets of a page that do not exist."""
    known = {each.id for each in INVARIANTS}
    yield from (f"there is no invariant {each}" for each in invariants if each not in known)
    machines = {each.name for each in TARGETS}
    yield from (f"there is no target `{each}`" for each in targets if each not in machines)


def _record_faults(row: Experiment, root: Path) -> Iterator[str]:
    scripts = _SCRIPT.findall(row.command)
    if not scripts:
        yield f"`{row.command}` runs no script of benchmarks/"
    yield from (f"there is no `{each}`" for each in scripts if not (root / each).is_file())
    path = root / row.record
    if not path.resolve().is_relative_to(root.resolve()) or not path.is_file():
        yield f"there is no record `{row.record}`"
        return
    text = path.read_text(encoding="utf-8")
    yield from _quote_faults(row, text) if row.quote else _table_faults(row, text)


def _quote_faults(row: Experiment, text: str) -> Iterator[str]:
    if " ".join(row.quote.split()) not in " ".join(text.split()):
        yield f"`{row.record}` does not have the words `{row.quote}`"
    elif not any(abs(row.ratio / each - 1) <= _CLOSE for each in _ratios(row.quote)):
        yield f"the ratio {row.ratio:g} is no figure of `{row.quote}`, nor a quotient of two"


def _ratios(quote: str) -> Iterator[float]:
    """The ratios that a text may give: its numbers, their inverses, quotients of two, and changes by a percentage."""
    numbers = [float(each.replace(",", "")) for each in _NUMBER.findall(quote)]
    positive = [each for each in numbers if each > 0]
    yield from positive
    yield from (1 / each for each in positive)
    yield from (one / other for one in positive for other in positive)
    if "%" in quote or "percent" in quote:
        for each in positive:
            if each < _HUNDRED:
                yield from (1 + each / 100, 1 - each / 100, 1 / (1 + each / 100), 1 / (1 - each / 100))


def _table_faults(row: Experiment, text: str) -> Iterator[str]:
    times = {each["name"]: each["microseconds"] for each in json.loads(text)["rows"] if each["problem"] == row.shape}
    before, after = set(row.without.split("_")), set(row.design.split("_"))
    if max(len(before - after), len(after - before)) != 1:
        yield f"`{row.without}` and `{row.design}` do not differ in one part of their names"
    missing = [each for each in (row.without, row.design) if each not in times]
    yield from (f"`{row.record}` has no time of `{each}`" for each in missing)
    if not missing:
        found = times[row.without] / times[row.design]
        if abs(row.ratio / found - 1) > _EXACT:
            yield f"the ratio is {row.ratio:g}, but {found:.4g} in `{row.record}`"
