"""What crosses from one launch to the next: the content of a tensor as a function of its coordinates.

What a kernel proves at its stores is said of blocks and threads. The tile map being one to one, the coordinates of an
element give back the block that stored it; in these terms the next launch reads it, whatever its own tiles are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from argus.core import algebra
from argus.core.index import Coord, Index, Symbol
from argus.core.ir import Assert, Buffer, Copy, Tag, WrittenOnce
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import FragmentIndex, Separable, equal_indices
from argus.core.proof.dataflow.timeline import is_whole
from argus.core.proof.outputs.covers_claims import uniform_bounds
from argus.core.proof.outputs.tile_index import coordinate_terms
from argus.core.proof.outputs.writes import stores_of
from argus.core.proof.values.content import (
    Content,
    Data,
    Inside,
    Number,
    TensorContent,
    TensorData,
    Top,
    Value,
    content_error,
    uniform_content,
)
from argus.core.proof.values.multiset_count import Multiset
from argus.core.proof.values.recognisers.products import COUNTED, Term
from argus.core.proof.values.recognisers.splits import always
from argus.core.walk import IntArray, substitute, symbols, within


def left(flow: Flow, buffer: Buffer) -> TensorContent:
    """What the plain stores of a kernel leave in a tensor, presuming that its obligations about it are proved."""
    found: TensorContent | None = None
    for store in stores_of(flow, buffer):
        one = _left_by(flow, store)
        if isinstance(one, Top):
            return one
        if found is not None and not _equal(found, one):
            return Top(f"`{buffer.name}` is stored by statements that leave different things")
        found = one
    return Top(f"`{buffer.name}` is not written") if found is None else found


def _left_by(flow: Flow, store: Access) -> TensorContent:
    content = flow.written(store.step)
    value = content[0].value
    name = store.view.buffer.name
    if len(content) != 1 or content[0].guard is not algebra.TRUE or not content[0].mask.all():
        return Top(f"what is stored in `{name}` differs from case to case")
    if isinstance(value, Number) and value.value == 0:
        return value
    if not isinstance(value, Data):
        return Top(content_error(value))
    if store.places is None:
        return Top(f"where elements of `{name}` are stored mixes symbols and coordinates")
    return crossed(flow, store, store.places, value)


def crossed(flow: Flow, store: Access, places: tuple[Separable, ...], value: Data) -> TensorData | Top:
    """One store's content over coordinates. Every name of the record must have a form in them."""
    claimed = claimed_record(flow, store.view.buffer)
    record: dict[str, Index] = {}
    for name, component in value.record.items():
        known = claimed.get(name, _over_places(component, places))
        if known is None:
            return Top(f"`{name}` of what is stored in `{store.view.buffer.name}` is no coordinate of it, nor claimed")
        record[name] = known
    sets: dict[str, Index] = {}
    if not value.plain:
        return Top(f"what is stored in `{store.view.buffer.name}` is {value.form}, which has no form between launches")
    for name, tally in (value.sets or {}).items():
        count = tally.count
        if count is None or not tally.is_uniform:
            return Top(f"elements of one tile of `{store.view.buffer.name}` are sums over different sets of `{name}`")
        spoken = _over_coordinates(_asserted(flow, store, name, count, known=bool(claimed)), places)
        if isinstance(spoken, str):
            return Top(spoken)
        sets[name] = spoken
    inside = () if claimed_whole(flow, store.view.buffer) else _bounds(value, places, store.view.buffer)
    if isinstance(inside, str):
        return Top(inside)
    return TensorData(record, sets, value.form, value.computed, inside, value.fill)


def _bounds(value: Data, places: tuple[Separable, ...], buffer: Buffer) -> tuple[tuple[Index, Index], ...] | str:
    """Where the tensor holds elements and not padding, over coordinates; those that hold of all its elements apart."""
    found: list[tuple[Index, Index]] = []
    for bound in value.inside:
        told = () if bound.open else enumerate(places)
        axes = [axis for axis, place in told if equal_indices(bound.coordinate, place) is algebra.TRUE]
        if always(bound) or any(bound.extent is buffer.shape[axis] for axis in axes):
            continue
        spoken = None if bound.open else _over_places(bound.coordinate, places)
        if spoken is None:
            return f"`{buffer.name}` holds padding where no coordinate of it tells"
        found.append((spoken, bound.extent))
    return tuple(found)


def claimed_whole(flow: Flow, buffer: Buffer) -> bool:
    """Whether the kernel claims that all of a tensor is written, with no padding in it."""
    return any(is_whole(claim.view) for claim in _claims(flow, buffer))


def claimed_record(flow: Flow, buffer: Buffer) -> Mapping[str, Index]:
    """The record that the kernel claims of a tensor, which I4 proves; empty if it claims none."""
    return {name: expression for claim in _claims(flow, buffer)[:1] for name, expression in claim.record}


def _claims(flow: Flow, buffer: Buffer) -> list[WrittenOnce]:
    claims = [step.stmt.claim for step in flow.timeline.steps if isinstance(step.stmt, Assert)]
    return [
        claim
        for claim in claims
        if isinstance(claim, WrittenOnce) and claim.view.buffer is buffer and claim.where is algebra.TRUE
    ]


def _over_places(component: FragmentIndex, places: Sequence[Separable]) -> Index | None:
    """A component in terms of the coordinates where it is stored; None where it has no such form.

    It is a coordinate, or differs from one by what blocks alone decide: by `e`, where the coordinate is `b` + table and
    the component `b + e` + the same table. The coordinates give back the block.
    """
    if not isinstance(component, Separable):
        return None
    for axis, place in enumerate(places):
        apart = component.table - place.table
        if _fixed(apart):
            blocks = algebra.add(algebra.sub(component.base, place.base), int(apart.flat[0]))
            spoken = _over_coordinates(blocks, places)
            if not isinstance(spoken, str):
                return algebra.add(algebra.coord(axis), spoken)
    return None


def _fixed(apart: IntArray) -> bool:
    """Whether a component is as far from a coordinate for all elements."""
    return bool((apart == apart.flat[0]).all())


def _asserted(flow: Flow, store: Access, name: str, count: Index, *, known: bool) -> Index:
    """The count as the kernel asserts it, if it asserts just one set: a form that launches after it can add up.

    known: that the asserted set is what is stored, as I3 proves of an output that is claimed; else that is asked here.
    """
    asserted = set(uniform_bounds(flow, name))
    if len(asserted) != 1:
        return count
    stated = Term(1, *asserted.pop(), algebra.TRUE).count
    return stated if known or _is_stored(flow, store, count, stated) else count


def _is_stored(flow: Flow, store: Access, count: Index, stated: Index) -> bool:
    """Whether what is stored counts each number as often as is stated."""
    return flow.holds(store.step.context, algebra.eq(count, stated))


def _over_coordinates(count: Index, places: Sequence[Separable]) -> Index | str:
    """An expression over blocks as one over the coordinates of an element that the block stores."""
    chosen: dict[Symbol, Index] = {}
    for symbol in symbols(count):
        if symbol.kind == "size" or symbol == COUNTED:
            continue
        found = _block_of(symbol, places)
        if found is None:
            return f"`{symbol.name}` decides what is summed, and no coordinate of the store gives it back"
        chosen[symbol] = found
    return substitute(count, chosen)


def _block_of(symbol: Symbol, places: Sequence[Separable]) -> Index | None:
    """The symbol's value at a coordinate that it moves by whole tiles."""
    for axis, place in enumerate(places):
        own = coordinate_terms(place.base, {symbol: algebra.const(0)})
        if own is not None and len(own) == 1 and place.high - place.low < own[0][1]:
            return algebra.floordiv(algebra.sub(algebra.coord(axis), place.low), own[0][1])
    return None


def _equal(one: TensorContent, two: TensorContent) -> bool:
    if isinstance(one, Number) or isinstance(two, Number):
        return isinstance(one, Number) and isinstance(two, Number) and one.value == two.value
    if isinstance(one, Top) or isinstance(two, Top):
        return False
    pairs = ((one.record, two.record), (one.sets, two.sets))
    told = (one.inside, one.fill, one.form, one.computed) == (two.inside, two.fill, two.form, two.computed)
    return told and all(a.keys() == b.keys() and all(a[name] is b[name] for name in a) for a, b in pairs)


# -- as the next launch reads it -----------------------------------------------------------------------------


def reading(flow: Flow, brought: Mapping[Buffer, TensorContent]) -> dict[Buffer, Callable[[Access], Content]]:
    """How each tensor that launches before have written is read."""

    def reader(known: TensorContent) -> Callable[[Access], Content]:
        return lambda access: uniform_content(access.shape, _brought(flow, access, known), algebra.TRUE)

    return {buffer: reader(known) for buffer, known in brought.items()}


def _brought(flow: Flow, access: Access, known: TensorContent) -> Value:
    stmt, name = access.step.stmt, access.view.buffer.name
    edge = stmt.edge if isinstance(stmt, Copy) else None
    if access.places is None:
        return Top("its address mixes symbols and coordinates")
    if edge is not None and not access.view.buffer.dtype.holds(edge):
        return Top(f"padding of {edge:g}, which is no {access.view.buffer.dtype}")
    match known:
        case Top():
            return known
        case Number(value=value):
            return known if edge in (None, value) else Top(f"{value:g} in `{name}` beside padding with another number")
        case TensorData():
            if _tagged_anew(flow, access.view.buffer, known):
                return Top(f"`{name}` is given tags that are not those with which the launch before left it")
            return _record(flow, access, access.places, known, edge)


def _record(flow: Flow, access: Access, places: tuple[Separable, ...], known: TensorData, edge: float | None) -> Value:
    name = access.view.buffer.name
    record: dict[str, FragmentIndex] = {}
    for each, expression in known.record.items():
        component = flow.component(expression, places, access.shape)
        if component is None:
            return Top(f"tag `{each}` mixes symbols and coordinates")
        record[each] = component
    sets: dict[str, Multiset] = {}
    for each, count in known.sets.items():
        axes = {node.axis for node in within(count) if isinstance(node, Coord)}
        if not all(places[axis].uniform for axis in axes):
            return Top(f"elements of one tile of `{name}` hold sums over different sets of `{each}`")
        sets[each] = Multiset((), substitute(count, {}, [place.least for place in places]))
    shape = access.view.buffer.shape
    inside = [] if edge is None else [Inside(p, e) for p, e in zip(places, shape, strict=True)]
    for expression, extent in known.inside:
        coordinate = flow.component(expression, places, access.shape)
        if not isinstance(coordinate, Separable):
            return Top(f"where `{name}` holds padding mixes symbols and coordinates")
        inside.append(Inside(coordinate, extent))
    fills = {edge or 0.0} if edge is not None else set[float]()
    fills |= {known.fill} if known.inside else set()
    fill = fills.pop() if len(fills) == 1 else float("nan")
    fill, root = fill if inside else 0.0, f"{known.form} in {name}"
    return Data(record, tuple(inside), fill, sets or None, known.form, known.computed, root=root)


def _tagged_anew(flow: Flow, buffer: Buffer, known: TensorData) -> bool:
    """Whether the kernel tags the tensor otherwise than it comes."""
    given = {
        name: expression
        for step in flow.timeline.steps
        if isinstance(step.stmt, Tag) and step.stmt.view.buffer is buffer
        for name, expression in step.stmt.names
    }
    return any(known.record.get(name) is not expression for name, expression in given.items())
