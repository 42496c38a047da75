"""Outputs that the claims of a proved kernel leave open, each with the warning (E404) that says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core.diagnostic import Diagnostic, Label
from argus.core.index import Coord
from argus.core.ir import Assert, Copy, Covers, Equals, Kernel, Products, Stmt, WrittenOnce, walk
from argus.core.proof.obligation import Obligation
from argus.core.span import Span
from argus.core.walk import mentions, topological

NO_OUTPUT = "(no output)"


@frozen
class Uncovered:
    """An output that the claims leave open, and the warning that says why."""

    name: str
    warning: Diagnostic


def uncovered_outputs(kernel: Kernel, proved: Sequence[Obligation]) -> tuple[Uncovered, ...]:
    """The outputs without a claim that tells all elements apart, in the order of their stores."""
    return tuple(_uncovered(kernel, proved))


def _uncovered(kernel: Kernel, proved: Sequence[Obligation]) -> Iterator[Uncovered]:
    stmts = list(walk(kernel.body))
    outputs = {s.target.buffer: None for s in stmts if isinstance(s, Copy) and s.target.buffer.space == "global"}
    asserts = [s for s in stmts if isinstance(s, Assert)]
    compared = any(each.invariant == "I4" and each.compared for each in proved)
    open_claims = {each.open_claim[0]: each.open_claim[1] for each in proved if each.open_claim is not None}
    for buffer in outputs:
        mine = [
            s for s in asserts if isinstance(s.claim, Products | WrittenOnce | Equals) and s.claim.view.buffer is buffer
        ]
        by_formula = any(each.stmt in mine and each.invariant == "I39" and each.compared for each in proved)
        if not mine or not (compared or by_formula):
            yield Uncovered(buffer.name, _no_claim(kernel, buffer.name))
        elif buffer.name in open_claims:
            yield Uncovered(buffer.name, _ambiguous(kernel, buffer.name, mine[0], open_claims[buffer.name]))
        elif all(isinstance(s.claim, WrittenOnce) and _unmentioned_axes(s.claim, stmts) for s in mine):
            yield Uncovered(buffer.name, _lacks_coordinates(kernel, mine[0], stmts))
    if not outputs:
        yield Uncovered(NO_OUTPUT, _no_claim(kernel, NO_OUTPUT))


def _unmentioned_axes(claim: WrittenOnce, stmts: Sequence[Stmt]) -> tuple[int, ...]:
    """The axes whose coordinate the record does not mention: a record without it holds of any order along that axis.

    For prefix sums, one axis may be missing from the record: the upper ends of the sums distinguish elements along it.
    """
    axes = {n.axis for n in topological([e for _, e in claim.record]) if isinstance(n, Coord)}
    stored = {s.source.buffer for s in stmts if isinstance(s, Copy) and s.target.buffer is claim.view.buffer}
    covers = [s.claim for s in stmts if isinstance(s, Assert) and isinstance(s.claim, Covers)]
    ends = any(c.of.view.buffer in stored and mentions(c.high, (Coord,)) for c in covers)
    missing = tuple(axis for axis in range(len(claim.view.shape)) if axis not in axes)
    return () if ends and len(missing) == 1 else missing


def _no_claim(kernel: Kernel, name: str) -> Diagnostic:
    remark = "every claim is proved, but no claim is made about this output"
    advice = f"tag the inputs and end with `assert_written_once({name}, ...)`"
    return _warning(kernel, f"no assertion reaches the output `{name}`", kernel.span, remark, advice)


def _lacks_coordinates(kernel: Kernel, stmt: Assert, stmts: Sequence[Stmt]) -> Diagnostic:
    assert isinstance(stmt.claim, WrittenOnce)
    name, rank = stmt.claim.view.buffer.name, len(stmt.claim.view.shape)
    missing = _unmentioned_axes(stmt.claim, stmts)
    axes = f"coordinate {missing[0]}" if len(missing) == 1 else f"coordinates {', '.join(map(str, missing))}"
    message = f"the claim about the output `{name}` does not mention {axes} of {rank}"
    along = "that axis" if len(missing) == 1 else "them"
    remark = f"proved, but it would hold of elements in any order along {along}"
    advice = "give the record a name for every coordinate, of the tag of the input that it selects"
    return _warning(kernel, message, stmt.span, remark, advice)


def _ambiguous(kernel: Kernel, name: str, stmt: Stmt, which: str) -> Diagnostic:
    message = f"the claim about the output `{name}` does not determine it: {which}"
    advice = "give each element of an input its own tags, such as its coordinates, and name them in the claim"
    return _warning(kernel, message, stmt.span, "proved, but other elements with equal tags would satisfy it", advice)


def _warning(kernel: Kernel, message: str, at: Span, remark: str, advice: str) -> Diagnostic:
    return Diagnostic("E404", "unknown", message, Label(at, remark), help=advice, kernel=kernel.name)
