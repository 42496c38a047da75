"""`argus bench solvers`: runs every solver backend on the verifier's queries and compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from argus.cli.bench.plot import cactus
from argus.cli.bench.queries import Corpus, Question, checkout, collect, narrowed, scripts, shipped
from argus.cli.bench.runs import Tally, measure
from argus.cli.bench.text import SCHEMA, Comparison, as_data, contradictions, rows, table
from argus.cli.options import budget_option, json_option
from argus.cli.screen import Screen
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.query import Budget
from argus.report.atomic_write import write_text
from argus.report.command_result import Outcome
from argus.report.diagnostic_text import to_json
from argus.report.sources import unreadable
from argus.solvers import registry
from argus.solvers.smtlib.script import export

WRONG = 1
ASKS_OTHERS = "all"


@click.command()
@click.option(
    "--corpus",
    "sources",
    multiple=True,
    metavar="FILE|DIR",
    help="Kernels whose queries are used; repeatable. Default: the shipped ones, and tests/corpus in a checkout.",
)
@click.option("--queries", "folder", metavar="DIR", help="Use the SMT-LIB scripts of this folder instead.")
@click.option("--solver", "names", multiple=True, metavar="NAME", help="A backend; repeatable. Default: all installed.")
@budget_option
@click.option("--narrowed", "small", is_flag=True, help="Also run queries restricted to few values per symbol.")
@click.option("--every", type=click.IntRange(1), default=1, metavar="N", help="Use only every Nth query.")
@click.option("-o", "--out", default="build/bench", show_default=True, metavar="DIR", help="Output folder.")
@json_option
def solvers(
    sources: tuple[str, ...],
    folder: str | None,
    names: tuple[str, ...],
    seconds: float,
    small: bool,
    every: int,
    out: str,
    as_json: bool,
) -> Outcome:
    """Compare solvers on the verifier's queries: a table, a cactus plot, and all times as CSV.

    Exit code 1 if two backends contradict each other, a model is wrong, or a backend raises an exception.
    """
    if sources and folder is not None:
        raise click.UsageError("--corpus and --queries exclude each other")
    say = _silent if as_json else _say
    for name in names:
        registry.get(name)
    chosen = names or tuple(_installed(say))
    asked = Budget.about(seconds)
    reference = registry.get("portfolio")
    corpus = _scripts(folder) if folder is not None else collect(sources or (*shipped(), *checkout()), reference, asked)
    if sources and not corpus.kernels:
        raise _nothing_analysed(corpus)
    questions = corpus.questions[::every]
    _introduce(corpus, say)
    title = "as the verifier asks" if folder is None else f"scripts of {folder}"
    comparisons = [Comparison(title, questions, _tallies(questions, chosen, asked))]
    if small:
        fewer = _unique(narrowed(question, reference, asked) for question in questions)
        comparisons.append(Comparison("narrowed to few values", fewer, _tallies(fewer, chosen, asked)))
    written = _write_all(comparisons, Path(out))
    problems = [each for comparison in comparisons for each in contradictions(comparison)]
    if not as_json:
        _show(comparisons, problems, written)
    document: dict[str, object] = {
        "schema": SCHEMA,
        "kernels": corpus.kernels,
        "asked": corpus.asked,
        "skipped": [{"file": name, "reason": reason} for name, reason in corpus.skipped],
        "budget_seconds": seconds,
        "comparisons": [as_data(comparison) for comparison in comparisons],
        "diagnostics": [to_json(problem) for problem in problems],
        "files": written,
    }
    return Outcome(0 if all(each.right for each in comparisons) else WRONG, document)


def _installed(say: Callable[[str], None]) -> Iterator[str]:
    """The backends that can be loaded, except the one that runs all others."""
    for name in registry.available():
        try:
            registry.get(name)
        except ArgusError as problem:
            say(f"skipped {name}: {problem}")
        else:
            if name != ASKS_OTHERS:
                yield name


def _scripts(folder: str) -> Corpus:
    try:
        corpus = scripts(Path(folder))
    except (OSError, UnicodeDecodeError) as problem:
        message = f"`{folder}` cannot be read: {unreadable(problem)}"
        advice = "name a folder of scripts, such as one that `argus query export KERNEL DIR` writes"
        raise ArgusError(Diagnostic("E001", "error", message, help=advice)) from problem
    if not corpus.questions:
        message = f"`{folder}` holds no script that ends in .smt2"
        raise ArgusError(Diagnostic("E001", "error", message, help="write some with `argus query export KERNEL DIR`"))
    return corpus


def _nothing_analysed(corpus: Corpus) -> ArgusError:
    """E001: none of the named kernels could be analysed."""
    reasons = "; ".join(f"{name}: {reason}" for name, reason in corpus.skipped)
    return ArgusError(
        Diagnostic(
            "E001", "error", f"--corpus names no kernel: {reasons}", help="name a kernel file or a folder of them"
        )
    )


def _unique(questions: Iterable[Question]) -> tuple[Question, ...]:
    return tuple({question.query.key: question for question in questions}.values())


def _tallies(questions: Sequence[Question], names: Sequence[str], budget: Budget) -> tuple[Tally, ...]:
    return tuple(measure(questions, name, budget) for name in dict.fromkeys(names))


def _say(line: str) -> None:
    Screen().lines([line])


def _silent(line: str) -> None:
    """Print nothing: with `--json` only the document is printed."""


def _introduce(corpus: Corpus, say: Callable[[str], None]) -> None:
    if corpus.kernels:
        say(f"{corpus.kernels:,} kernels: {corpus.asked:,} queries, {len(corpus.questions):,} of them distinct")
    for name, reason in corpus.skipped:
        say(f"skipped {name}: {reason}")


def _write_all(comparisons: Sequence[Comparison], out: Path) -> list[str]:
    files = {"solvers.csv": rows(comparisons)}
    for number, each in enumerate(comparisons):
        times = {tally.backend: tally.times() for tally in each.tallies}
        files[f"cactus{'-narrowed' * number}.svg"] = cactus(times, len(each.questions))
        for found in each.disagreements:
            text = export(found.question.query)
            if isinstance(text, str):
                files[f"disagreements/{found.question.query.key}.smt2"] = text
    return [write_text(out / name, text) for name, text in files.items()]


def _show(comparisons: Sequence[Comparison], problems: Sequence[Diagnostic], written: Sequence[str]) -> None:
    for each in comparisons:
        Screen().lines(["", *table(each)])
    for problem in problems:
        Screen().lines([""])
        Screen().diagnostic(problem)
    Screen().lines(["", *(f"wrote {path}" for path in written)])
