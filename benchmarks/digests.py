"""Records Argus's answers as digests, to compare them across refactorings: `python benchmarks/digests.py`.

    python benchmarks/digests.py write FILE [--part NUMBER/OF]     records every answer
    python benchmarks/digests.py compare BEFORE AFTER                       exit code 1 if they differ

An answer is one line of JSON per subject: for each shipped configuration and each kernel and program of the corpus, the
emitted text (without comments, file names and the line numbers inside generated names), the verdict, and the status of
every invariant; for a grid of shapes, the configuration that each family selects. results/renamed_identifiers.json maps
identifiers that were renamed on purpose to their new names, under which both sides are compared.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from shipped import families, is_traced

import argus
from argus.ops import choice

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests" / "corpus"
EXTENTS = (1, 16, 72, 128, 200, 512, 1024, 4096, 8192, 16384)
KERNEL_FILES = ("proved", "unknown", "refuted", "programs/proved", "programs/unknown", "programs/refuted")
RENAMED: dict[str, str] = json.loads((ROOT / "benchmarks/results/renamed_identifiers.json").read_text(encoding="utf-8"))
Subject = tuple[str, Callable[[], object]]


def normalised(text: str) -> str:
    """Emitted text without comments and `#line`, and with generated names renumbered."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    text = "\n".join(line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("#line"))
    seen: dict[str, str] = {}

    def renumbered(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], f"{re.sub(r'_[0-9]+', '_', match[0])}_{len(seen)}")

    return re.sub(r"\b[A-Za-z_][A-Za-z0-9_]*_[0-9][A-Za-z0-9_]*\b", renumbered, text)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def emitted(kernel: Any) -> str:  # noqa: ANN401 reason: a kernel of whichever tree is measured
    """The digest of a kernel's emitted text, or the code of the diagnostic if there is none."""
    from argus.emit.cuda.text import cuda_text  # noqa: PLC0415 reason: absent from some trees' import path
    from argus.emit.hip.text import hip_text  # noqa: PLC0415 reason: as above

    try:
        text = cuda_text(kernel).text if kernel.target.name == "sm_90a" else hip_text(kernel)
    except argus.ArgusError as problem:
        return problem.diagnostic.code
    return digest(normalised(rename(text)))


def answer_of(report: Any) -> dict[str, object]:  # noqa: ANN401 reason: as `emitted`
    """The verdict of a kernel's report and the status of each invariant."""
    found: dict[str, object] = {"verdict": type(report.verdict).__name__}
    if isinstance(report.verdict, argus.Refuted):
        found["code"] = report.verdict.counterexample.code
    findings = getattr(report, "findings", ())
    found["findings"] = {each.invariant: each.standing for each in findings if each.standing != "not applicable"}
    return found


def of_template(template: Any, config: str | None) -> dict[str, object]:  # noqa: ANN401 reason: as `emitted`
    try:
        traced: Any = template.trace(config)
    except argus.ArgusError as problem:
        return {"rejected": problem.diagnostic.code}
    if type(traced).__name__ == "Program":
        report = cast("Any", argus.verify(traced, solver="z3"))
        texts = [emitted(each.kernel) for each in traced.launches]
        return {**answer_of(report), "kernels": [answer_of(each) for each in report.launches], "texts": texts}
    return {**answer_of(argus.verify(traced, solver="z3")), "text": emitted(traced)}


def shipped() -> Iterator[Subject]:
    for name, family in families():
        for config in family.instances():
            yield f"shipped/{name}/{config}", lambda family=family, config=config: of_template(family, config)


def corpus() -> Iterator[Subject]:
    for folder in (*KERNEL_FILES, "rejected"):
        for path in sorted((CORPUS / folder).glob("*.py")):
            yield f"corpus/{folder}/{path.stem}", lambda path=path: of_file(path)


def of_file(path: Path) -> list[dict[str, object]]:
    from property_tests.programs import load  # noqa: PLC0415 reason: found beside this script

    try:
        names = cast("dict[str, Any]", vars(load(path)))
        found = [each for each in names.values() if is_traced(each)]
    except argus.ArgusError as problem:
        return [{"rejected": problem.diagnostic.code}]
    programs = [each for each in found if type(each).__name__ == "ProgramTemplate"]
    return [of_template(each, config) for each in programs or found for config in each.instances()]


def selections() -> Iterator[Subject]:
    """The configuration that each family selects for every shape of the grid."""
    shapes = [(m, n, k) for m in EXTENTS for n in EXTENTS for k in EXTENTS]
    for name, select in selectors():
        for m in EXTENTS:
            inside = [shape for shape in shapes if shape[0] == m]
            yield f"select/{name}/{m}", lambda select=select, inside=inside: digest(chosen(select, inside))


def chosen(select: Callable[..., object], shapes: list[tuple[int, int, int]]) -> str:
    def one(shape: tuple[int, int, int]) -> str:
        try:
            return str(select(*shape))
        except argus.ArgusError as problem:
            return problem.diagnostic.code

    return "\n".join(map(one, shapes))


def selectors() -> Iterator[tuple[str, Callable[..., object]]]:
    yield from (("fp8", choice.select_fp8), ("fp8_blocks", choice.select_fp8_blocks))
    yield from (("fused", choice.select_fused), ("streamk", choice.select_fitted))
    for target in ("sm_90a", "gfx942"):
        yield f"gemm_{target}", partial(choice.select, dtype="bf16", target=target)
    for a, b in ((False, True), (True, False), (True, True)):
        yield f"layouts_{a:d}{b:d}", partial(choice.select_transposed, a_transposed=a, b_transposed=b)
        yield f"batched_{a:d}{b:d}", partial(choice.select_batched, 3, a_transposed=a, b_transposed=b)


def write(path: Path, part: str) -> None:
    number, of = map(int, part.split("/"))
    subjects = [*selections(), *shipped(), *corpus()][number - 1 :: of]
    found: dict[str, object] = {}
    for done, (name, answer) in enumerate(subjects, 1):
        found[name] = answer()
        print(f"\r{done}/{len(subjects)} {name:60.60}", end="", file=sys.stderr, flush=True)
    path.write_text("".join(f"{json.dumps({name: found[name]})}\n" for name in sorted(found)), encoding="utf-8")


def rename(text: str) -> str:
    """The text with the identifiers of `RENAMED` under their new names."""
    for old, new in RENAMED.items():
        text = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(old)}(?![A-Za-z0-9_])", new, text)
    return text


def read(path: Path) -> dict[str, object]:
    text = rename(path.read_text(encoding="utf-8"))
    return {name: answer for line in text.splitlines() for name, answer in json.loads(line).items()}


def compare(before: Path, after: Path) -> int:
    old, new = read(before), read(after)
    different = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    for name in different:
        print(f"{name}\n  before {json.dumps(old.get(name))}\n  after  {json.dumps(new.get(name))}")
    print(f"{len(old)} answers before, {len(new)} after, {len(different)} differ")
    return 1 if different or not old else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="record what Argus answers, or compare two records")
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("file", type=Path)
    writing.add_argument("--part", default="1/1")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "write":
        write(given.file, given.part)
        return 0
    return compare(given.before, given.after)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
