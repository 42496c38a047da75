"""The flow of a kernel whose contents are read off expressions, and what that asks of its statements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product

from attrs import define, field

from argus.core import algebra
from argus.core.dtype import f32
from argus.core.ir import Assert, Buffer, Copy, Map, Op, Stmt, View, WrittenOnce
from argus.core.ir.element_walk import gets, nodes
from argus.core.layout import TV
from argus.core.proof.dataflow.access import Access, sequential_tv
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import equal_indices
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.values.alike_terms import is_relative
from argus.core.proof.values.content import Content, Data, Names, Piece, Top, uniform
from argus.core.proof.values.contents import Contents
from argus.core.proof.values.held.cells import Cells
from argus.core.proof.values.held.roundings import in_words, origins, roundings
from argus.core.values.expr import Expr


@define(eq=False)
class ValueFlow(Flow):
    """A flow whose contents are the tags and sets of the expressions that cells hold.

    before, tags: what tensors hold before the kernel, as elements of a program's tensors, and the tags of those; by
    default, elements of their own.
    """

    before: Mapping[Buffer, Expr] = field(factory=dict[Buffer, Expr])
    tags: Mapping[str, Names | str] | None = None
    contents: Contents = field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        tags = {each.name: self.names(each) for each in self.timeline.kernel.parameters}
        self.contents = Contents(self, tags if self.tags is None else self.tags, self.before)

    def said_obligations(self, others: Collection[Buffer] = ()) -> Iterator[Obligation]:
        """I23 and I4: tags say what all outputs are, without others of which that is known.

        To be asked first: closed forms of loops are found best from what is left after them. Of an output without a
        claim nothing is said.
        """
        claims = [step.stmt.claim for step in self.timeline.steps if isinstance(step.stmt, Assert)]
        claimed = {each.view.buffer for each in claims if isinstance(each, WrittenOnce)}
        for step in self.timeline.steps:
            if isinstance(step.stmt, Copy) and step.stmt.target.buffer.space == "global":
                access, name = self.accesses.of(step)[0], step.stmt.target.buffer.name
                reason, held = self.contents.not_said(access), self.contents.value(access)
                if step.stmt.target.buffer in others or step.stmt.target.buffer not in claimed:
                    continue
                relative = not isinstance(held, str) and is_relative(held)
                what = f"the exponentials in `{name}` have one reference" if relative else f"tags say what `{name}` is"
                goal = algebra.FALSE if reason else algebra.TRUE
                yield Obligation("I23" if relative else "I4", what, step.stmt, goal, step.context, unknown=reason)

    def read(self, access: Access) -> Content:
        """The content of a read."""
        cases = self.contents.of(access)
        return tuple(piece for guard, value in cases for piece in uniform(access.shape, value, guard))

    def written(self, step: Step) -> Content:
        """The content that a copy writes, by (thread, value) of the step."""
        if isinstance(step.stmt, Copy):
            return self.read(self.accesses.of(step)[0])
        return uniform(self.accesses.of(step)[-1].shape, Top("what this writes is not read off here"), algebra.TRUE)

    def rounded_before(self, store: Access) -> str:
        """What is rounded on the way to a stored value, before what computes it last, to types narrower than f32."""
        stmt, cells = store.step.stmt, self.contents.cells
        assert isinstance(stmt, Copy)
        cells.written(store.step)
        last = set(_computed_last(cells, store.step))
        found = (each for each in roundings(cells, [store.step]) if each.stmt is not stmt and each.stmt not in last)
        return in_words(each for each in found if each.dtype.bits < f32.bits)

    def tile(self, step: Step, view: View, by: TV | None = None) -> Content:
        """The content of a tile at an assertion. by: layout of the elements, for a part of a register tile."""
        layout = view.buffer.layout
        if isinstance(layout, TV):
            return self.read(self.accesses.register_read(step, view, by or layout))
        kernel = self.timeline.kernel
        if view.buffer.space == "shared" and "lds" in kernel.target.queues and kernel.threads > kernel.target.unit:
            return self.read(self.accesses.register_read(step, view, sequential_tv(view)))
        return uniform((1, 1), Top("an assertion on tags of this memory is not supported yet"), algebra.TRUE)


def _computed_last(cells: Cells, store: Step) -> Iterator[Stmt]:
    """The statements that compute what is stored, through copies."""
    seen, todo = set[Step](), [store]
    while todo:
        step = todo.pop()
        if step not in seen:
            seen.add(step)
            if isinstance(step.stmt, Copy):
                todo.extend(origins(cells, step))
            else:
                yield step.stmt


def value_flow(
    flow: Flow, before: Mapping[Buffer, Expr] | None = None, tags: Mapping[str, Names | str] | None = None
) -> ValueFlow:
    """The same flow, with contents read off expressions."""
    return ValueFlow(
        flow.timeline,
        flow.prover,
        flow.facts,
        flow.accesses,
        launch_records=flow.launch_records,
        path_accesses=flow.path_accesses,
        replaced=flow.replaced,
        decided=flow.decided,
        before=before or {},
        tags=tags,
    )


def factor_obligations(flow: ValueFlow) -> Iterator[Obligation]:
    """The tags that both factors of an element carry are equal: I35 of a sum and its scale, else I2."""
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Map):
            for one, two in _multiplied(flow, step, step.stmt):
                for a, b in product(flow.read(one), flow.read(two)):
                    yield from _of_factors(flow, step, step.stmt, (one, a), (two, b))


def _multiplied(flow: ValueFlow, step: Step, stmt: Map) -> Iterator[tuple[Access, Access]]:
    """The reads that meet in a product or a quotient."""
    made = [node for node in nodes(stmt.elem) if isinstance(node, Op) and node.name in ("mul", "div", "fma")]
    reads = dict(zip(gets(stmt.elem), flow.accesses.of(step)[:-1], strict=True))
    yield from ((reads[one], reads[two]) for op in made for one in gets(op.args[0]) for two in gets(op.args[1]))


def _of_factors(
    flow: ValueFlow, step: Step, stmt: Map, one: tuple[Access, Piece], two: tuple[Access, Piece]
) -> Iterator[Obligation]:
    a, b = one[1].value, two[1].value
    if not isinstance(a, Data) or not isinstance(b, Data):
        return
    context = (*step.context, one[1].guard, two[1].guard)
    scaled = bool(a.sets) != bool(b.sets)
    summed, scale = (two[0], one[0]) if scaled and b.sets else (one[0], two[0])
    of_sum = f"`{summed.view.buffer.name}`"
    if scaled and not a.closed and not b.closed:
        what = f"`{scale.view.buffer.name}` scales the elements of {of_sum} that it belongs to"
        reason = flow.contents.unrelated(summed, scale)
        yield Obligation("I35", what, stmt, algebra.FALSE if reason else algebra.TRUE, context, unknown=reason)
    for name in a.record.keys() & b.record.keys():
        goal = equal_indices(a.record[name], b.record[name])
        agree = f"elements multiplied in `{stmt.target.buffer.name}` agree in `{name}`"
        belong = f"`{scale.view.buffer.name}` has the `{name}` of the elements of {of_sum} that it scales"
        yield Obligation(
            "I35" if scaled else "I2",
            belong if scaled else agree,
            stmt,
            goal,
            context,
            minimise=minimisation_order(goal),
            compared=a.record[name].table.size,
            help=f"load the scale of the `{name}` that the sum has: compare the tiles' numbers" if scaled else "",
        )
