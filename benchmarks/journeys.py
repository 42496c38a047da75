"""Whole searches with a scripted author in the place of a model: from a naive kernel to the shipped structure.

`python benchmarks/journeys.py [rows|attention]` runs them through the real client against a local server, judges each
step by the gate, and prints one line per candidate. Times are predicted by the static model.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from argus.policy.llm.settings import Settings as Model
from argus.search.evaluation.judgement import Judgement
from argus.search.loop import Limits
from argus.search.run import SearchResult, Settings, optimize
from argus.testing.messages import Endpoint
from argus.testing.scripted_author import Author, Fault, Step

TEXTS = Path(__file__).parents[1] / "tests" / "corpus" / "journeys"


@frozen
class Journey:
    """A problem and the steps to its best kernel. sizes: of the user's file `start.py`."""

    name: str
    sizes: str
    steps: tuple[Step, ...]

    @property
    def start(self) -> str:
        return str(TEXTS / self.name / "start.py")


def _text(journey: str, name: str) -> str:
    return (TEXTS / journey / f"{name}.py").read_text(encoding="utf-8")


ROWS = Journey(
    "rows",
    "R=65536,N=1024",
    (
        Step(
            "maximum and sum in one pass, with loads of 16 bytes",
            _text("rows", "1_online"),
            Fault("sums * exp(high - guard) + exp", "sums + exp", "I39"),
        ),
        Step(
            "four rows a block, a warp each, held in registers: read once",
            _text("rows", "2_held"),
            Fault("w.sum(1)", "w.sum(1) * 0.5", "I39"),
        ),
        Step(
            "blocks that stay, and load the next rows while they compute",
            _text("rows", "3_ahead"),
            Fault("cp_async.wait(STAGES - 2)", "cp_async.wait(STAGES - 1)", "I31"),
        ),
        Step("as many blocks as are resident", edit=("2, 6 * 132", "2, {blocks} * 132")),
    ),
)
_IN = " " * 16
ATTENTION = Journey(
    "attention",
    "S=50688,T=8192",
    (
        Step(
            "a warpgroup loads by TMA into rings of two stages",
            _text("attention", "1_ring"),
            Fault(
                "            wgmma.wait(0)\n            k_ring.release()\n",
                "            k_ring.release()\n            wgmma.wait(0)\n",
                "I10",
            ),
        ),
        Step(
            "two warpgroups multiply, 64 queries each, by blocks of 128 keys",
            _text("attention", "2_two"),
            Fault("(GROUPS * i + wg, 0)", "(i + wg, 0)", "I4"),
        ),
        Step(
            "blocks that stay; scores of a block while the values of the one before are summed; warpgroups in turns",
            _text("attention", "3_overlap"),
            Fault(
                f"{_IN}wgmma.wait(0)\n{_IN}v_ring.release()\n{_IN}p[:] = weights.to(bf16)\n",
                f"{_IN}p[:] = weights.to(bf16)\n{_IN}wgmma.wait(0)\n{_IN}v_ring.release()\n",
                "I11",
            ),
        ),
        Step(
            "three warpgroups multiply",
            _text("attention", "4_shipped"),
            Fault("registers=160", "registers=240", "I21"),
        ),
    ),
)
JOURNEYS: Mapping[str, Journey] = {each.name: each for each in (ROWS, ATTENTION)}


def run(journey: Journey, folder: Path) -> tuple[SearchResult, Author]:
    """The whole search; its journal is in `folder`."""
    author = Author(journey.steps)
    with Endpoint(author) as endpoint:
        model = Model(base_url=endpoint.url, key="any", every=1, grace=600.0, rounds=1, attempts=1, repairs=0)
        limits = Limits(trials=1 + len(journey.steps))
        settings = Settings("llm", limits, journal=folder / "runs.db", model=model)
        return optimize(journey.start, "sm_90a", settings, sizes=journey.sizes), author


def line(found: Judgement, light: float) -> str:
    """One candidate. light: speed of light in microseconds."""
    if found.microseconds is None:
        return f"{found.outcome} at {found.stage}: {found.why}"
    busy = found.breakdown.get("memory", 0.0) / found.microseconds
    return f"{found.microseconds:.1f} us, {light / found.microseconds:.0%} of light, memory busy {busy:.1%} of the time"


def main(names: list[str]) -> None:
    for name in names or list(JOURNEYS):
        with tempfile.TemporaryDirectory() as folder:
            result, author = run(JOURNEYS[name], Path(folder))
        print(f"{name}: {len(author.mended)} refused drafts mended ({', '.join(author.mended)})")
        for each in result.judged:
            print(f"  {line(each, result.problem.bounds.light)}")


if __name__ == "__main__":
    main(sys.argv[1:])
