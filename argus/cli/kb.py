"""`argus kb`: lists, shows and checks optimisation techniques, and mines them from expert designs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from argus.cli.screen import Screen
from argus.cli.search.kb_text import as_json as technique_json
from argus.cli.search.kb_text import (
    checked_json,
    checked_lines,
    checked_practice_json,
    checked_practice_lines,
    listed,
    mined_json,
    shown,
    shown_practice,
    step_line,
)
from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.verdict import Report
from argus.emit.build import compile_resources
from argus.emit.hip.toolchain import compiler_present
from argus.policy.authoring import technique_text
from argus.policy.knowledge import kb_folder, load_practices, load_techniques, records_root
from argus.policy.practice import Practice
from argus.policy.technique import Technique
from argus.report.atomic_write import write_whole
from argus.report.command_result import Outcome
from argus.search.designs import designs
from argus.search.designs.knowledge_check import CheckContext, CheckResult, check_technique
from argus.search.designs.mined_files import is_file, kernel_tools, mined_kernel
from argus.search.designs.mining import (
    KERNELS,
    MiningResult,
    Rejected,
    Skill,
    Tools,
    collect,
    design_space,
    draft_technique,
    mine,
)
from argus.search.designs.practice_check import PracticeCheck, check_practice
from argus.search.designs.time_tables import times_of_shape
from argus.search.evaluation.numerics import disagreement
from argus.search.evaluation.prediction import predict_time
from argus.search.problems.problem import Gemm, gemm_of
from argus.solvers.cache import Cache
from argus.verifier.kernel import verify

LIST, SHOW, CHECK, MINED = "argus.kb.list/1", "argus.kb.show/1", "argus.kb.check/1", "argus.kb.mine/1"
WRONG = 1
_PROBLEM = "gemm:4096x4096x4096"

_folder = click.option("--kb", "folder", metavar="DIR", help="Folder of techniques, instead of the shipped one.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")


@click.group(name="kb", no_args_is_help=False)
def knowledge() -> None:
    """Optimisation techniques: effect, preconditions and recorded experiments; check them, or mine new ones."""


@knowledge.command(name="list")
@_folder
@_json
def list_all(folder: str | None, as_json: bool) -> Outcome:
    """List all techniques, those with the widest scope first, then practices by family of kernels."""
    techniques, practices = _loaded(folder), load_practices(_place(folder))
    if not as_json:
        Screen().lines(listed(techniques, practices))
    told = {"techniques": [*map(technique_json, techniques)], "practices": [*map(technique_json, practices)]}
    return Outcome(0, {"schema": LIST, **told})


@knowledge.command()
@click.argument("name", metavar="NAME")
@_folder
@_json
def show(name: str, folder: str | None, as_json: bool) -> Outcome:
    """Show one technique or practice, with the experiments that support it."""
    page = _named((*_loaded(folder), *load_practices(_place(folder))), name)
    if not as_json:
        Screen().lines(shown_practice(page) if isinstance(page, Practice) else shown(page))
    kind = "practice" if isinstance(page, Practice) else "technique"
    return Outcome(0, {"schema": SHOW, kind: technique_json(page)})


@knowledge.command(name="check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--prove", is_flag=True, help="Also prove an output kernel of each technique, with its preconditions.")
@_folder
@_json
def check_all(names: tuple[str, ...], prove: bool, folder: str | None, as_json: bool) -> Outcome:
    """Check that pages are right; exit code 1 if one is not.

    Techniques: matcher, invariants and transformation must exist; on every target the transformation must change a
    kernel that the matcher accepts; the lineage must name designs that differ in the technique. Practices: invariants
    and records must exist, and figures must be the records'. A page without an experiment must be marked as conjecture.
    """
    techniques, practices = _loaded(folder), load_practices(_place(folder))
    pages = (*techniques, *practices)
    chosen = [_named(pages, name) for name in names] or pages
    bench, root = CheckContext(verify=_verify if prove else None), records_root()
    found: list[CheckResult | PracticeCheck] = []
    for page in chosen:
        if isinstance(page, Practice):
            found.append(practice := check_practice(page, root))
            lines = checked_practice_lines(practice)
        else:
            found.append(technique := check_technique(page, bench))
            lines = checked_lines(technique)
        if not as_json:
            Screen().lines(lines)
    wrong = sum(bool(each.faults) for each in found)
    if not as_json:
        Screen().lines([f"{len(found) - wrong} of {len(found)} pages are right"])
    return Outcome(
        WRONG if wrong else 0,
        {
            "schema": CHECK,
            "techniques": [checked_json(each) for each in found if isinstance(each, CheckResult)],
            "practices": [checked_practice_json(each) for each in found if isinstance(each, PracticeCheck)],
        },
    )


@knowledge.command(name="mine")
@click.argument("kernel", metavar="KERNEL")
@click.option("--problem", "problem_text", default=_PROBLEM, show_default=True, help="Problem for timing.")
@click.option("--sizes", default="", metavar="M=4096,...", help="Sizes for timing, if KERNEL is one of a file.")
@click.option("--times", "table", metavar="FILE", help="Recorded table of times, instead of the static model.")
@click.option("-o", "--output", metavar="DIR", help="Write each skill as a page, and all as skills.json.")
@_folder
@_json
def mine_kernel(
    kernel: str,
    problem_text: str,
    sizes: str,
    table: str | None,
    output: str | None,
    folder: str | None,
    as_json: bool,
) -> Outcome:
    """Remove techniques from an expert's kernel one by one, and record the slowdown of each step.

    KERNEL is the name of a GEMM configuration, such as clustered_bands or cdna3_pingpong, or FILE or FILE:NAME for any
    kernel. A technique is removed only if the simpler kernel is proved and computes the same in the interpreter.
    """
    techniques = _loaded(folder)
    if is_file(kernel):
        subject = mined_kernel(kernel)
        tools, target = kernel_tools(kernel, sizes, table, subject.kernel, _verify, _predicted), subject.kernel.target
        found = mine(subject, techniques, tools, KERNELS)
    else:
        expert = designs.design(kernel)
        target = expert.target
        tools = _tools(gemm_of(problem_text, target.name), problem_text, kernel, table)
        found = mine(expert, techniques, tools, design_space())
    steps: list[Skill | Rejected] = []
    for step in found:
        steps.append(step)
        if not as_json:
            Screen().lines([step_line(step)])
    mined = collect(kernel, steps)
    if not as_json:
        Screen().lines([f"{len(mined.skills)} skills from {mined.first} to {mined.expert}"])
    written = [] if output is None else _write(mined, tools, target.name, Path(output))
    if not as_json:
        Screen().lines(f"wrote {path}" for path in written)
    return Outcome(0, {"schema": MINED, **mined_json(mined), "files": written})


def _loaded(folder: str | None) -> tuple[Technique, ...]:
    return load_techniques(_place(folder))


def _place(folder: str | None) -> Path:
    return kb_folder() if folder is None else Path(folder)


def _named(pages: tuple[Technique | Practice, ...], name: str) -> Technique | Practice:
    for each in pages:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in pages)
    raise ArgusError(
        Diagnostic("E906", "error", f"there is no technique or practice `{name}`", help=f"there are {known}")
    )


def _verify(kernel: Kernel) -> Report:
    return verify(kernel, cache=Cache())


def _tools(problem: Gemm, text: str, kernel: str, table: str | None) -> Tools:
    command = f"argus kb mine {kernel} --problem {text}" + ("" if table is None else f" --times {table}")
    shape = f"{problem.m}x{problem.n}x{problem.k}"
    known = None if table is None else times_of_shape(Path(table), shape)

    def time(design: str, made: Kernel) -> float | None:
        return _predicted(made, problem.sizes) if known is None else known.get(design)

    def disagrees(made: Kernel) -> str:
        return disagreement(problem, made)

    basis = "static model" if table is None else "time"
    return Tools(_verify, disagrees, time, basis, command, shape)


def _predicted(made: Kernel, sizes: Mapping[str, int]) -> float:
    """Predicted time in microseconds; for gfx942 from the machine code, if its compiler is installed."""
    if made.target.name == "gfx942" and compiler_present():
        return predict_time(made, sizes, compile_resources(made)).microseconds
    return predict(made, sizes).microseconds


def _write(mined: MiningResult, tools: Tools, target: str, folder: Path) -> list[str]:
    """Raises ArgusError (E302)."""
    pages = [draft_technique(skill, i, mined, tools, target) for i, skill in enumerate(mined.skills, 1)]
    files = {f"{page.name}.md": technique_text(page) for page in pages}
    files["skills.json"] = json.dumps(mined_json(mined), indent=2) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        message = f"cannot write {folder}: {problem.strerror}"
        raise ArgusError(Diagnostic("E302", "error", message, help="name another folder with --output")) from problem
    for name, text in files.items():
        write_whole(folder / name, text.encode())
    return [str(folder / name) for name in files]
