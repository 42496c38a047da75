"""Turns candidate claims into suggestions: filters them by runs, proves the rest, ranks them by mutants killed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import cast

from attrs import frozen

from argus.core.check import claim_views
from argus.core.diagnostic import ArgusError
from argus.core.dsl.kernel import Template
from argus.core.index import Index
from argus.core.ir import Assert, For, Kernel, Stmt, Tag, trips, walk
from argus.core.ir.pretty import claim_text
from argus.core.query import Budget
from argus.core.span import Span
from argus.core.verdict import Proved, Refuted, Verdict
from argus.core.walk import evaluate, symbols
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import run_prepared
from argus.interp.search.schedule import directed
from argus.interp.search.search import sizes_in_order
from argus.report.summary import verdict_word
from argus.solvers.base import Solver
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session
from argus.verifier.kernel import CheckedObligation, check_obligations, verify
from argus.verifier.suggest.pool import FILE, Candidate, candidates
from argus.verifier.suggest.program import mutants, with_statements, without_claims
from argus.verifier.suggest.values import proved_formulas

_OF_THE_FIRST = 24
_MISTAKES = 24
_AT_THE_END = "at the end of the kernel"
_ALWAYS = ("tag", "covers", "written once")
"""Kinds that a verdict about the output needs, and that are therefore never dropped as implied."""


@frozen
class Suggestion:
    """A claim that holds for the kernel, as a line to paste.

    code: the line. claim: its text as `pretty` prints it; empty for a tag. kind: the kind of claim. about: the tile or
    tensor of the claim. place: where the line goes, in words; at: the statement it goes before (no source location for
    the kernel's end, or its start for a tag). excludes: how many of the tried mutants violate the claim. compared: how
    many elements its proof compares. reason: why the claim is not proved; empty if it is.
    """

    code: str
    kind: str
    about: str
    place: str
    at: Span
    excludes: int = 0
    compared: int = 0
    reason: str = ""
    claim: str = ""


@frozen
class Suggestions:
    """The suggestions for one kernel, best first.

    verdict: that of the kernel with all proved claims added, in one word. Only if it is "proved" do the claims hold for
    every run; otherwise they hold for the data flow alone, and `reason` says what is refuted or unproved.
    found: proved, and not implied by better ones. implied: proved, but every mutant they exclude is excluded by one of
    `found`. open: not violated by any run, and not proved. tried: how many candidates; runs, mistakes: how many sizes
    were run and mutants tried. formulas: that outputs equal what the analysis finds that they hold; proved of the
    kernel without other claims.
    """

    kernel: str
    target: str
    solver: str
    verdict: str
    reason: str
    found: tuple[Suggestion, ...]
    implied: tuple[Suggestion, ...]
    open: tuple[Suggestion, ...]
    tried: int
    runs: int
    mistakes: int
    formulas: tuple[Suggestion, ...] = ()


def suggest_invariants(
    kernel: Kernel | Template,
    *,
    solver: str | Solver | None = None,
    budget: Budget | None = None,
    config: str | None = None,
) -> Suggestions:
    """Propose claims for a kernel: tags, coverage of sums, outputs written once, and relations between tiles.

    The kernel's own claims stay in place and are not proposed again. solver, budget, config: as for `verify`.
    Raises ArgusError when the kernel cannot be traced or run (E501), or the solver is unknown.
    """
    traced = kernel if isinstance(kernel, Kernel) else kernel.trace(config or kernel.instances()[0])
    return _suggested(traced, resolve(solver), budget or Budget())[0]


def with_suggested(
    kernel: Kernel, *, solver: str | Solver | None = None, budget: Budget | None = None
) -> tuple[Kernel, Suggestions]:
    """The kernel with the suggested claims added, and the suggestions; the kernel unchanged if it is not proved so.

    Raises ArgusError like `suggest_invariants`.
    """
    made, claiming = _suggested(kernel, resolve(solver), budget or Budget())
    return (claiming if made.verdict == "proved" else kernel), made


def _suggested(traced: Kernel, backend: Solver, limits: Budget) -> tuple[Suggestions, Kernel]:
    """The suggestions, and the kernel with those in `found` added."""
    made = {claim_text(stmt.claim) for stmt in walk(traced.body) if isinstance(stmt, Assert)}
    pool = [each for each in candidates(without_claims(traced)) if not _is_made(each, made)]
    sizes = _sizes(traced)
    alive = _unbroken(traced, pool, sizes)
    standings = _standings(_with(traced, alive), Session(backend, limits, None))
    proved = [each for each in alive if standings.get(each.number, _NOTHING).holds]
    broken, tried = _excluded(traced, proved, sizes)
    verdict = verify(_with(traced, proved), solver=backend, budget=limits).verdict
    ranked = [_suggestion(each, standings, broken) for each in proved]
    order = sorted(range(len(proved)), key=lambda n: _rank(proved[n], ranked[n]))
    kept = _not_implied([proved[n] for n in order], broken)
    suggestions = Suggestions(
        traced.name,
        str(traced.target),
        backend.name,
        verdict_word(verdict),
        _verdict_reason(verdict),
        tuple(ranked[n] for n in order if proved[n] in kept),
        tuple(ranked[n] for n in order if proved[n] not in kept),
        tuple(_suggestion(each, standings, broken) for each in alive if each not in proved),
        len(pool),
        len(sizes),
        tried,
        tuple(map(_of_values, proved_formulas(traced, Session(backend, limits, None)))),
    )
    return suggestions, _with(traced, kept)


def _of_values(stmt: Assert) -> Suggestion:
    (view,) = claim_views(stmt.claim)
    text = claim_text(stmt.claim)
    return Suggestion(text, "equals", view.buffer.name, _AT_THE_END, Span(), claim=text)


def _is_made(candidate: Candidate, made: set[str]) -> bool:
    return isinstance(candidate.stmt, Assert) and claim_text(candidate.stmt.claim) in made


def _with(kernel: Kernel, chosen: Sequence[Candidate]) -> Kernel:
    before: dict[Stmt, list[Stmt]] = {}
    for each in chosen:
        if each.before is not None:
            before.setdefault(each.before, []).append(each.stmt)
    loose = [each.stmt for each in chosen if each.before is None]
    tags = [stmt for stmt in loose if isinstance(stmt, Tag)]
    return with_statements(kernel, tags, before, [stmt for stmt in loose if not isinstance(stmt, Tag)])


# -- runs --------------------------------------------------------------------------------------------------------


def _sizes(kernel: Kernel) -> tuple[Mapping[str, int], ...]:
    """Sizes to run: those with the least work, the most blocks and, last, the most iterations, among small ones."""
    known = list(islice(sizes_in_order(kernel), _OF_THE_FIRST))
    loops = [trips(stmt) for stmt in walk(kernel.body) if isinstance(stmt, For)]
    places = range(len(known))
    blocks = max(places, key=lambda n: (_total(kernel.grid, kernel, known[n]), -n), default=0)
    iterations = max(places, key=lambda n: (_total(loops, kernel, known[n]), -n), default=0)
    return tuple(known[place] for place in dict.fromkeys((0, blocks, iterations)) if known)


def _total(counts: Sequence[Index], kernel: Kernel, size: Mapping[str, int]) -> int:
    """The sum, at these sizes, of the counts that depend on sizes alone."""
    env = {symbol: size[symbol.name] for symbol in kernel.sizes}
    return sum(int(cast(int, evaluate(count, env))) for count in counts if symbols(count) <= env.keys())


def _unbroken(kernel: Kernel, pool: Sequence[Candidate], sizes: Sequence[Mapping[str, int]]) -> list[Candidate]:
    """The candidates that some run reaches and no run violates."""
    prepared = Prepared(_with(kernel, pool))
    schedule = directed(prepared.kernel)[0]
    alive, reached = list(pool), set[int]()
    for size in sizes:
        outcome = run_prepared(prepared, size, None, schedule, tags=True, values=False, limit=_EVERY)
        reached |= {_number(stmt) for stmt, times in outcome.coverage.items() if times}
        false = {_number(violation.stmt) for violation in outcome.violations}
        alive = [each for each in alive if each.number not in false]
    return [each for each in alive if each.before is None or each.number in reached]


_EVERY = 1 << 20


def _number(stmt: Stmt) -> int:
    """The number of the candidate that a statement is; -1 for a statement of the kernel itself."""
    frame = stmt.span.frame
    return frame.line if frame is not None and frame.file == FILE else -1


def _excluded(
    kernel: Kernel, proved: Sequence[Candidate], sizes: Sequence[Mapping[str, int]]
) -> tuple[Mapping[int, frozenset[int]], int]:
    """For each candidate the numbers of the mutants that violate it, and how many mutants were tried."""
    found: dict[int, set[int]] = {}
    tried = 0
    wrong = list(mutants(_with(kernel, proved)))
    for number, other in enumerate(wrong[:: max(1, -(-len(wrong) // _MISTAKES))]):
        try:
            prepared = Prepared(other)
            schedule = directed(other)[0]
            outcome = run_prepared(prepared, sizes[-1], None, schedule, tags=True, values=False, limit=_EVERY)
        except (ArgusError, ZeroDivisionError, IndexError):
            continue  # a mutant that does not run says nothing about the claims
        tried += 1
        for violation in outcome.violations:
            found.setdefault(_number(violation.stmt), set()).add(number)
    return {number: frozenset(breaks) for number, breaks in found.items()}, tried


# -- proofs ------------------------------------------------------------------------------------------------------


@frozen
class _Standing:
    holds: bool
    compared: int = 0
    reason: str = ""


_NOTHING = _Standing(holds=False, reason="the verifier cannot model the kernel")


def _standings(kernel: Kernel, session: Session) -> Mapping[int, _Standing]:
    """The result of each candidate's obligations; obligations about outputs are attached to the stores."""
    analysis, everything = check_obligations(kernel, session)
    found: dict[int, _Standing] = {}
    if analysis.unmodelled:
        return {}
    for each in (stmt for stmt in walk(kernel.body) if _number(stmt) >= 0):
        mine = [j for j in everything if _number(j.obligation.stmt) == _number(each)]
        if isinstance(each, Tag):
            found[_number(each)] = _Standing(holds=True)
        else:
            found[_number(each)] = _standing(mine or [j for j in everything if j.obligation.invariant == "I4"])
    return found


def _standing(mine: Sequence[CheckedObligation]) -> _Standing:
    compared = sum(j.obligation.compared for j in mine)
    left = [j for j in mine if j.standing != "proved"]
    if left or not compared:
        return _Standing(holds=False, reason=left[0].reason if left else "it compares nothing")
    return _Standing(holds=True, compared=compared)


def _verdict_reason(verdict: Verdict) -> str:
    match verdict:
        case Proved():
            return ""
        case Refuted(counterexample=found):
            return f"{found.code}: {found.message}"
        case other:
            return getattr(other, "reason", "the assumptions contradict each other")


# -- ranks -------------------------------------------------------------------------------------------------------


def _suggestion(
    each: Candidate, standings: Mapping[int, _Standing], broken: Mapping[int, frozenset[int]]
) -> Suggestion:
    standing = standings.get(each.number, _NOTHING)
    at = Span() if each.before is None else each.before.span
    start = "at the start of the kernel" if isinstance(each.stmt, Tag) else _AT_THE_END
    return Suggestion(
        each.code,
        each.kind,
        each.about,
        start if each.before is None else f"before {at}",
        at,
        len(broken.get(each.number, ())),
        standing.compared,
        standing.reason,
        claim_text(each.stmt.claim) if isinstance(each.stmt, Assert) else "",
    )


def _rank(candidate: Candidate, made: Suggestion) -> tuple[int, int, int, int]:
    """Tags first, since the others need them; then by mutants excluded, then by elements compared."""
    return (0 if candidate.kind == "tag" else 1, -made.excludes, -made.compared, candidate.number)


def _not_implied(ranked: Sequence[Candidate], broken: Mapping[int, frozenset[int]]) -> list[Candidate]:
    kept = [each for each in ranked if each.kind in _ALWAYS]
    covered = {number for each in kept for number in broken.get(each.number, frozenset())}
    for each in ranked:
        breaks = broken.get(each.number, frozenset())
        if each not in kept and breaks - covered:
            kept.append(each)
            covered |= breaks
    return kept
