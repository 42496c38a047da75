"""Results of verification: verdicts (proved, refuted, unknown, vacuous) with their evidence, and a kernel's report."""

from __future__ import annotations

from html import escape
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

    obligations: the number of statements proved. methods: decision methods, with the number of statements each proved.
    coverage: per invariant, the number of elements that its obligations compared, per block and iteration.
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
    """One step of an element's provenance: a statement that produced it, as one thread executed it.

    target: the element written; sources: the elements read. thread: its number in the block.
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
    place, at: the statement that fails; other_at: the statement that it conflicts with. tags: of the elements
    concerned, by their role (`expected`, `found`, `tags of ...`). elements: the faulty elements, the first one as
    `element` or in addition to it; alike: further elements that fail in the same way. chain: the provenance of
    `elements`: the statements that brought them from global memory, in program order.
    smallest: reducing any single size by one admissible step makes the failure disappear.
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

    def where(self) -> tuple[str, ...]:
        """The run that shows it, in words: sizes, block, threads, iteration, statements."""
        facts = [f"{name} = {value}" for name, value in self.sizes]
        facts += [f"block ({', '.join(map(str, self.block))})"] if self.block else []
        facts += [f"thread {self.thread}"] if self.thread is not None else []
        facts += [f"and thread {self.other_thread}"] if self.other_thread is not None else []
        facts += [f"iteration {', '.join(f'{name} = {at}' for name, at in self.iteration)}"] if self.iteration else []
        lines = [f"at {', '.join(facts)}"] if facts else []
        lines += [f"in {self.at.place}"] if self.at.frames else []
        lines += [f"against {self.other_at.place}"] if self.other_at.frames else []
        return (*lines, *[f"{name}: {tag}" for name, tag in self.tags])

    def __str__(self) -> str:
        """The message, the run that shows it, and the repair, one a line."""
        return "\n".join([f"{self.code}: {self.message}", *[f"  {line}" for line in self.where()], *self._repair()])

    def _repair(self) -> list[str]:
        return [f"  repair: {self.repair}"] if self.repair else []

    def __repr__(self) -> str:
        sizes = "".join(f", {name}={value}" for name, value in self.sizes)
        return f"<Counterexample {self.code}{sizes}: {self.message}>"

    def _repr_html_(self) -> str:
        """The message, and below it the run and the repair."""
        below = "\n".join(str(self).splitlines()[1:])
        title = f'<b style="color:#cf222e">{self.code}: {escape(self.message)}</b>'
        return f"<p>{title}</p><pre>{escape(below)}</pre>" if below else f"<p>{title}</p>"


@frozen
class Refuted(_Verdict):
    """An invariant fails, as the counterexample shows."""

    counterexample: Counterexample

    __bool__ = _Verdict.__bool__


@frozen
class Unknown(_Verdict):
    """Neither proved nor refuted. reason: what is missing; attempt: what to try."""

    reason: str
    attempt: str

    __bool__ = _Verdict.__bool__


@frozen
class Vacuous(_Verdict):
    """The assumptions contradict each other, so that any statement would follow from them."""

    assumptions: tuple[str, ...]

    __bool__ = _Verdict.__bool__


Verdict = Proved | Refuted | Unknown | Vacuous
Standing = Literal["proved", "refuted", "unknown", "not applicable", "not built yet"]


@frozen
class Finding:
    """The result for one invariant of a kernel.

    obligations, compared: the numbers of statements and elements that its check comprised. reason: why the invariant
    does not apply or is unknown.
    """

    invariant: str
    title: str
    standing: Standing
    reason: str = ""
    obligations: int = 0
    compared: int = 0

    @property
    def checked(self) -> bool:
        """Whether the invariant's check ran."""
        return self.standing in ("proved", "refuted", "unknown")


@frozen
class Cost:
    """The cost of a verification. seconds: wall clock. asked: queries, of which `by_normal_form` were decided by
    normalisation, `remembered` by the cache, and `smt` reached an SMT solver.
    """

    seconds: float
    asked: int
    by_normal_form: int
    remembered: int
    smt: int


@frozen
class VariantChange:
    """One change that a user makes to a kernel. text: a clause, such as "add `assume(K % 8 == 0)`". at: the line."""

    kind: Literal["assumption", "edge", "claim"]
    text: str
    at: Span = NOWHERE

    def __str__(self) -> str:
        return f"{self.text} ({self.at.place})" if self.at.frames else self.text


@frozen
class ProvedVariant:
    """A variant of a kernel that is proved, where the kernel itself is not.

    uncovered: outputs that the variant's claims leave open, as in its own report.
    """

    changes: tuple[VariantChange, ...]
    uncovered: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The changes, and what they give up, after "proved if you"."""
        left = f"; no assertion then determines {', '.join(self.uncovered)}" if self.uncovered else ""
        return " and ".join(map(str, self.changes)) + left


@frozen
class Report:
    """The verdict on one kernel and the result for each invariant.

    diagnostics: the primary one first; the others are of further invariants that fail. uncovered: outputs that no
    non-trivial assertion covers. nearest: of an unknown verdict, the nearest variant that is proved, where one was
    looked for and found; it never changes the verdict.
    """

    kernel: str
    target: str
    solver: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    diagnostics: tuple[Diagnostic, ...]
    cost: Cost
    uncovered: tuple[str, ...] = field(default=())
    nearest: ProvedVariant | None = None

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
    """A tensor passed between launches. writers, readers: kernels, in launch order. holds: its content, in words."""

    tensor: str
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    holds: str


@frozen
class ProgramReport:
    """The verdict on a program, which is the worst of its launches': refuted before undecided before proved.

    launches: the report of each launch, in launch order.
    """

    program: str
    verdict: Verdict
    launches: tuple[Report, ...]
    crossings: tuple[Crossing, ...]

    @property
    def exit_code(self) -> int:
        """1 if any launch is refuted, else 2 if any is undecided, else 0."""
        codes = [report.exit_code for report in self.launches]
        return next((code for code in (1, 2) if code in codes), 0)

    def __bool__(self) -> NoReturn:
        raise TypeError("a report is not a bool: look at `.verdict`")
