"""The flow of a kernel whose contents are read off expressions, and what that asks of its statements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from attrs import define, field

from argus.core import algebra
from argus.core.ir import Buffer, Copy, Map, Mma, View
from argus.core.layout import TV
from argus.core.proof.dataflow.access import Access, sequential_tv
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import equal_indices
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.values.content import Content, Data, Names, Top, Value, uniform
from argus.core.proof.values.contents import Contents
from argus.core.proof.values.recognisers.scales import multiplied
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

    def outputs_said_by_tags(self, others: Collection[Buffer] = ()) -> bool:
        """Whether tags say what all outputs are, without others of which that is known.

        To be asked first: closed forms of loops are found best from what is left after them.
        """
        said = True
        for step in self.timeline.steps:
            if isinstance(step.stmt, Copy) and step.stmt.target.buffer.space == "global":
                found = self.contents.not_said(self.accesses.of(step)[0])
                said &= not found or step.stmt.target.buffer in others
        return said

    def read(self, access: Access) -> Content:
        """The content of a read."""
        cases = self.contents.of(access)
        return tuple(piece for guard, value in cases for piece in uniform(access.shape, value, guard))

    def written(self, step: Step) -> Content:
        """The content that a copy writes, by (thread, value) of the step."""
        if isinstance(step.stmt, Copy):
            return self.read(self.accesses.of(step)[0])
        return uniform(self.accesses.of(step)[-1].shape, Top("what this writes is not read off here"), algebra.TRUE)

    def tile(self, step: Step, view: View, by: TV | None = None) -> Content:
        """The content of a tile at an assertion. by: layout of the elements, for a part of a register tile."""
        layout = view.buffer.layout
        if isinstance(layout, TV):
            return self.read(self.accesses.register_read(step, view, by or layout))
        kernel = self.timeline.kernel
        if view.buffer.space == "shared" and "lds" in kernel.target.queues and kernel.threads > kernel.target.unit:
            return self.read(self.accesses.register_read(step, view, sequential_tv(view)))
        return uniform((1, 1), Top("an assertion on tags of this memory is not supported yet"), algebra.TRUE)


def value_flow(
    flow: Flow, before: Mapping[Buffer, Expr] | None = None, tags: Mapping[str, Names | str] | None = None
) -> ValueFlow:
    """The same flow, with contents read off expressions."""
    targets = {step.stmt.target.buffer for step in flow.timeline.steps if isinstance(step.stmt, Mma)}
    found = ValueFlow(
        flow.timeline,
        flow.prover,
        flow.facts,
        flow.accesses,
        flow.map_rule,
        flow.fold_rule,
        sums=dict.fromkeys(targets, _not_asked),
        path_accesses=flow.path_accesses,
        replaced=flow.replaced,
        before=before or {},
        tags=tags,
    )
    found.launch_records.update(flow.launch_records)
    return found


def _not_asked(_: Step) -> Content:
    return uniform((1, 1), Top("read off expressions"), algebra.TRUE)


def factor_obligations(flow: ValueFlow) -> Iterator[Obligation]:
    """I2 at each product of elements: the tags that both factors carry are equal, element by element."""
    for step in flow.timeline.steps:
        if isinstance(step.stmt, Map):
            for one, two in multiplied(flow, step, step.stmt):
                yield from _of_factors(step, step.stmt, one, two)


def _of_factors(step: Step, stmt: Map, one: Value, two: Value) -> Iterator[Obligation]:
    if not isinstance(one, Data) or not isinstance(two, Data):
        return
    for name in one.record.keys() & two.record.keys():
        goal = equal_indices(one.record[name], two.record[name])
        what = f"elements multiplied in `{stmt.target.buffer.name}` agree in `{name}`"
        yield Obligation(
            "I2",
            what,
            stmt,
            goal,
            step.context,
            minimise=minimisation_order(goal),
            compared=one.record[name].table.size,
        )
