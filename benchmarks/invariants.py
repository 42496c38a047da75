"""Computes the test coverage of invariants: `python benchmarks/invariants.py [--solver NAME]`.

An invariant is covered if it has an obligation generator, is proved for at least one kernel of tests/corpus/proved, is
refuted by at least two kernels of tests/corpus/refuted, has a case in a file tests/verifier/test_checks_of_*.py that is
accepted once its check is disabled, and a page that shows one of the corpus's reports. Programs of
tests/corpus/programs and the cases of tests/verifier/test_programs.py count like kernels. Exit status 1 if an
implemented invariant is not covered.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from argus.core.invariants import INVARIANTS, Invariant
from argus.core.proof.applicability import CHECKED_INVARIANTS
from argus.verifier.kernel import verify
from argus.verifier.loader import load
from argus.verifier.program import verify_program

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests" / "corpus"
REFUTED_PROGRAMS = CORPUS / "programs" / "refuted"
REFUTED = (CORPUS / "refuted", REFUTED_PROGRAMS)
PROOF = ROOT / "argus" / "core" / "proof"
NAMES_ONLY = ("applies.py", "obligation.py")
"""Modules that name all invariants but generate no obligations."""

PUBLISHED = 36
"""I1 to I36 are those of the original catalogue; four more were added."""


@frozen
class Coverage:
    """Coverage of one invariant. generators: modules. mutations: cases of test_checks_of_*.py. shown: on its page."""

    invariant: Invariant
    built: bool
    generators: tuple[str, ...]
    proved: int
    refuted: int
    mutations: int
    shown: bool

    @property
    def lacks(self) -> tuple[str, ...]:
        """What is missing; empty if the invariant is covered."""
        wanted = (
            (self.built and bool(self.generators), "a check"),
            (self.proved >= 1, "a kernel proved"),
            (self.refuted >= _REFUTED, f"{_REFUTED} kernels refuted"),
            (self.mutations >= 1, "a mutation"),
            (self.shown, "a page with a report"),
        )
        return tuple(what for has, what in wanted if not has)


_REFUTED = 2


def coverage(solver: str = "z3", *, every: bool = True) -> tuple[Coverage, ...]:
    """Coverage of each invariant. every: count all proved kernels, not only whether there is one."""
    generators, refuted, slipping = _generators(), _refuted(), mutations()
    proved = _proved(solver, every=every)
    return tuple(
        Coverage(
            each,
            each.id in CHECKED_INVARIANTS,
            generators.get(each.id, ()),
            proved[each.id],
            refuted[each.id],
            slipping[each.id],
            shows_a_report(each),
        )
        for each in INVARIANTS
    )


def _generators() -> Mapping[str, tuple[str, ...]]:
    """The modules of the prover that name a code, by code."""
    found: dict[str, list[str]] = {}
    for path in sorted(PROOF.rglob("*.py")):
        if path.name not in NAMES_ONLY:
            for code in sorted(set(re.findall(r'"(I\d+)"', path.read_text(encoding="utf-8")))):
                found.setdefault(code, []).append(path.relative_to(PROOF).with_suffix("").as_posix())
    protocol = ROOT / "argus" / "core" / "protocol" / "role_ops.py"
    for code in sorted(set(re.findall(r'"(I\d+)"', protocol.read_text(encoding="utf-8")))):
        found.setdefault(code, []).append("protocol/role_ops")
    return {code: tuple(modules) for code, modules in found.items()}


def _proved(solver: str, *, every: bool) -> Counter[str]:
    """Number of kernels and programs of the corpus for which each invariant is proved."""
    found: Counter[str] = Counter()
    wanted = set(CHECKED_INVARIANTS)
    for path in sorted((CORPUS / "programs" / "proved").glob("*.py")):
        found.update(_proved_of_program(path, solver))
    for path in sorted((CORPUS / "proved").glob("*.py")):
        for exported in load(str(path)):
            report = verify(exported.trace(), solver=solver)
            found.update(each.invariant for each in report.findings if each.standing == "proved")
        if not every and wanted <= found.keys():
            break
    return found


def _proved_of_program(path: Path, solver: str) -> frozenset[str]:
    """The invariants that are proved for some launch of a program, and not refuted or unknown for any."""
    (program,) = {each.program for each in load(str(path))} - {None}
    assert program is not None
    findings = [each for report in verify_program(program, solver=solver).launches for each in report.findings]
    doubted = {each.invariant for each in findings if each.standing not in ("proved", "not applicable")}
    return frozenset(each.invariant for each in findings if each.standing == "proved") - doubted


def _refuted() -> Counter[str]:
    """Number of refuted kernels and programs by the last code of their first line: that of the report, which
    tests/test_corpus.py and test_programs.py check, or the invariant whose violation only a formula shows.
    """
    return Counter(_code(path) for folder in REFUTED for path in folder.glob("*.py"))


def _code(path: Path) -> str:
    return path.read_text(encoding="utf-8").split("\n", 1)[0].split()[-1]


def mutations() -> Counter[str]:
    """Number of cases that are accepted once a check is disabled, by code, of kernels and of programs."""
    text = (ROOT / "tests" / "verifier" / "test_programs.py").read_text(encoding="utf-8")
    cases = re.findall(r'^    \("(\w+)", \w+\),$', text, flags=re.MULTILINE)
    return kernel_mutations() + Counter(_code(REFUTED_PROGRAMS / f"{case}.py") for case in cases)


def kernel_mutations() -> Counter[str]:
    """Number of cases of tests/verifier/test_checks_of_*.py, by code."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "verifier").glob("test_checks_of_*.py"))
    cases = (re.findall(r'^    \("?\w+"?, "(I\d+)", ', text, flags=re.MULTILINE) for text in texts)
    return Counter(code for codes in cases for code in codes)


def shows_a_report(invariant: Invariant) -> bool:
    """Whether the invariant's page shows a report of the corpus with its code, word for word."""
    page = (ROOT / "docs" / "invariants" / invariant.page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    codes = f"error[{invariant.id}]:", "error[I39]:"  # a formula may show what breaks the invariant
    return any(block.startswith(codes) and block in reports(invariant.id) for block in blocks)


def reports(code: str) -> frozenset[str]:
    """The reports of the refuted kernels and programs that break an invariant."""
    found = (path for folder in REFUTED for path in folder.glob("*.py") if _code(path) == code)
    return frozenset(path.with_suffix(".txt").read_text(encoding="utf-8") for path in found)


def table(rows: Iterable[Coverage]) -> Iterator[str]:
    """The table, one line per invariant, and the totals."""
    yield f"{'id':4} {'proved':>6} {'refuted':>7} {'mutations':>9} {'report':>6}  {'generated in':44} lacks"
    listed = tuple(rows)
    for row in listed:
        modules = ", ".join(row.generators[:3]) + (f", +{len(row.generators) - 3}" if row.generators[3:] else "")
        yield (
            f"{row.invariant.id:4} {row.proved:6} {row.refuted:7} {row.mutations:9} {'yes' if row.shown else 'no':>6}  "
            f"{modules:44} {', '.join(row.lacks)}"
        )
    covered = [row for row in listed if not row.lacks]
    published = [row for row in covered if int(row.invariant.id[1:]) <= PUBLISHED]
    yield f"invariants covered: {len(published)} of {PUBLISHED}; with I37 to I40, {len(covered)} of {len(listed)}"
    built = [row for row in listed if row.built]
    yield f"built: {len(built)}; built and lacking something: {len([row for row in built if row.lacks])}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solver", default="z3")
    rows = coverage(parser.parse_args(arguments).solver)
    print("\n".join(table(rows)))
    return 1 if any(row.built and row.lacks for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
