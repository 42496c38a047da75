"""Verification reports as a SARIF 2.1.0 log, the format that code hosts and editors read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import PurePath
from urllib.parse import quote

from attrs import frozen

from argus.core.diagnostic import Diagnostic, Label, Severity
from argus.core.error_codes import entry
from argus.core.invariants import invariant
from argus.core.span import Frame, Span
from argus.core.verdict import Hop, Refuted, Report

Data = dict[str, object]

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "unknown": "none", "note": "note"}
_KINDS: dict[Severity, str] = {"error": "fail", "warning": "fail", "unknown": "open", "note": "informational"}


@frozen
class Located:
    """A diagnostic of a kernel for a target. chain: how the value of a counterexample came about."""

    kernel: str
    target: str
    diagnostic: Diagnostic
    chain: tuple[Hop, ...] = ()


def sarif(reports: Sequence[Report], *, version: str, root: str, pages: str = "") -> Data:
    """The log of verifications; see `sarif_log`."""
    return sarif_log(
        [each for report in reports for each in located_in(report)], version=version, root=root, pages=pages
    )


def located_in(report: Report) -> Iterable[Located]:
    """The diagnostics of a report."""
    found = report.verdict.counterexample if isinstance(report.verdict, Refuted) else None
    for number, diagnostic in enumerate(report.diagnostics):
        chain = found.chain if number == 0 and found is not None and found.code == diagnostic.code else ()
        yield Located(report.kernel, report.target, diagnostic, chain)


def sarif_log(findings: Sequence[Located], *, version: str, root: str, pages: str = "") -> Data:
    """The log of one run: one result a diagnostic, one rule a code that occurs.

    version: of Argus. root: the directory that paths are relative to. pages: URI of the folder that contains `docs/`,
    with a trailing slash; without it rules have help text but no link.
    """
    codes = list(dict.fromkeys(each.diagnostic.code for each in findings))
    driver = {"name": "Argus", "semanticVersion": version, "rules": [_rule(code, pages) for code in codes]}
    run: Data = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_ROOT: {"uri": f"{_uri(root)}/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, codes, root) for each in findings],
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _rule(code: str, pages: str) -> Data:
    title, statement = _title_and_statement(code)
    page = Diagnostic(code, "error", "").page
    help_text: Data = {"text": f"{statement} See {page}.", "markdown": f"**{title}.** {statement} See `{page}`."}
    rule: Data = {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": statement},
        "help": help_text,
    }
    return rule | ({"helpUri": pages + page} if pages else {})


def _title_and_statement(code: str) -> tuple[str, str]:
    """Title and explanation of an invariant or an error code."""
    if code.startswith("I"):
        return invariant(code).title, invariant(code).statement
    return entry(code).title, entry(code).explanation


def _result(located: Located, codes: Sequence[str], root: str) -> Data:
    diagnostic = located.diagnostic
    repair = f"\nHelp: {diagnostic.help}" if diagnostic.help else ""
    result: Data = {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "kind": _KINDS[diagnostic.severity],
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": f"{diagnostic.message}{repair}"},
        "locations": [_primary(located, root)],
        "partialFingerprints": {"argusFinding/v1": _fingerprint(located, root)},
        "properties": {"kernel": located.kernel, "target": located.target, "facts": dict(diagnostic.facts)},
    }
    related = [label for label in diagnostic.secondary if label.span.frame is not None]
    if related:
        result["relatedLocations"] = [_related(number, label, root) for number, label in enumerate(related)]
    if located.chain:
        result["codeFlows"] = [{"threadFlows": [{"locations": [_step(hop, root) for hop in located.chain]}]}]
    return result


def _primary(located: Located, root: str) -> Data:
    diagnostic = located.diagnostic
    name = diagnostic.kernel or located.kernel
    logical = {"name": name, "fullyQualifiedName": f"{name} ({located.target})", "kind": "function"}
    return _place(diagnostic.primary.span, root) | {
        "message": {"text": diagnostic.primary.text or diagnostic.message},
        "logicalLocations": [logical],
    }


def _related(number: int, label: Label, root: str) -> Data:
    return {"id": number, **_place(label.span, root), "message": {"text": label.text}}


def _step(hop: Hop, root: str) -> Data:
    taken = " and ".join(map(str, hop.sources)) or "constants"
    when = "".join(f", {name} = {value}" for name, value in hop.iteration)
    text = f"{hop.kind}: {hop.target} from {taken}, thread {hop.thread}{when}"
    return {"location": _place(hop.span, root) | {"message": {"text": text}}}


def _place(span: Span, root: str) -> Data:
    return {} if span.frame is None else {"physicalLocation": _physical(span.frame, root)}


def _physical(frame: Frame, root: str) -> Data:
    region = {"startLine": frame.line, "startColumn": frame.column + 1}
    if frame.end_column > frame.column:  # else the statement ends on a later line
        region["endColumn"] = frame.end_column + 1
    return {"artifactLocation": _artifact(frame.file, root), "region": region}


def _artifact(file: str, root: str) -> Data:
    path = PurePath(file)
    if path.is_relative_to(root):
        return {"uri": quote(path.relative_to(root).as_posix()), "uriBaseId": _ROOT}
    return {"uri": _uri(file) if path.is_absolute() else quote(path.as_posix())}


def _uri(path: str) -> str:
    """The file URI of an absolute path, also of one with a drive letter."""
    return f"file:///{quote(PurePath(path).as_posix().lstrip('/'), safe='/:')}"


def _fingerprint(located: Located, root: str) -> str:
    """A fingerprint that does not change when lines above the finding move."""
    frame = located.diagnostic.primary.span.frame
    file = "" if frame is None else str(_artifact(frame.file, root)["uri"])
    instruction = [value for name, value in located.diagnostic.facts if name == "instruction"]
    return _hash((located.diagnostic.code, located.kernel, located.target, file, *instruction))


def _hash(parts: Iterable[str]) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:32]
