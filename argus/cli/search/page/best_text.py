"""The text of the best kernel, and how it differs from the candidate that it was made from."""

from __future__ import annotations

from difflib import unified_diff

from attrs import frozen

from argus.cli.search.page.story import Candidate, Story
from argus.core.diagnostic import ArgusError
from argus.policy.planner import Choice
from argus.search.problems.texts import kernel_text


@frozen
class BestText:
    """The best kernel in the language.

    parent: name of the candidate that it was made from; empty for the first. changes: the lines of a unified diff from
    the parent's text.
    """

    name: str
    text: str
    parent: str
    changes: tuple[str, ...]


def best_text(story: Story) -> BestText | None:
    """None if nothing has passed, or the text is not at hand."""
    best = story.best
    text = "" if best is None else _text(story, best.name)
    if best is None or not text:
        return None
    parent = _parent(story, best)
    before = _text(story, parent) if parent else ""
    changes = unified_diff(before.splitlines(), text.splitlines(), parent, best.name, lineterm="")
    return BestText(best.name, text, parent, tuple(changes) if before else ())


def _parent(story: Story, best: Candidate) -> str:
    """Of a written kernel the refused one that it repairs, or the fastest before it; of a design, the one above it."""
    before = [each for each in story.candidates if each.number < best.number]
    if best.name in story.written:
        times = [(each.microseconds, each.name) for each in before if each.microseconds is not None]
        return story.written[best.name].repairs or (min(times)[1] if times else "")
    steps = best.techniques
    above = [each for each in before if each.techniques == steps[: len(each.techniques)] and each.techniques != steps]
    return max(above, key=lambda each: len(each.techniques)).name if above else ""


def _text(story: Story, name: str) -> str:
    kernel = story.written.get(name)
    try:
        return kernel_text(story.problem, Choice(name, (), (), text="" if kernel is None else kernel.text))
    except ArgusError:  # the name of no design of this version
        return ""
