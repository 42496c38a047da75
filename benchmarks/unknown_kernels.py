"""How long unknown verdicts take, and which of them come with a variant that is proved.

    python benchmarks/unknown_kernels.py [FOLDER...]

Verifies each kernel of the folders (tests/corpus/unknown and tests/corpus/nearest by default) with Z3 and the default
budget, as `argus.verify` does, and prints the seconds of the processor and the nearest proved variant. About four
minutes on an idle core.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from time import process_time

import argus
from argus.core.query import NOMINAL_SECONDS
from argus.core.verdict import Report, Unknown
from argus.report.summary import verdict_word
from argus.verifier.loader import load

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"


def measured(path: Path) -> tuple[Report, float]:
    """The report on the kernel of a file, and the seconds of the processor that it took."""
    (exported,) = load(str(path))
    kernel, begun = exported.trace(), process_time()
    return argus.verify(kernel, solver="z3"), process_time() - begun


def shown(report: Report) -> str:
    if not isinstance(report.verdict, Unknown):
        return verdict_word(report.verdict)
    return "no variant" if report.nearest is None else str(report.nearest)


def main() -> None:
    for folder in [*map(Path, sys.argv[1:])] or [CORPUS / "unknown", CORPUS / "nearest"]:
        seconds: list[float] = []
        kinds: Counter[str] = Counter()
        for path in sorted(folder.glob("*.py")):
            report, took = measured(path)
            seconds.append(took)
            kinds[report.nearest.changes[0].kind if report.nearest is not None else "none"] += 1
            print(f"{took:6.2f} s  {path.stem}: {shown(report)}", flush=True)
        late = sum(each > NOMINAL_SECONDS for each in seconds)
        counted = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        print(f"{folder.name}: {len(seconds)} kernels; variants by their first change: {counted}")
        print(f"{folder.name}: {late} beyond {NOMINAL_SECONDS:g} s, the longest {max(seconds, default=0):.1f} s\n")


if __name__ == "__main__":
    main()
