"""What verification says: one of four verdicts, never a bool, with what it rests on."""

from __future__ import annotations

from typing import Literal, NoReturn

from attrs import field, frozen

from argus.core.diagnostic import Diagnostic
from argus.core.span import NOWHERE, Span


@frozen
class _Verdict:
    def __bool__(self) -> NoReturn:
        raise TypeError(f"a verdict is not a bool: match on Proved, Refuted, Unknown, Vacuous (this is {self})")


@frozen
class Proved(_Verdict):
    """Every invariant that applies holds for all sizes that satisfy the assumptions.

    obligations: how many statements were proved. methods: what proved them, with counts.
    coverage: per invariant, how many elements its obligations compared, per block and iteration.
    results: what each output holds, in words.
    """

    obligations: int
    methods: tuple[tuple[str, int], ...]
    assumptions: tuple[str, ...]
    coverage: tuple[tuple[str, int], ...]
    results: tuple[str, ...] = ()

    __bool__ = _Verdict.__bool__


HopKind = Literal["copy", "product", "computation"]


@frozen
class Place:
    """One element of a buffer, by its coordinates; None for padding, which no buffer holds."""

    buffer: str
    space: str
    element: tuple[int, ...] | None

    def __str__(self) -> str:
        return "padding" if self.element is None else f"`{self.buffer}`[{', '.join(map(str, self.element))}]"


@frozen
class Hop:
    """One statement that an element came through, as one thread executed it.

    target: where it left the element; sources: what it took. thread: of the block.
    """

    kind: HopKind
    span: Span
    block: tuple[int, ...]
    thread: int
    iteration: tuple[tuple[str, int], ...]
    target: Place
    sources: tuple[Place, ...]


@frozen
class Counterexample:
    """A concrete failure. replayed: by the interpreter under `schedule`, or recomputed for a static fault.

    thread, element and iteration are the first in the order of blocks, program and threads.
    place, at: the statement that fails; other_at: the one that it conflicts with. tags: of the elements concerned,
    by what they are (`expected`, `found`, `tags of ...`). elements: those at fault, the first as `element` or beside
    it; alike: more that fail as it does. chain: the statements that brought `elements` there from global memory,
    earlier ones first.
    smallest: with no single size one admissible step smaller does the statement still fail.
    """

    code: str
    message: str
    replayed: Literal["interpreter", "recomputed"]
    sizes: tuple[tuple[str, int], ...] = ()
    block: tuple[int, ...] = ()
    thread: int | None = None
    other_thread: int | None = None
    buffer: str = ""
    element: tuple[int, ...] | None = None
    iteration: tuple[tuple[str, int], ...] = ()
    place: str = ""
    schedule: str = ""
    at: Span = NOWHERE
    other_at: Span = NOWHERE
    other_iteration: tuple[tuple[str, int], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    elements: tuple[Place, ...] = ()
    alike: tuple[Place, ...] = ()
    chain: tuple[Hop, ...] = ()
    repair: str = ""
    smallest: bool = False


@frozen
class Refuted(_Verdict):
    counterexample: Counterexample

    __bool__ = _Verdict.__bool__


@frozen
class Unknown(_Verdict):
    """Neither proved nor refuted: what is missing, and what to try."""

    reason: str
    attempt: str

    __bool__ = _Verdict.__bool__


@frozen
class Vacuous(_Verdict):
    """The assumptions contradict each other: anything would follow."""

    assumptions: tuple[str, ...]

    __bool__ = _Verdict.__bool__


Verdict = Proved | Refuted | Unknown | Vacuous
Standing = Literal["proved", "refuted", "unknown", "not applicable", "not built yet"]


@frozen
class Finding:
    """How one invariant stands for a kernel.

    checked: its check ran. obligations, compared: statements and elements it consisted of. reason: why it does
    not apply, or is not known.
    """

    invariant: str
    title: str
    standing: Standing
    reason: str = ""
    obligations: int = 0
    compared: int = 0

    @property
    def checked(self) -> bool:
        return self.standing in ("proved", "refuted", "unknown")


@frozen
class Cost:
    """seconds: wall clock of the verification. asked: questions; smt: those that reached an SMT solver."""

    seconds: float
    asked: int
    by_normal_form: int
    remembered: int
    smt: int


@frozen
class Report:
    """The verdict on one kernel, invariant by invariant.

    diagnostics: the primary one first; further ones are other invariants that fail. uncovered: outputs that
    no non-trivial assertion reaches.
    """

    kernel: str
    target: str
    solver: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    diagnostics: tuple[Diagnostic, ...]
    cost: Cost
    uncovered: tuple[str, ...] = field(default=())

    @property
    def exit_code(self) -> int:
        """1 refuted; 2 unknown, vacuous, or an output without an assertion; 0 proved."""
        match self.verdict:
            case Refuted():
                return 1
            case Proved() if not self.uncovered:
                return 0
            case _:
                return 2

    def __bool__(self) -> NoReturn:
        raise TypeError("a report is not a bool: look at `.verdict`")


@frozen
class Crossing:
    """A tensor between launches. writers, readers: kernels, in the order of launches. holds: what, in words."""

    tensor: str
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    holds: str


@frozen
class ProgramReport:
    """The verdict on a program: that of the launch that fares worst, in order refuted, open, proved.

    launches: a report each, in order, of what the kernel does where it is launched.
    """

    program: str
    verdict: Verdict
    launches: tuple[Report, ...]
    crossings: tuple[Crossing, ...]

    @property
    def exit_code(self) -> int:
        """1 if any launch is refuted, else 2 if any is open, else 0."""
        codes = [report.exit_code for report in self.launches]
        return next((code for code in (1, 2) if code in codes), 0)

    def __bool__(self) -> NoReturn:
        raise TypeError("a report is not a bool: look at `.verdict`")
