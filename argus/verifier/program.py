"""Verifies programs launch by launch, each given the tensor contents that earlier launches are proved to leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter, thread_time

from attrs import define, evolve, field

from argus.core.check.reads import written_tensors
from argus.core.dsl.programs import ProgramTemplate
from argus.core.index_text import show
from argus.core.ir import Buffer, Copy, Kernel, Program, program_claims, walk
from argus.core.proof.analysis import Analysis, analyse
from argus.core.proof.outputs.launch_context import LaunchContext, launch_contexts
from argus.core.proof.outputs.program_claims import Claimed, program_equality_obligations
from argus.core.proof.outputs.program_context import ProgramContext
from argus.core.proof.outputs.program_tags import program_tags
from argus.core.proof.values.content import Number, TensorContent, TensorData, Top
from argus.core.proof.values.held.between import Left, value_before, with_integers
from argus.core.proof.values.held.deciding import decided_later, deciding
from argus.core.query import Budget
from argus.core.values.expr import Expr
from argus.core.values.formula_text import formula_text
from argus.core.values.rewriting import elements, written_size
from argus.core.verdict import Crossing, ProgramReport, Proved, Refuted, Report, Verdict
from argus.report.shown import ShownProgramReport
from argus.solvers.base import Solver
from argus.solvers.cache import Cache
from argus.solvers.choice import resolve
from argus.solvers.session.answers import OutOfTime
from argus.solvers.session.session import Session
from argus.verifier.garbage import few_collections
from argus.verifier.kernel import out_of_time, report_on, verify
from argus.verifier.loader import Exported
from argus.verifier.nearest import with_nearest
from argus.verifier.refute import Refutation, Suspect
from argus.verifier.refute_program import ProgramLaunch, refute_launch
from argus.verifier.refute_rounding import refute_or_round

Contents = tuple[Mapping[Buffer, TensorContent], Mapping[Buffer, Left | str]]
"""What a program's tensors hold between two launches, as tags and as values."""
_LONGEST = 200
"""Characters of a value that is shown, and parts of one that is written as text."""


@few_collections()
def verify_program(
    program: Program | ProgramTemplate,
    *,
    solver: str | Solver | None = None,
    budget: Budget | None = None,
    config: str | None = None,
    cache: Cache | None = None,
) -> ProgramReport:
    """Prove every invariant of every launch of a program, for all sizes, or refute one by a run of the program.

    Takes the arguments of `verify`, and raises the same errors.
    """
    traced = program if isinstance(program, Program) else program.trace(config or program.instances()[0])
    start, spent, backend, limits = perf_counter(), thread_time(), resolve(solver), budget or Budget()
    launches = launch_contexts(traced)
    contents: dict[Buffer, TensorContent] = {}
    values: dict[Buffer, Left | str] = {}
    states: list[Contents] = []
    reports: list[Report] = []
    for number, each in enumerate(launches):
        session = Session(backend, evolve(limits, total=limits.total - (thread_time() - spent)), cache)
        try:
            report, analysis = _verify_launch(ProgramLaunch(traced, number, launches), contents, values, session)
        except OutOfTime:
            reports.append(out_of_time(each.kernel, Session(backend, limits, cache), start))
            return ShownProgramReport(traced.name, _worst(reports), tuple(reports), ())
        reports.append(report)
        for buffer in written_tensors(each.kernel):
            reason = f"`{each.kernel.name}` writes it, and the analysis does not know what"
            contents[each.arguments[buffer]] = analysis.tensors_after.get(buffer, Top(reason))
            values[each.arguments[buffer]] = analysis.values_after.get(buffer, reason)
        states.append((dict(contents), dict(values)))
    crossings = tuple(_crossings(traced, launches, states))
    return ShownProgramReport(traced.name, _worst(reports), tuple(reports), crossings)


@define
class ExportVerifier:
    """Verifies the kernels that a file exports, each program only once.

    variants: whether the nearest proved variant of an unknown kernel that no program launches is looked for.
    """

    solver: Solver
    budget: Budget
    cache: Cache | None
    variants: bool = False
    _programs: dict[Program, ProgramReport] = field(factory=dict[Program, ProgramReport], init=False)

    @property
    def programs(self) -> tuple[ProgramReport, ...]:
        return tuple(self._programs.values())

    def report(self, exported: Exported, kernel: Kernel) -> Report:
        """The report on a kernel: in the context of its launch, if a program launches it."""
        program = exported.program
        if program is None:
            begun = thread_time()
            found = verify(kernel, solver=self.solver, budget=self.budget, cache=self.cache)
            if not self.variants:
                return found
            return with_nearest(found, kernel, self.solver, self.budget, self.cache, thread_time() - begun)
        if program not in self._programs:
            self._programs[program] = verify_program(program, solver=self.solver, budget=self.budget, cache=self.cache)
        return evolve(self._programs[program].launches[exported.launch], kernel=exported.name)

    @staticmethod
    def pictured_kernels(exported: Sequence[Exported], kernels: Sequence[Kernel]) -> list[Kernel]:
        """For each exported kernel, the kernel whose sizes its counterexample uses: that of the launch, if any."""
        pairs = zip(exported, kernels, strict=True)
        return [k if e.program is None else launch_contexts(e.program)[e.launch].kernel for e, k in pairs]


def _verify_launch(
    site: ProgramLaunch,
    contents: Mapping[Buffer, TensorContent],
    values: Mapping[Buffer, Left | str],
    session: Session,
) -> tuple[Report, Analysis]:
    """The report on a launch, and its analysis. contents, values: of the tensors that earlier launches wrote."""
    start = perf_counter()
    own = site.own
    later = {given for launch in site.launches[site.number + 1 :] for given in _read_tensors(launch)}
    brought = {buffer: contents[given] for buffer, given in own.arguments.items() if given in contents}
    needed = frozenset(buffer for buffer, given in own.arguments.items() if given in later)
    before, claimed_here = _formulas(site, values)
    claims = tuple(_claims(site, values))
    context = ProgramContext(
        brought,
        needed,
        before,
        program_tags(site.launches[: site.number + 1]),
        formulas=bool(program_claims(site.program)),
        claimed=claimed_here,
        asked=frozenset(each.output for each in claims),
        renamed=_renamed(own),
        integers=_integers(site),
        decided=_decided(site),
    )
    analysis = analyse(own.kernel, session, context)
    claimed = (each for made in claims for each in program_equality_obligations(analysis.flows, made))
    analysis = evolve(analysis, obligations=(*analysis.obligations, *claimed))

    def refute_here(suspects: Sequence[Suspect]) -> Refutation | None:
        found = None
        if not brought and not any(suspect.obligation.invariant == "I34" for suspect in suspects):
            found = refute_or_round(own.kernel, suspects, session.budget)
        return found or refute_launch(site, suspects, session.budget)

    report = report_on(own.kernel, analysis, session, refute_here, start)
    ambiguous = {each.open_claim[0] for each in analysis.obligations if each.open_claim is not None}
    covered = {buffer.name for buffer in needed | context.claimed}
    return _without_warnings(report, covered - ambiguous), analysis


def _formulas(
    site: ProgramLaunch, values: Mapping[Buffer, Left | str]
) -> tuple[Mapping[Buffer, Expr], frozenset[Buffer]]:
    """What the launch's tensors hold before it, and those of which the program claims a formula."""
    claimed = {claim.view.buffer for _, claim in program_claims(site.program)}
    own = site.own.arguments
    renamed = _renamed(site.own)
    decides = deciding(site.own.kernel, _decided(site))
    before = {
        buffer: value_before(given, values.get(given), renamed, decided=buffer in decides)
        for buffer, given in own.items()
    }
    return before, frozenset(buffer for buffer, given in own.items() if given in claimed)


def _decided(site: ProgramLaunch) -> frozenset[Buffer]:
    """The launch's tensors by whose numbers later ones decide something."""
    return decided_later([(each.kernel, each.arguments) for each in site.launches])[site.number]


def _claims(site: ProgramLaunch, values: Mapping[Buffer, Left | str]) -> Iterator[Claimed]:
    """The program's claims about tensors that the launch writes last."""
    before, _ = _formulas(site, values)
    written = {given for launch in site.launches for given in _written_tensors(launch)}
    unwritten = {each.name for each in site.program.parameters if each.dtype.family == "int" and each not in written}
    read = unwritten - _renamed(site.own)
    before = {buffer: with_integers(value, read) for buffer, value in before.items()}
    roundings = frozenset(each for left in values.values() if isinstance(left, Left) for each in left.roundings)
    for stmt, claim in site.claims:
        output = next(buffer for buffer, given in site.own.arguments.items() if given is claim.view.buffer)
        written = (buffer.name for launch in site.launches for buffer in _written_tensors(launch))
        yield Claimed(stmt, claim, output, before, roundings, _renamed(site.own).union(written))


def _renamed(launch: LaunchContext) -> frozenset[str]:
    """The parameters of a launch whose name is not that of the program's tensor."""
    return frozenset(buffer.name for buffer, given in launch.arguments.items() if buffer.name != given.name)


def _integers(site: ProgramLaunch) -> tuple[Buffer, ...]:
    """The tensors of integers that earlier launches read and none of them writes, by the program's names for them."""
    earlier = site.launches[: site.number]
    written = {buffer for launch in earlier for buffer in _written_tensors(launch)}
    own = {buffer.name for buffer in site.own.arguments}
    found: dict[str, Buffer] = {}
    for launch in earlier:
        for buffer, given in launch.arguments.items():
            alike = buffer.name == given.name and buffer.dtype.family == "int"
            if alike and given not in written and buffer.name not in own:
                found.setdefault(buffer.name, buffer)
    return tuple(found.values())


def _read_tensors(launch: LaunchContext) -> frozenset[Buffer]:
    """The program's tensors that a launch copies from or accumulates into; integers that select tiles do not count."""
    copies = [stmt for stmt in walk(launch.kernel.body) if isinstance(stmt, Copy)]
    read = {stmt.source.buffer for stmt in copies} | {s.target.buffer for s in copies if s.combine is not None}
    return frozenset(given for buffer, given in launch.arguments.items() if buffer in read)


def _without_warnings(report: Report, needed: set[str]) -> Report:
    """The report without E404 for tensors that a later launch reads, whose assertions cover them, or of which the
    program claims a formula.
    """
    if not report.uncovered or not needed & set(report.uncovered):
        return report
    covered = tuple(f"the output `{name}`" for name in needed)
    diagnostics = tuple(
        each for each in report.diagnostics if each.code != "E404" or not any(name in each.message for name in covered)
    )
    return evolve(report, uncovered=tuple(n for n in report.uncovered if n not in needed), diagnostics=diagnostics)


def _worst(reports: Sequence[Report]) -> Verdict:
    """The verdict of the first refuted launch, else of the first unproved one; else all proofs combined."""
    verdicts = [report.verdict for report in reports]
    for verdict in (*(each for each in verdicts if isinstance(each, Refuted)), *verdicts):
        if not isinstance(verdict, Proved):
            return verdict
    return _together([verdict for verdict in verdicts if isinstance(verdict, Proved)])


def _together(proofs: Sequence[Proved]) -> Proved:
    methods, coverage = Counter[str](), Counter[str]()
    for proof in proofs:
        methods.update(dict(proof.methods))
        coverage.update(dict(proof.coverage))
    return Proved(
        sum(proof.obligations for proof in proofs),
        tuple(sorted(methods.items())),
        tuple(dict.fromkeys(line for proof in proofs for line in proof.assumptions)),
        tuple(sorted(coverage.items())),
        tuple(dict.fromkeys(line for proof in proofs for line in proof.results)),
    )


# -- tensors between launches --------------------------------------------------------------------------------


def _crossings(program: Program, launches: Sequence[LaunchContext], states: Sequence[Contents]) -> Sequence[Crossing]:
    """Tensors that one launch writes and a later one reads, with their contents before the last reader.

    states: those after each launch.
    """
    found: list[Crossing] = []
    for buffer in (*program.parameters, *program.workspaces):
        wrote = [n for n, launch in enumerate(launches) if buffer in _written_tensors(launch)]
        read = [n for n, launch in enumerate(launches) if buffer in _read_tensors(launch) and wrote and n > wrote[0]]
        if read:
            names = [[launches[n].kernel.name for n in some] for some in (wrote, read)]
            contents, values = states[read[-1] - 1]
            left = values.get(buffer)
            value = _describe_value(buffer, left) if isinstance(left, Left) and program_claims(program) else ""
            held = value or _describe_content(contents.get(buffer))
            found.append(Crossing(buffer.name, tuple(names[0]), tuple(names[1]), held))
    return found


def _written_tensors(launch: LaunchContext) -> frozenset[Buffer]:
    return frozenset(launch.arguments[buffer] for buffer in written_tensors(launch.kernel))


def _describe_value(buffer: Buffer, left: Left) -> str:
    """A value as a function of the coordinates; the tensors that it is computed from, if that is long."""
    text = formula_text(left.value, len(buffer.shape)) if written_size(left.value) <= _LONGEST else ""
    if text and len(text) <= _LONGEST:
        return text
    return f"a value of {', '.join(sorted({each.tensor for each in elements(left.value)}))}"


def _describe_content(known: TensorContent | None) -> str:
    match known:
        case None:
            return "nothing known"
        case Top(reason=reason):
            return f"nothing known: {reason}"
        case Number(value=value):
            return f"{value:g} everywhere"
        case TensorData(record=record, sets=sets, form=form):
            tags = ", ".join(f"{name}={show(expression)}" for name, expression in record.items())
            part = f", a part of the sum over {', '.join(sets)}" if sets else ""
            beyond = [f"{known.fill:g} from {show(place)} = {show(extent)} on" for place, extent in known.inside]
            return f"{form} with {tags}{part}{', and ' if beyond else ''}{', '.join(beyond)}"
