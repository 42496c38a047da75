"""Data flow between launches: the content of a tensor as a function of its coordinates.

Facts at the stores of a kernel are in terms of blocks and threads. Since the tile map is one to one, the coordinates of
an element determine the block that stored it; over coordinates, the next launch can read it with any tiling.
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
from argus.core.proof.outputs.stored import stores_of
from argus.core.proof.outputs.tile_index import coordinate_terms
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
    uniform,
)
from argus.core.proof.values.multiset_count import Multiset
from argus.core.proof.values.recognisers.products import COUNTED, Term
from argus.core.proof.values.recognisers.splits import always
from argus.core.walk import IntArray, substitute, symbols, within


def content_after(flow: Flow, buffer: Buffer) -> TensorContent:
    """The content of a tensor after a kernel's plain stores, provided that its obligations about it are proved."""
    found: TensorContent | None = None
    for store in stores_of(flow, buffer):
        one = _content_after_store(flow, store)
        if isinstance(one, Top):
            return one
        if found is not None and not _equal(found, one):
            return Top(f"`{buffer.name}` is stored by statements that leave different contents")
        found = one
    return Top(f"`{buffer.name}` is not written") if found is None else found


def _content_after_store(flow: Flow, store: Access) -> TensorContent:
    content = flow.written(store.step)
    value = content[0].value
    name = store.view.buffer.name
    if len(content) != 1 or content[0].guard is not algebra.TRUE or not content[0].mask.all():
        return Top(f"the value stored in `{name}` differs from case to case")
    if isinstance(value, Number) and value.value == 0:
        return value
    if not isinstance(value, Data):
        return Top(content_error(value))
    if store.places is None:
        return Top(f"the index at which elements of `{name}` are stored combines symbols and coordinates")
    return tensor_data(flow, store, store.places, value)


def tensor_data(flow: Flow, store: Access, places: tuple[Separable, ...], value: Data) -> TensorData | Top:
    """The content of one store over coordinates. Every tag must be an expression over them, or be claimed."""
    claimed = claimed_record(flow, store.view.buffer)
    record: dict[str, Index] = {}
    for name, component in value.record.items():
        known = claimed.get(name, _over_places(component, places))
        if known is None:
            name_of = store.view.buffer.name
            return Top(
                f"tag `{name}` of the values stored in `{name_of}` is neither a function of its index nor claimed"
            )
        record[name] = known
    sets: dict[str, Index] = {}
    if not value.plain:
        return Top(f"`{store.view.buffer.name}` holds {value.form}, which is not tracked between launches")
    for name, tally in (value.sets or {}).items():
        count = tally.count
        if count is None or not tally.is_uniform:
            return Top(f"elements of one tile of `{store.view.buffer.name}` are sums over different sets of `{name}`")
        at_element = _over_coordinates(_asserted_count(flow, store, name, count, known=bool(claimed)), places)
        if isinstance(at_element, str):
            return Top(at_element)
        sets[name] = at_element
    inside = () if is_claimed_whole(flow, store.view.buffer) else _bounds(value, places, store.view.buffer)
    if isinstance(inside, str):
        return Top(inside)
    return TensorData(record, sets, value.form, value.computed, inside, value.fill)


def _bounds(value: Data, places: tuple[Separable, ...], buffer: Buffer) -> tuple[tuple[Index, Index], ...] | str:
    """The bounds outside of which the tensor holds padding, over coordinates, without those that always hold."""
    found: list[tuple[Index, Index]] = []
    for bound in value.inside:
        candidates = () if bound.open else enumerate(places)
        axes = [axis for axis, place in candidates if equal_indices(bound.coordinate, place) is algebra.TRUE]
        if always(bound) or any(bound.extent is buffer.shape[axis] for axis in axes):
            continue
        coordinate = None if bound.open else _over_places(bound.coordinate, places)
        if coordinate is None:
            return f"where `{buffer.name}` holds padding is not a function of its coordinates"
        found.append((coordinate, bound.extent))
    return tuple(found)


def is_claimed_whole(flow: Flow, buffer: Buffer) -> bool:
    """Whether the kernel claims that all of a tensor is written, without padding."""
    return any(is_whole(claim.view) for claim in _claims(flow, buffer))


def claimed_record(flow: Flow, buffer: Buffer) -> Mapping[str, Index]:
    """The tags that the kernel claims for a tensor, which I4 proves; empty if it claims none."""
    return {name: expression for claim in _claims(flow, buffer)[:1] for name, expression in claim.record}


def _claims(flow: Flow, buffer: Buffer) -> list[WrittenOnce]:
    claims = [step.stmt.claim for step in flow.timeline.steps if isinstance(step.stmt, Assert)]
    return [
        claim
        for claim in claims
        if isinstance(claim, WrittenOnce) and claim.view.buffer is buffer and claim.where is algebra.TRUE
    ]


def _over_places(component: FragmentIndex, places: Sequence[Separable]) -> Index | None:
    """A component over the coordinates at which it is stored; None if there is no such form.

    It must equal a coordinate up to an offset `e` that depends on the block alone: the coordinate is `b` + table and
    the component `b + e` + the same table. The coordinates determine the block.
    """
    if not isinstance(component, Separable):
        return None
    for axis, place in enumerate(places):
        difference = component.table - place.table
        if _is_constant(difference):
            blocks = algebra.add(algebra.sub(component.base, place.base), int(difference.flat[0]))
            offset = _over_coordinates(blocks, places)
            if not isinstance(offset, str):
                return algebra.add(algebra.coord(axis), offset)
    return None


def _is_constant(table: IntArray) -> bool:
    return bool((table == table.flat[0]).all())


def _asserted_count(flow: Flow, store: Access, name: str, count: Index, *, known: bool) -> Index:
    """The count as the kernel asserts it, if it asserts exactly one set: a form that later launches can add up.

    known: the asserted set is known to be the stored one, as I3 proves for a claimed output; else it is asked here.
    """
    asserted = set(uniform_bounds(flow, name))
    if len(asserted) != 1:
        return count
    stated = Term(1, *asserted.pop(), algebra.TRUE).count
    return stated if known or _count_is_stored(flow, store, count, stated) else count


def _count_is_stored(flow: Flow, store: Access, count: Index, stated: Index) -> bool:
    """Whether the stored sum counts each number as often as the assertion states."""
    return flow.holds(store.step.context, algebra.eq(count, stated))


def _over_coordinates(count: Index, places: Sequence[Separable]) -> Index | str:
    """An expression over blocks as one over the coordinates of an element that the block stores."""
    chosen: dict[Symbol, Index] = {}
    for symbol in symbols(count):
        if symbol.kind == "size" or symbol == COUNTED:
            continue
        found = _block_of(symbol, places)
        if found is None:
            return f"the summed set depends on `{symbol.name}`, which the coordinates of the store do not determine"
        chosen[symbol] = found
    return substitute(count, chosen)


def _block_of(symbol: Symbol, places: Sequence[Separable]) -> Index | None:
    """The symbol's value as a function of a coordinate that it shifts by whole tiles."""
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
    same = (one.inside, one.fill, one.form, one.computed) == (two.inside, two.fill, two.form, two.computed)
    return same and all(a.keys() == b.keys() and all(a[name] is b[name] for name in a) for a, b in pairs)


# -- reads of the next launch -----------------------------------------------------------------------------


def launch_readers(flow: Flow, before: Mapping[Buffer, TensorContent]) -> dict[Buffer, Callable[[Access], Content]]:
    """For each tensor that earlier launches wrote, the function from a read access to the content read."""

    def reader(known: TensorContent) -> Callable[[Access], Content]:
        return lambda access: uniform(access.shape, _content_read(flow, access, known), algebra.TRUE)

    return {buffer: reader(known) for buffer, known in before.items()}


def _content_read(flow: Flow, access: Access, known: TensorContent) -> Value:
    stmt, name = access.step.stmt, access.view.buffer.name
    edge = stmt.edge if isinstance(stmt, Copy) else None
    if access.places is None:
        return Top("its address combines symbols and coordinates")
    if edge is not None and not access.view.buffer.dtype.holds(edge):
        return Top(f"padding of {edge:g}, which {access.view.buffer.dtype} cannot represent")
    match known:
        case Top():
            return known
        case Number(value=value):
            return (
                known
                if edge in (None, value)
                else Top(f"`{name}` holds {value:g}, but the read pads with another number")
            )
        case TensorData():
            if _is_retagged(flow, access.view.buffer, known):
                return Top(f"the kernel tags `{name}` differently from the launch that wrote it")
            return _record(flow, access, access.places, known, edge)


def _record(flow: Flow, access: Access, places: tuple[Separable, ...], known: TensorData, edge: float | None) -> Value:
    name = access.view.buffer.name
    record: dict[str, FragmentIndex] = {}
    for each, expression in known.record.items():
        component = flow.fragment_index(expression, places, access.shape)
        if component is None:
            return Top(f"tag `{each}` combines symbols and coordinates")
        record[each] = component
    sets: dict[str, Multiset] = {}
    for each, count in known.sets.items():
        axes = {node.axis for node in within(count) if isinstance(node, Coord)}
        if not all(places[axis].uniform for axis in axes):
            return Top(f"elements of one tile of `{name}` are sums over different sets of `{each}`")
        sets[each] = Multiset((), substitute(count, {}, [place.least for place in places]))
    shape = access.view.buffer.shape
    inside = [] if edge is None else [Inside(p, e) for p, e in zip(places, shape, strict=True)]
    for expression, extent in known.inside:
        coordinate = flow.fragment_index(expression, places, access.shape)
        if not isinstance(coordinate, Separable):
            return Top(f"the bound of the padding in `{name}` combines symbols and coordinates")
        inside.append(Inside(coordinate, extent))
    fills = {edge or 0.0} if edge is not None else set[float]()
    fills |= {known.fill} if known.inside else set()
    fill = fills.pop() if len(fills) == 1 else float("nan")
    fill, root = fill if inside else 0.0, f"{known.form} in {name}"
    return Data(record, tuple(inside), fill, sets or None, known.form, known.computed, root=root)


def _is_retagged(flow: Flow, buffer: Buffer, known: TensorData) -> bool:
    """Whether the kernel gives the tensor tags other than those with which it was written."""
    given = {
        name: expression
        for step in flow.timeline.steps
        if isinstance(step.stmt, Tag) and step.stmt.view.buffer is buffer
        for name, expression in step.stmt.names
    }
    return any(known.record.get(name) is not expression for name, expression in given.items())
