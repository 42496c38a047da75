"""The rest of a program, seen from one of its launches."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from argus.core.ir import Buffer
from argus.core.proof.values.content import Names, TensorContent
from argus.core.proof.values.held.between import Left
from argus.core.proof.values.held.terms import reasons
from argus.core.values.expr import Expr


@frozen(eq=False)
class ProgramContext:
    """The rest of a program, seen from one of its launches.

    before: the contents that earlier launches left in its tensors. read_later: its tensors that later launches read.
    values: what each of its tensors holds before the launch, as elements of the program's tensors; None if the kernel
    is launched by itself. tags: those of the program's tensors, by their names, or why they are not known; likewise.
    formulas: whether the program claims formulas. claimed: the launch's tensors of which it claims one. asked: those of
    them that no later launch writes, so that the claim is proved of what this one stores.
    left: what the launch leaves in those that it writes. renamed: the launch's parameters whose name is not that of the
    program's tensor; values from other launches name integers in memory by the program's tensors.
    integers: the tensors of integers that earlier launches read, with the promises about them. decided: those of its
    tensors by whose numbers later launches decide something.
    """

    before: Mapping[Buffer, TensorContent]
    read_later: frozenset[Buffer]
    values: Mapping[Buffer, Expr] | None = None
    tags: Mapping[str, Names | str] | None = None
    formulas: bool = False
    claimed: frozenset[Buffer] = frozenset()
    asked: frozenset[Buffer] = frozenset()
    left: Mapping[Buffer, Left | str] = field(factory=dict[Buffer, "Left | str"])
    renamed: frozenset[str] = frozenset()
    integers: tuple[Buffer, ...] = ()
    decided: frozenset[Buffer] = frozenset()

    @property
    def alone(self) -> bool:
        """Whether the kernel is launched by itself."""
        return not self.before and not self.read_later and self.values is None

    def has_value(self, buffer: Buffer) -> bool:
        """Whether the value of a tensor is known before the launch."""
        return self.values is not None and not reasons(self.values[buffer])

    @property
    def followed(self) -> frozenset[Buffer]:
        """The tensors that the launch writes with known values, of which formulas say what becomes of them; and those
        whose values are proved of this launch, over its blocks too.
        """
        known = {buffer for buffer, left in self.left.items() if isinstance(left, Left)}
        return frozenset((known & (self.read_later | self.claimed)) | self.asked) if self.formulas else frozenset()

    def keeps_value(self, buffer: Buffer) -> bool:
        """Whether later launches or claims use a tensor's value over its coordinates: not if only this launch's do."""
        return buffer in self.read_later or buffer not in self.asked


NO_PROGRAM = ProgramContext({}, frozenset())
