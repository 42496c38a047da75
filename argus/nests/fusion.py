"""Fusion: nests computed within those that read them, wherever one template then computes the whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from attrs import evolve

from argus.core.walk import symbols
from argus.nests.nest import Apply, Expr, Nest, Read, Reduce
from argus.nests.rewrite import expressions, placed, reads, reductions, with_reads


def fused(
    nests: Sequence[Nest],
    kept: Collection[str],
    fits: Callable[[Nest, bool], bool],
    apart: Collection[str] = (),
    costs: Callable[[Nest], bool] = lambda _: False,
) -> list[Nest]:
    """The nests, in order, with each within its readers where all of them then still fit a template.

    kept: outputs that are needed in memory. apart: outputs that stay nests of their own. fits: whether a template
    computes a nest, and a reduction for several elements of the output at once, if there is such a one. costs: whether
    several readers would read more to compute a nest again than its result, such as a sum of two tensors.
    """
    found = {each.output: each for each in live(nests, kept)}
    read = {name: _tensors(each) for name, each in found.items()}
    for name in list(found):
        if name in kept or name in apart:
            continue
        current = found[name]
        readers = [each for each in found.values() if name in read[each.output]]
        if len(readers) > 1 and (_is_costly(current) or costs(current)):
            continue
        merged = {each.output: within(current, each) for each in readers}
        made = {output: each for output, each in merged.items() if each is not None}
        if (
            made
            and len(made) == len(merged)
            and all(fits(each, bool(reductions(current.body))) for each in made.values())
        ):
            found |= made
            read |= {output: _tensors(each) for output, each in made.items()}
            del found[name]
    return list(found.values())


def _tensors(nest: Nest) -> set[str]:
    return {each.tensor for each in reads(nest.body)}


def together(nests: Sequence[Nest | None]) -> list[tuple[Nest, ...]]:
    """The nests, in order, of which those that reduce the same tensor over one domain, one after another, are a group.

    One kernel that computes a group reads the tensor once. None stands for what nests are not moved across.
    """
    found: list[tuple[Nest, ...]] = []
    current: tuple[Nest, ...] = ()
    for nest in nests:
        joins = nest is not None and bool(current) and _reads_as(current, nest)
        if current and not joins:
            found.append(current)
        current = () if nest is None else (*current, nest) if joins else (nest,)
    return [*found, current] if current else found


def _reads_as(group: Sequence[Nest], nest: Nest) -> bool:
    """Whether a nest reduces what each of a group reduces, none of which it needs first."""
    own = _reduced(nest)
    before = {each.output for each in group}
    return (
        all(each.domain == nest.domain and own & _reduced(each) for each in group)
        and not {each.tensor for each in reads(nest.body)} & before
    )


def _reduced(nest: Nest) -> set[str]:
    return {each.tensor for each in reads(*(of.body for of in reductions(nest.body)))}


def live(nests: Sequence[Nest], kept: Collection[str]) -> list[Nest]:
    """The nests that results depend on."""
    wanted, found = set(kept), list[Nest]()
    for nest in reversed(nests):
        if nest.output in wanted:
            found.append(nest)
            wanted |= {each.tensor for each in reads(nest.body)}
    return found[::-1]


def within(producer: Nest, reader: Nest) -> Nest | None:
    """The same as `inlined`, but for a reduction that would be computed once for each step of another one."""
    return None if _computes_again(producer, reader) else inlined(producer, reader)


def inlined(producer: Nest, reader: Nest) -> Nest | None:
    """The reader, which computes what it read of the producer; None where it reads beyond the producer's extents."""
    if any(each.tensor == producer.output and each.outside is not None for each in reads(reader.body)):
        return None
    made: dict[Read, Expr] = {}

    def element(read: Read) -> Expr:
        if read.tensor != producer.output:
            return read
        if read not in made:
            places = {axis.symbol: place for axis, place in zip(producer.domain, read.index, strict=True)}
            made[read] = placed(producer.body, places)
        return made[read]

    return evolve(reader, body=with_reads(reader.body, element))


def _computes_again(producer: Nest, reader: Nest) -> bool:
    """Whether a reduction would be computed once for each step of another one, since it depends on that one's axis."""
    if not reductions(producer.body):
        return False
    for outer in reductions(reader.body):
        own = {axis.symbol for axis in outer.axes}
        for read in reads(outer.body):
            if read.tensor == producer.output and any(symbols(each) & own for each in read.index):
                return True
    return False


def _is_costly(nest: Nest) -> bool:
    """Whether it contracts: a sum of products of elements of two tensors."""
    return any(_contracts(each) for each in expressions(nest.body) if isinstance(each, Reduce))


def _contracts(reduce: Reduce) -> bool:
    body = reduce.body
    return (
        reduce.op == "add"
        and isinstance(body, Apply)
        and body.op == "mul"
        and len({each.tensor for each in reads(body)}) > 1
    )
