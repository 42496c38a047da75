"""Adds suggested claims to a kernel file: selects those true for all its kernels, reloads and verifies the file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import define, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Assert, Kernel, Tag, walk
from argus.core.ir.pretty import claim_text
from argus.core.query import Budget
from argus.core.verdict import Proved, Report
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.solvers.choice import resolve
from argus.verifier.annotate.text import Added, Insertion, Source, insert_lines, source_of, with_sizes
from argus.verifier.loader import SECONDS, Exported, load, locate_file
from argus.verifier.program import ExportVerifier
from argus.verifier.suggest import Suggestion, Suggestions, suggest_invariants
from argus.verifier.suggest.program import without_claims


@frozen
class Annotated:
    """A kernel file with claims added.

    before, after: the file's bytes, equal where nothing was added. added: the new lines of `after`. left_out: claims
    that hold but were not added, each with the reason. reports: on each requested kernel of `after`, and on the kernels
    that share added lines with them.
    """

    path: Path
    before: bytes
    after: bytes
    added: tuple[Added, ...]
    left_out: tuple[str, ...]
    reports: tuple[Report, ...]

    @property
    def proved(self) -> bool:
        return all(isinstance(report.verdict, Proved) for report in self.reports)


def annotate(
    what: str,
    *,
    solver: str | Solver | None = None,
    budget: Budget | None = None,
    cache: Cache | None = None,
    seconds: float = SECONDS,
) -> Annotated:
    """The text of FILE or FILE:KERNEL with the claims that `suggest_invariants` proves; does not write the file.

    A claim is added only if it holds for every kernel traced from the lines around it. If the file is not proved with
    all claims, they are tried one by one, best first, and those with which it stays proved are added. If there are
    none, `after` equals `before`, and `reports` say why.

    Raises:
        ArgusError: E00x for a file that does not load, E1xx or E2xx for a kernel that cannot be traced, E501 for one
            that cannot be run, E6xx without a solver.
    """
    path = locate_file(what)
    chosen = [each.name for each in load(what, seconds=seconds)]
    source = source_of(path.read_bytes())
    backend, limits = resolve(solver), budget or Budget()
    everything = load(what.removesuffix(f":{_kernel(what)}"), seconds=seconds)
    files = [_Traced(each, each.trace(seconds=seconds)) for each in everything]
    known = [
        _Known(each.kernel, suggest_invariants(without_claims(each.kernel), solver=backend, budget=limits))
        for each in files
        if each.exported.name in chosen
    ]
    ranked, elsewhere = _ranked(known, path, source)
    trial = _Trial(path, source, tuple(chosen), files, ExportVerifier(backend, limits, cache), seconds)
    kept, refused = trial.most(ranked)
    after, added = insert_lines(source, kept)
    left = (*elsewhere, *(f"{each.code}: with it the file is not proved" for each in refused))
    reports = trial.reports(kept)
    return Annotated(path, source.data, after, added, left, reports)


def _kernel(what: str) -> str:
    """KERNEL of FILE:KERNEL; for a FILE alone the whole text, which is never its suffix after a colon."""
    return what if Path(what).exists() else what.rpartition(":")[2]


@frozen
class _Traced:
    exported: Exported
    kernel: Kernel


# -- selection ---------------------------------------------------------------------------------------------------


@define
class _Known:
    """A kernel with its suggestions."""

    kernel: Kernel
    made: Suggestions

    def proved(self) -> Iterator[Suggestion]:
        yield from (*self.made.found, *self.made.implied)

    def reaches(self, path: Path, wanted: Insertion) -> bool:
        """Whether the inserted line would become a statement of this kernel."""
        if wanted.where != "before":
            return wanted.line == _first_line(self.kernel)
        frames = (stmt.span.frame for stmt in walk(self.kernel.body))
        return any(f is not None and f.line == wanted.line and _is_of(f.file, path) for f in frames)


def _ranked(known: Sequence[_Known], path: Path, source: Source) -> tuple[tuple[Insertion, ...], tuple[str, ...]]:
    """Lines that hold for every kernel they would become part of, best first; and the other claims, with reasons."""
    lines: dict[Insertion, None] = {}
    others: dict[str, None] = {}
    holding = [{_wanted(each, own.kernel, path) for each in own.proved()} for own in known]
    for own in known:
        claimed = {claim_text(stmt.claim) for stmt in walk(own.kernel.body) if isinstance(stmt, Assert)}
        for each in own.made.found:
            wanted = _wanted(each, own.kernel, path)
            if each.claim in claimed:
                continue
            if wanted is None:
                others[f"{each.code}: it belongs in another file, {each.place}"] = None
            elif all(wanted in held for other, held in zip(known, holding, strict=True) if other.reaches(path, wanted)):
                lines[
                    Insertion(with_sizes(wanted.code, own.kernel, source, wanted.line), wanted.where, wanted.line)
                ] = None
            else:
                others[f"{each.code}: it is not proved for every kernel of {path.name}:{wanted.line}"] = None
    return tuple(lines), tuple(others)


def _wanted(each: Suggestion, kernel: Kernel, path: Path) -> Insertion | None:
    """A suggestion as a line to insert in the file; None if it belongs in another file."""
    frame = each.at.frame or kernel.span.frame
    if frame is None or not _is_of(frame.file, path):
        return None
    if each.at.frame is not None:
        return Insertion(each.code, "before", frame.line)
    return Insertion(each.code, "start" if each.kind == "tag" else "end", frame.line)


def _first_line(kernel: Kernel) -> int:
    return kernel.span.frame.line if kernel.span.frame is not None else 0


def _is_of(file: str, path: Path) -> bool:
    return file == str(path) or Path(file).resolve() == path.resolve()


# -- verification ------------------------------------------------------------------------------------------------


@define
class _Trial:
    """Verifies the file with some lines inserted, loading it from a temporary copy."""

    path: Path
    source: Source
    chosen: tuple[str, ...]
    files: Sequence[_Traced]
    asked: ExportVerifier
    seconds: float

    def most(self, ranked: tuple[Insertion, ...]) -> tuple[tuple[Insertion, ...], tuple[Insertion, ...]]:
        """The lines with which the file is proved, preferring the first ones; and the others."""
        if not ranked or self._holds(ranked):
            return ranked, ()
        kept: tuple[Insertion, ...] = ()
        for each in ranked:
            # A tag alone claims nothing: the claims that use it come later.
            if (each.where == "start" and self._loads((*kept, each))) or self._holds((*kept, each)):
                kept = (*kept, each)
        kept = kept if self._holds(kept) else ()
        return kept, tuple(each for each in ranked if each not in kept)

    def reports(self, lines: tuple[Insertion, ...]) -> tuple[Report, ...]:
        """Reports on the requested kernels, and on those whose claims these lines change."""
        before = {each.exported.name: _claims(each.kernel) for each in self.files}
        made = self._traced(lines)
        return tuple(
            self.asked.report(each.exported, each.kernel)
            for each in made
            if each.exported.name in self.chosen or _claims(each.kernel) != before.get(each.exported.name)
        )

    def _holds(self, lines: tuple[Insertion, ...]) -> bool:
        return self._loads(lines) and all(isinstance(each.verdict, Proved) for each in self.reports(lines))

    def _loads(self, lines: tuple[Insertion, ...]) -> bool:
        try:
            return bool(self._traced(lines))
        except ArgusError:
            return False

    def _traced(self, lines: tuple[Insertion, ...]) -> tuple[_Traced, ...]:
        """Every kernel of the file with the lines inserted, traced from a temporary copy."""
        data, added = insert_lines(self.source, lines)
        if not added:
            return tuple(self.files)
        with tempfile.TemporaryDirectory(prefix="argus-annotate-") as folder:
            copy = Path(folder) / self.path.name
            copy.write_bytes(data)
            found = load(str(copy), seconds=self.seconds, beside=self.path.parent)
            return tuple(_Traced(each, each.trace(seconds=self.seconds)) for each in found)


def _claims(kernel: Kernel) -> int:
    return sum(isinstance(stmt, Assert | Tag) for stmt in walk(kernel.body))
