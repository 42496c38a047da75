"""Renders the HTML page of a search run. Names, reasons and model output are untrusted: all of them are escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from argus.cli.search.page.best_text import best_text
from argus.cli.search.page.figures import progress, roofline, stage_times, techniques
from argus.cli.search.page.story import Story, saved, stages, story_of, tree, uses
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.report.atomic_write import write_whole
from argus.report.drawing import COLOUR_OF, Meaning
from argus.search.journal import Journal

_LEGEND: Mapping[Meaning, str] = {
    "best": "the best design",
    "candidate": "other designs that passed",
    "refuted": "rejected",
    "bound": "bounds: the speed of light, rates of the machine",
    "time": "time that the search took",
}


def page(story: Story) -> str:
    """The page as HTML, with all plots inline, no scripts and no external resources."""
    used = uses(story)
    drawn = [progress(story), *([techniques(used)] if used else [])]
    drawn += [*([roofline(story)] if story.problem.work.known else []), stage_times(stages(story))]
    best = story.best
    return _rendered(
        story=story,
        bounds=story.problem.bounds,
        best=best,
        predicted=any(each.judgement and each.judgement.reward == "predicted" for each in story.passed),
        saved=saved(story),
        # Serialised by ElementTree, which escapes the texts in them.
        figures=[Markup(_visible(each)) for each in drawn],  # noqa: S704 reason: as above
        tree=list(tree(story)),
        text=best_text(story),
        colours=COLOUR_OF,
        legend=_LEGEND,
    )


def _rendered(**given: object) -> str:
    """The template filled with these values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 reason: no other command needs it

    made = Environment(
        loader=PackageLoader("argus.cli.search.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    made.filters["data"] = _data
    return made.get_template("page.html").render(given)


def _shown(value: object) -> object:
    return _visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _data(value: object) -> str:
    return json.dumps(value, indent=1, default=str)


def _visible(text: str) -> str:
    """The text with characters that HTML forbids replaced."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text)


def write_report(journal: Journal, run: str, path: Path) -> Story:
    """Write the page of a run to a file. Raises ArgusError: E903, E904, E302."""
    story = story_of(run, journal.events(run))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        message = f"cannot write {path}: {problem.strerror}"
        raise ArgusError(Diagnostic("E302", "error", message, help="name another file")) from problem
    write_whole(path, page(story).encode())
    return story
