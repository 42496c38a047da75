"""`argus query` and `argus conformance`: export and check SMT-LIB scripts, and test a solver backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from argus.cli.bench.queries import record, status_of
from argus.cli.options import budget_option, json_option
from argus.cli.screen import Screen
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index import Symbol
from argus.core.query import Answer, Budget, GaveUp, Sat, Unsat
from argus.report.atomic_write import write_text
from argus.report.command_result import Outcome
from argus.report.diagnostic_text import to_json
from argus.report.sources import unreadable
from argus.solvers import registry
from argus.solvers.conformance import conformance, examples
from argus.solvers.model import fault
from argus.solvers.smtlib.form import Inexpressible
from argus.solvers.smtlib.reader import Script, read_script
from argus.solvers.smtlib.script import export
from argus.verifier.loader import load

CHECK_SCHEMA, EXPORT_SCHEMA, CONFORMANCE_SCHEMA = "argus.query.check/1", "argus.query.export/1", "argus.conformance/1"
WRONG, OPEN = 1, 2

_solver = click.option("--solver", default="portfolio", show_default=True, help="Solver backend.")


# -- queries as scripts ----------------------------------------------------------------------------------


@click.group(no_args_is_help=False)
def query() -> None:
    """Export and check the verifier's queries as SMT-LIB scripts."""


@query.command(name="export")
@click.argument("kernel", metavar="FILE[:KERNEL]")
@click.argument("folder", metavar="DIR")
@_solver
@budget_option
@json_option
def export_queries(kernel: str, folder: str, solver: str, seconds: float, as_json: bool) -> Outcome:
    """Write every solver query of a kernel's verification as DIR/KEY.smt2."""
    backend = registry.get(solver)
    written: dict[str, str] = {}
    without: dict[str, str] = {}
    for exported in load(kernel):
        for question, answer in record(exported.trace(), backend, Budget.about(seconds)):
            text = export(question, status_of(answer), [f"asked about {exported.name}"])
            if isinstance(text, Inexpressible):
                without[question.key] = text.reason
            elif question.key not in written:
                written[question.key] = write_text(Path(folder) / f"{question.key}.smt2", text)
    if not as_json:
        Screen().lines([f"wrote {len(written):,} queries to {folder}"])
        Screen().lines([f"{key} has no script: {reason}" for key, reason in without.items()])
    document: dict[str, object] = {"schema": EXPORT_SCHEMA, "files": list(written.values()), "without_script": without}
    return Outcome(0, document)


@query.command()
@click.argument("file", metavar="FILE.smt2")
@_solver
@budget_option
@json_option
def check(file: str, solver: str, seconds: float, as_json: bool) -> Outcome:
    """Run a solver on an SMT-LIB script.

    Exit code 0: unsat; 1: sat, or the answer contradicts the script's `:status`; 2: the solver gave up.
    """
    backend = registry.get(solver)
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        advice = "write some with `argus query export KERNEL DIR`"
        message = f"`{file}` cannot be read: {unreadable(problem)}"
        raise ArgusError(Diagnostic("E001", "error", message, help=advice)) from problem
    script = read_script(text, f"`{file}`")
    answer = backend.check(script.query, Budget.about(seconds))
    problem = _contradiction(file, script, answer)
    if not as_json:
        Screen().lines(_answer_lines(script, answer))
        if problem is not None:
            Screen().diagnostic(problem)
    code = WRONG if problem is not None else {"unsat": 0, "sat": WRONG, "unknown": OPEN}[status_of(answer)]
    return Outcome(code, _answer_data(script, answer, problem))


def _contradiction(file: str, script: Script, answer: Answer) -> Diagnostic | None:
    wrong = fault(script.query, answer.model) if isinstance(answer, Sat) else None
    if wrong is not None:
        return Diagnostic("E604", "error", f"the model of {answer.solver} is wrong: {wrong}")
    found = status_of(answer)
    if "unknown" in (script.status, found) or script.status == found:
        return None
    message = f"{answer.solver} answers {found}, but `{file}` states {script.status}"
    return Diagnostic("E604", "error", message, help=f"run `argus conformance {answer.solver}`, and ask another solver")


def _answer_lines(script: Script, answer: Answer) -> Iterator[str]:
    yield f"query  {script.query.key}"
    match answer:
        case Unsat(solver=name):
            yield f"unsat  by {name}"
        case Sat(solver=name, model=model):
            yield f"sat    by {name}"
            yield from (f"       {symbol.name} = {model[symbol]}" for symbol in script.query.symbols if symbol in model)
        case GaveUp(solver=name, reason=reason):
            yield f"open   {name} gave up: {reason}"


def _answer_data(script: Script, answer: Answer, problem: Diagnostic | None) -> dict[str, object]:
    model: Mapping[Symbol, int] = answer.model if isinstance(answer, Sat) else {}
    return {
        "schema": CHECK_SCHEMA,
        "key": script.query.key,
        "stated": script.status,
        "answer": status_of(answer),
        "solver": answer.solver,
        "reason": answer.reason if isinstance(answer, GaveUp) else "",
        "model": [{"name": s.name, "kind": s.kind, "low": s.low, "high": s.high, "value": n} for s, n in model.items()],
        "diagnostics": [] if problem is None else [to_json(problem)],
    }


# -- conformance -----------------------------------------------------------------------------------------


@click.command(name="conformance")
@click.argument("name", metavar="NAME")
@budget_option
@json_option
def conform(name: str, seconds: float, as_json: bool) -> Outcome:
    """Run the conformance suite on the solver backend NAME, from Argus or from another installed package."""
    solver = registry.get(name)
    failures = conformance(solver, Budget.about(seconds))
    total = len(examples())
    if not as_json:
        Screen().lines(f"wrong  {failure.example.name}: {failure.problem}" for failure in failures)
        Screen().lines([f"{name} answers {total - len(failures)} of {total} queries correctly"])
    found = [{"question": failure.example.name, "problem": failure.problem} for failure in failures]
    document: dict[str, object] = {"schema": CONFORMANCE_SCHEMA, "solver": name, "questions": total, "failures": found}
    return Outcome(WRONG if failures else 0, document)
