"""The harness uses the GPU exclusively, and waits while another process measures."""

from collections.abc import Callable, Generator
from typing import Any

from attrs import define, field

from argus.search.bench_harness.bench import Bytes
from argus.search.bench_harness.examine import check_results, measure
from argus.search.bench_harness.session import session
from argus.search.bench_harness.subject import Subject
from argus.search.bench_harness.verdict import Caught, Passed
from argus.testing.simulated import Simulated, SimulatedBench
from tests.search.bench_harness.candidates import HONEST, Candidate
from tests.search.bench_harness.test_cheats import PLAN, PROBLEM

WAITING = "the GPU, which another process uses"


@define
class Shared:
    """A simulated GPU that another process holds for a while before each acquisition."""

    inner: SimulatedBench
    moments: int = 2
    mine: bool = False
    turns: int = 0
    asked: int = 0
    used: set[str] = field(factory=set[str])

    def try_acquire(self) -> bool:
        assert not self.mine
        self.asked += 1
        self.mine = self.asked % (self.moments + 1) == 0
        self.turns += self.mine
        return self.mine

    def release(self) -> None:
        assert self.mine
        self.mine = False

    def _in_turn(self, name: str, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 reason: whatever is called
        assert self.mine, name
        self.used.add(name)
        return getattr(self.inner, name)(*arguments, **named)

    def allocate(self, size: int) -> int:
        return self.inner.allocate(size)

    def free(self, address: int) -> None:
        self.inner.free(address)

    def write(self, address: int, contents: Bytes) -> None:
        self._in_turn("write", address, contents)

    def fill(self, address: int, size: int, byte: int) -> None:
        self._in_turn("fill", address, size, byte)

    def read(self, address: int, size: int) -> Bytes:
        return self._in_turn("read", address, size)

    def synchronise(self, *, everything: bool) -> None:
        self._in_turn("synchronise", everything=everything)

    def keep_busy(self, calls: int) -> None:
        self._in_turn("keep_busy", calls)

    def record_event(self) -> object:
        return self._in_turn("record_event")

    def elapsed(self, first: object, last: object) -> float:
        return self.inner.elapsed(first, last)

    def host_time(self) -> float:
        return self._in_turn("host_time")

    def instruments(self) -> tuple[object, ...]:
        return self.inner.instruments()

    def least(self, subject: Subject) -> float:
        return self.inner.least(subject)


def noted(going: Generator[str, None, Caught | Passed | None], notes: list[str]) -> Caught | Passed | None:
    """The result of the steps, and their notes."""

    def steps() -> Generator[str, None, None]:
        found.append((yield from going))

    found: list[Caught | Passed | None] = []
    notes += steps()
    return found[0]


def test_all_gpu_work_is_exclusive() -> None:
    candidate = Candidate(Simulated(), HONEST)
    bench = Shared(SimulatedBench(candidate.device))
    seen: list[Callable[..., Any]] = [check_results, measure]
    for work in seen:
        notes: list[str] = []
        before = bench.turns
        with session(bench, PLAN, PROBLEM) as opened:
            found = noted(work(opened, candidate), notes)
        assert found is None or isinstance(found, Passed)
        assert notes.count(WAITING) == bench.moments * (bench.turns - before) > 0
        assert not bench.mine
    assert bench.used == {"write", "fill", "read", "synchronise", "keep_busy", "record_event", "host_time"}
