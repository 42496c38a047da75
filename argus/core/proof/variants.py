"""Variants of a kernel: with further assumptions, other edges of copies or other claims, as data and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from attrs import evolve, frozen

from argus.core.index import Cond, Index
from argus.core.index_text import show
from argus.core.ir import (
    Assert,
    Assume,
    Claim,
    Copy,
    Covers,
    Distinct,
    Equal,
    Equals,
    Kernel,
    Order,
    Products,
    Relation,
    Stmt,
    WrittenOnce,
    walk,
)
from argus.core.ir.pretty import claim_text
from argus.core.ir.surgery import with_stmts
from argus.core.span import Span
from argus.core.verdict import VariantChange


@frozen(eq=False)
class Assuming:
    """The kernel with further assumptions on its sizes."""

    conds: tuple[Cond, ...]


@frozen(eq=False)
class Edging:
    """Copies with another edge: the number that they read beyond their tensor, or None: they stay in bounds."""

    copies: tuple[Copy, ...]
    edge: float | None


@frozen(eq=False)
class Claiming:
    """The kernel without the claims `old`, and with `new` at its end."""

    old: tuple[Assert, ...]
    new: tuple[Claim, ...]


Change = Assuming | Edging | Claiming


def varied(kernel: Kernel, changes: Sequence[Change]) -> Kernel:
    """The kernel after the changes; all other statements stay identical, with their source lines."""
    for change in changes:
        kernel = _changed(kernel, change)
    return kernel


def _changed(kernel: Kernel, change: Change) -> Kernel:
    match change:
        case Assuming(conds=conds):
            at = _line_of_assumptions(kernel)
            return evolve(kernel, prologue=(*(Assume(cond, span=at) for cond in conds), *kernel.prologue))
        case Edging(copies=copies, edge=edge):
            for copy in copies:
                kernel = with_stmts(kernel, copy, [evolve(copy, edge=edge)])
            return kernel
        case Claiming(old=old, new=new):
            at = _line_of_claims(kernel, old)
            for stmt in old:
                kernel = with_stmts(kernel, stmt, [])
            return evolve(kernel, epilogue=(*kernel.epilogue, *(Assert(claim, span=at) for claim in new)))
        case _:
            assert_never(change)


def described(kernel: Kernel, change: Change) -> VariantChange:
    """The change as a clause, such as "add `assume(K % 8 == 0)`", and the line of the kernel that it concerns."""
    match change:
        case Assuming(conds=conds):
            text = f"add `assume({', '.join(map(show, conds))})`"
            return VariantChange("assumption", text, _line_of_assumptions(kernel))
        case Edging(copies=copies, edge=edge):
            text = "copy without `edge`" if edge is None else f"copy with `edge={edge:g}`"
            places = len({copy.span for copy in copies})
            return VariantChange("edge", text if places == 1 else f"{text} in {places} places", copies[0].span)
        case Claiming(old=old, new=new):
            at = _line_of_claims(kernel, old)
            added = ", ".join(f"`{claim_code(claim)}`" for claim in new)
            gone = ", ".join(dict.fromkeys(f"`{_short(stmt.claim)}`" for stmt in old))
            if not new:
                return VariantChange("claim", f"leave out {gone}", at)
            return VariantChange("claim", f"claim {added} in place of {gone}" if old else f"add {added}", at)
        case _:
            assert_never(change)


def _line_of_assumptions(kernel: Kernel) -> Span:
    """The first assumption, or where there is none the kernel."""
    return next((stmt.span for stmt in walk(kernel.body) if isinstance(stmt, Assume)), kernel.span)


def _line_of_claims(kernel: Kernel, old: Sequence[Stmt]) -> Span:
    """The last claim that goes, or else the kernel's last one, or the kernel."""
    kept = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Assert)]
    return [kernel.span, *(stmt.span for stmt in (old or kept))][-1]


# -- claims as a user writes them --------------------------------------------------------------------------------


def claim_code(claim: Claim) -> str:
    """A claim about an output as the line that states it; other claims as `claim_text` prints them."""
    match claim:
        case Products(view=view, products=products, over=over):
            pairs = ", ".join(f"({_tuple(a)}, {_tuple(b)})" for a, b in products)
            names = ", ".join(symbol.name for symbol, _ in over)
            one = "," * (len(over) == 1)
            extents = ", ".join(show(extent) for _, extent in over)
            every = f" for ({names}{one}) in every({extents})" if over else ""
            return f"assert_products({view.buffer.name}, {_function(len(view.shape))}: [{pairs}{every}])"
        case WrittenOnce(view=view, record=record):
            named = ", ".join(f"{name}={show(at)}" for name, at in record)
            return f"assert_written_once({view.buffer.name}, {_function(len(view.shape))}: dict({named}))"
        case _:
            return claim_text(claim)


def _function(rank: int) -> str:
    return f"lambda {', '.join(f'i{axis}' for axis in range(rank))}"


def _tuple(parts: Sequence[Index]) -> str:
    return f"({', '.join(map(show, parts))}{',' * (len(parts) == 1)})"


def _short(claim: Claim) -> str:
    """A claim that is named, not written: by its function and what it is about."""
    match claim:
        case Equals(view=view):
            return f"assert_equals({view.buffer.name}, ...)"
        case Products(view=view):
            return f"assert_products({view.buffer.name}, ...)"
        case WrittenOnce(view=view):
            return f"assert_written_once({view.buffer.name}, ...)"
        case Covers(of=of) | Order(of=of) | Equal(left=of):
            name = {Covers: "assert_covers", Order: "assert_order", Equal: "assert_equal"}[type(claim)]
            return f"{name}({of.view.buffer.name}.tag.{of.name}, ...)"
        case Distinct():
            return "assert_distinct(...)"
        case Relation():
            return "assert_relation(...)"
        case _:
            assert_never(claim)
