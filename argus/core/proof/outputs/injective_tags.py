"""Whether the tags of a stored value determine the elements from which it was computed.

A claim compares tags. Two elements of an input with equal tags are the same to it, so a store of either one satisfies
the claim. A tensor is determined if its tags, restricted to known names, are one-to-one on it. Known names are those of
the claim and those summed over; the tags of a tensor that is determined are known too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Coord, Index, Sym, Symbol
from argus.core.index_text import show
from argus.core.ir import Buffer, Kernel, Tag, View, walk, whole
from argus.core.proof.outputs.data_sources import data_sources
from argus.core.proof.prover import Prover
from argus.core.proof.values.content import Names
from argus.core.query import Sat, Unsat
from argus.core.walk import substitute


@frozen(eq=False)
class _Tagged:
    """A view of an input and the tags of its elements, as expressions over its coordinates."""

    view: View
    record: Names


def undetermined_inputs(
    kernel: Kernel,
    prover: Prover,
    assumptions: Sequence[Cond],
    stored: Buffer,
    names: AbstractSet[str],
    earlier: Mapping[Buffer, Names],
) -> str:
    """Which inputs a value's tags do not determine; empty if they determine all from which data can reach it.

    stored: the tensor that holds the value. names: those that the claim fixes, and those summed over. earlier: the tags
    of tensors that an earlier launch wrote.
    """
    sources = data_sources(kernel, stored)
    read = tuple(buffer for buffer in kernel.parameters if buffer in sources)
    pieces = {buffer: tuple(_pieces(kernel, buffer, earlier)) for buffer in read}
    known, left = set(names), dict.fromkeys(read)
    examples: dict[Buffer, str] = {}
    settled = False
    while not settled:
        settled = True
        for buffer in tuple(left):
            examples[buffer] = _example(prover, assumptions, buffer, pieces[buffer], known)
            if not examples[buffer]:
                del left[buffer]
                fresh = {name for piece in pieces[buffer] for name, _ in piece.record} - known
                known |= fresh
                settled = settled and not fresh
    return "; ".join(examples[buffer] for buffer in left)


def _pieces(kernel: Kernel, buffer: Buffer, earlier: Mapping[Buffer, Names]) -> Iterator[_Tagged]:
    """The tagged views of a tensor; the whole tensor, without tags, if there are none."""
    if buffer in earlier:
        yield _Tagged(whole(buffer), earlier[buffer])
        return
    tagged = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Tag) and stmt.view.buffer is buffer]
    yield from (_Tagged(stmt.view, stmt.names) for stmt in tagged)
    if not tagged:
        yield _Tagged(whole(buffer), ())


def _example(
    prover: Prover,
    assumptions: Sequence[Cond],
    buffer: Buffer,
    pieces: Sequence[_Tagged],
    known: AbstractSet[str],
) -> str:
    """Two elements with equal tags among the known names, as text; empty if the solver proves that there are none."""
    for number, one in enumerate(pieces):
        for other in pieces[number:]:
            text = _pair(prover, assumptions, buffer, one, other, known)
            if text:
                return text
    return ""


def _pair(
    prover: Prover,
    assumptions: Sequence[Cond],
    buffer: Buffer,
    one: _Tagged,
    other: _Tagged,
    known: AbstractSet[str],
) -> str:
    mine, theirs = (_element(piece.view, mark) for piece, mark in ((one, "a"), (other, "b")))
    others = dict(other.record)
    compared = [(name, tag, tag if one is other else others.get(name)) for name, tag in one.record if name in known]
    if one is other and {tag.axis for _, tag, _ in compared if isinstance(tag, Coord)} >= set(_axes(one.view)):
        return ""  # each coordinate is a tag
    pairs = [(tag, also) for _, tag, also in compared if also is not None]
    alike = [algebra.eq(substitute(tag, {}, mine), substitute(also, {}, theirs)) for tag, also in pairs]
    here, there = _place(one.view, mine), _place(other.view, theirs)
    same = algebra.all_of(algebra.eq(a, b) for a, b in zip(here, there, strict=True))
    inside = (*_inside(one.view, mine), *_inside(other.view, theirs))
    answer = prover.prove((*assumptions, *inside, *alike), same)
    if isinstance(answer, Unsat):
        return ""
    shown = ", ".join(f"{name}={show(tag)}" for name, tag, also in compared if also is not None)
    tags = f"equal tags ({shown})" if shown else "no tag among those of the claim"
    text = f"it does not tell apart elements of `{buffer.name}` with {tags}"
    if not isinstance(answer, Sat):
        return f"{text}, as far as the solver can say"
    values = {symbol: answer.model.get(symbol, 0) for symbol in (*_symbols(mine), *_symbols(theirs))}
    pair = [", ".join(str(values[s]) for s in _symbols(each)) for each in (mine, theirs)]
    return f"{text}, such as `{buffer.name}`[{pair[0]}] and [{pair[1]}]"


def _axes(view: View) -> range:
    return range(len(view.shape))


def _element(view: View, mark: str) -> tuple[Index, ...]:
    """The coordinates of an arbitrary element of a view."""
    return tuple(algebra.sym(Symbol(f"{mark}{axis}", "fresh", 0)) for axis in _axes(view))


def _symbols(element: Sequence[Index]) -> tuple[Symbol, ...]:
    return tuple(each.symbol for each in element if isinstance(each, Sym))


def _place(view: View, element: Sequence[Index]) -> tuple[Index, ...]:
    """The coordinates in the tensor of an element of a view."""
    return tuple(substitute(at, {}, element) for at in view.at)


def _inside(view: View, element: Sequence[Index]) -> tuple[Cond, ...]:
    bounds = (algebra.lt(at, extent) for at, extent in zip(element, view.shape, strict=True))
    return (*bounds, substitute(view.where, {}, element))
