"""The events of a run beside its page, from which `argus certify` renders the page again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from argus.cli.search.page.page import page
from argus.cli.search.page.story import Story, story_of
from argus.core.diagnostic import ArgusError, InternalError
from argus.search.certificates.certificate import Certificate
from argus.search.certificates.check_result import Check, brief, failed, passed, unchecked
from argus.search.certificates.file_claims import parse_name
from argus.search.certificates.output_dir import EVENTS, REPORT
from argus.search.events import Event
from argus.search.journal import decode_event, encode_event

_MOST_BYTES = 64 << 20
_UNREADABLE = (
    ArgusError,
    InternalError,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    RecursionError,
    ExceptionGroup,
)


def events_text(events: Sequence[Event]) -> str:
    """The events of a run, one JSON object a line."""
    return "".join(f"{encode_event(event)}\n" for event in events)


def check_report(claimed: Certificate, folder: Path) -> Check | None:
    """Check that the folder's page is that of the delivered events, and these are of the certified run.

    None if the folder has no page.
    """
    try:
        shown = (folder / REPORT).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        return failed("report", f"{REPORT} cannot be read: {problem.strerror or problem}")
    if parse_name(claimed.problem.name) is not None:
        return unchecked("report", f"{REPORT} is rendered from a journal, by running the user's file: `argus report`")
    made = _rendered(claimed.run.name, folder)
    if isinstance(made, Check):
        return made
    story, text = made
    other = [
        f"{what} {found}, claimed {said}" for what, (found, said) in _facts(story, claimed).items() if found != said
    ]
    if other:
        return failed("report", f"{EVENTS} is not the certified run: {brief('; '.join(other))}")
    if text.encode() != shown:
        return failed("report", f"{REPORT} is not what is rendered from {EVENTS}")
    return passed("report", f"{REPORT} is rendered again from {EVENTS}, byte for byte")


def _rendered(run: str, folder: Path) -> tuple[Story, str] | Check:
    """The run in the folder's events and its page."""
    path = folder / EVENTS
    try:
        if path.stat().st_size > _MOST_BYTES:
            return failed("report", f"{EVENTS} is larger than {_MOST_BYTES:,} bytes")
        events = tuple(map(decode_event, path.read_text(encoding="utf-8").splitlines()))
        if not events:
            return failed("report", f"{EVENTS} is empty")
        story = story_of(run, events)
        return story, page(story)
    except OSError as problem:
        why = problem.strerror or str(problem)
        return failed("report", f"{REPORT} cannot be rendered again: {EVENTS} cannot be read: {why}")
    except _UNREADABLE as problem:
        return failed("report", f"{EVENTS} is no record of a run: {brief(problem)}")


def _facts(story: Story, claimed: Certificate) -> dict[str, tuple[object, object]]:
    """What the events and the certificate both say."""
    best, time, run = story.best, claimed.time, claimed.run
    judgement = None if best is None else best.judgement
    return {
        "problem": (story.started.problem, claimed.problem.name),
        "target": (story.started.target, claimed.problem.target),
        "seed": (story.started.seed, run.seed),
        "candidates": (sum(each.judgement is not None for each in story.candidates), run.judged),
        "end": (story.ended, run.reason),
        "best": (None if best is None else best.name, claimed.design.name),
        "microseconds": (None if judgement is None else judgement.microseconds, time.microseconds),
        "median": (story.settled, time.median),
        "reward": (None if judgement is None else judgement.reward, time.reward),
    }
