"""Summaries of verdicts and builds as text and JSON. `diagnostic_text` renders diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Literal, assert_never

from argus.core.verdict import (
    Cost,
    Finding,
    ProgramReport,
    Proved,
    Refuted,
    Report,
    Standing,
    Unknown,
    Vacuous,
    Verdict,
)
from argus.emit.artifact import Artifact, report_data
from argus.emit.cuda.machine_code import MachineCode
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.hip.code_intervals import CodeIntervals
from argus.emit.hip.resource_report import ResourceReport
from argus.report.diagnostic_text import to_json
from argus.report.machine_code import machine_code_json, machine_code_rows

BUILD_SCHEMA = "argus.build/1"
Word = Literal["proved", "refuted", "unknown", "vacuous"]
_WIDTH = 100
_MARGIN = 18


def verdict_word(verdict: Verdict) -> Word:
    """The verdict's name."""
    match verdict:
        case Proved():
            return "proved"
        case Refuted():
            return "refuted"
        case Unknown():
            return "unknown"
        case Vacuous():
            return "vacuous"
        case _:
            assert_never(verdict)


def headline(report: Report) -> str:
    """The first line of a verdict."""
    return f"{report.kernel} ({report.target}): {verdict_word(report.verdict)}{_meaning(report)}"


def report_lines(report: Report, *, every_invariant: bool = False) -> Iterator[str]:
    """The lines below the headline: invariants, assumptions, coverage, cost.

    every_invariant: one line for each invariant, also for those that do not apply, with the reason.
    """
    if isinstance(report.verdict, Unknown):
        yield from _row("why", report.verdict.reason)
        yield from _row("try", report.verdict.attempt)
    if report.nearest is not None:
        yield from _row("proved if you", str(report.nearest))
    yield from _invariants(report.findings, every_invariant)
    yield from _list("results", results(report.verdict))
    yield from _list("assumptions", assumptions(report.verdict))
    yield from _coverage(report)
    yield from _cost(report.cost, report.solver)


def program_lines(report: ProgramReport) -> Iterator[str]:
    """The verdict on a program, and the tensors that one launch writes and another reads."""
    yield f"program {report.program}: {verdict_word(report.verdict)}, {len(report.launches)} launches"
    for each in report.crossings:
        route = f"{', '.join(each.writers)} -> {', '.join(each.readers)}"
        yield from _row("crosses", f"{each.tensor} ({route}): {each.holds}")


def results(verdict: Verdict) -> tuple[str, ...]:
    """The proved contents of the outputs."""
    return verdict.results if isinstance(verdict, Proved) else ()


def _meaning(report: Report) -> str:
    match report.verdict:
        case Proved() if report.uncovered:
            return f", but no assertion determines {', '.join(report.uncovered)}"
        case Proved():
            return " for all sizes that meet the assumptions"
        case Refuted(counterexample=found):
            return f" by {found.code}, {_HOW[found.replayed]}"
        case Unknown():
            return ", neither proved nor refuted"
        case Vacuous():
            return ", the assumptions contradict each other"
        case _:
            assert_never(report.verdict)


_HOW = {"interpreter": "replayed in the interpreter", "recomputed": "recomputed from the program"}


def assumptions(verdict: Verdict) -> tuple[str, ...]:
    """The assumptions of the verdict; none for a counterexample."""
    return verdict.assumptions if isinstance(verdict, Proved | Vacuous) else ()


def _invariants(findings: Sequence[Finding], every: bool) -> Iterator[str]:
    for standing in _STANDINGS:
        found = [finding for finding in findings if finding.standing == standing]
        if found and every:
            yield from _row(standing, f"{len(found)}")
            yield from (line for finding in found for line in _detail(finding))
        elif found and standing == "not applicable":
            yield from _row(standing, f"{len(found)} invariants, listed with -v")
        elif found:
            yield from _row(standing, ", ".join(finding.invariant for finding in found))


_STANDINGS: tuple[Standing, ...] = ("proved", "refuted", "unknown", "not built yet", "not applicable")


def _detail(finding: Finding) -> Iterator[str]:
    counted = f"{finding.obligations} obligations" if finding.obligations else ""
    counted += f", {finding.compared:,} elements" if finding.compared else ""
    rest = "; ".join(part for part in (counted, finding.reason) if part)
    text = f"{finding.invariant:<4} {finding.title}{f' ({rest})' if rest else ''}"
    yield from wrap(text, _WIDTH, initial_indent="    ", subsequent_indent=" " * 9)


def _list(name: str, items: Iterable[str]) -> Iterator[str]:
    label = name
    for item in items:
        yield from _row(label, item)
        label = ""


def _coverage(report: Report) -> Iterator[str]:
    if isinstance(report.verdict, Proved):
        counts = [f"{code} {count:,}" for code, count in numbered(report.verdict.coverage) if count]
        yield from _row("coverage", f"elements compared: {', '.join(counts)}")


def numbered(coverage: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sorted by invariant number: I2 before I10."""
    return sorted(coverage, key=lambda pair: int(pair[0][1:]))


def _cost(cost: Cost, solver: str) -> Iterator[str]:
    yield from _row(
        "cost",
        f"{cost.seconds:.2f} s with {solver}: {cost.asked} queries: {cost.by_normal_form} by normal form, "
        f"{cost.remembered} cached, {cost.smt} to SMT",
    )


def _row(label: str, text: str) -> Iterator[str]:
    yield from wrap(
        text,
        _WIDTH,
        initial_indent=f"  {label:<{_MARGIN - 2}}",
        subsequent_indent=" " * _MARGIN,
        break_long_words=False,
        break_on_hyphens=False,
    )


# -- resources -----------------------------------------------------------------------------------------------


def artifact_lines(artifact: Artifact) -> Iterator[str]:
    """Resource usage and files of a built kernel."""
    yield f"{artifact.name} ({artifact.target}): compiled"
    match artifact.report:
        case ResourceReport():
            yield from _cdna_lines(artifact.report)
            yield from _interval_lines(artifact.code_intervals)
        case AssemblerReport():
            yield from _hopper_lines(artifact.report, artifact.launch.shared_bytes)
            yield from _code_lines(artifact.machine_code)
        case _:
            assert_never(artifact.report)
    yield from _list("files", (str(path) for path in files(artifact)))


def _cdna_lines(report: ResourceReport) -> Iterator[str]:
    yield from _row(
        "registers",
        f"{report.registers} a lane ({report.vgprs} VGPR, {report.agprs} AGPR), {report.sgprs} SGPR",
    )
    yield from _row(
        "spills",
        f"{report.vgpr_spills} VGPR, {report.sgpr_spills} SGPR, {report.scratch_bytes} bytes of scratch a lane",
    )
    yield from _row("LDS", f"{report.lds_bytes:,} bytes a block")
    yield from _row("occupancy", f"{report.occupancy} waves a SIMD")
    yield from _row("instructions", _mix(report))


def _interval_lines(found: CodeIntervals | None) -> Iterator[str]:
    if found is None or not found.boundaries[0]:
        return
    there, kept = found.boundaries
    moved, unknown = sum(each.count for each in found.moved), found.unplaced
    placed = f"{found.placed} instructions in their places"
    others = [f"{moved} moved"] * bool(moved) + [f"{unknown} of no known line"] * bool(unknown)
    yield from _row("waits", ", ".join([f"{kept} of {there} waits and barriers in the code", placed, *others]))


def _hopper_lines(report: AssemblerReport, shared: int) -> Iterator[str]:
    yield from _row("registers", f"{report.registers} a thread at launch")
    yield from _row("spills", f"{report.spill_stores} bytes stored, {report.spill_loads} bytes loaded a thread")
    yield from _row("shared", f"{shared:,} bytes a block")


def _code_lines(code: MachineCode | None) -> Iterator[str]:
    for label, text in () if code is None else machine_code_rows(code):
        yield from _row(label, text)


def files(artifact: Artifact) -> tuple[str, ...]:
    """Paths of source, assembly (if any), code object and description."""
    paths = (artifact.source, artifact.assembly, artifact.code, artifact.description)
    return tuple(str(path) for path in paths if path is not None)


def _mix(report: ResourceReport) -> str:
    kinds = ("v_mfma", "ds_read", "ds_write", "buffer_load", "buffer_store", "global_load", "global_store", "s_barrier")
    counted = ((kind, report.count(kind)) for kind in kinds)
    return ", ".join(f"{number} {kind}" for kind, number in counted if number)


# -- JSON ----------------------------------------------------------------------------------------------------


def artifact_json(artifact: Artifact) -> dict[str, object]:
    """One kernel of the schema `argus.build/1`."""
    return {
        "name": artifact.name,
        "target": artifact.target,
        "files": list(files(artifact)),
        "report": report_data(artifact.report),
        "machine_code": None if artifact.machine_code is None else machine_code_json(artifact.machine_code),
        "diagnostics": [to_json(warning) for warning in artifact.warnings],
    }
