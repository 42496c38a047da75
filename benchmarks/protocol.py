"""Compares three semantics of ring protocols: `python benchmarks/protocol.py [--quick] [--rings N] [--pairs N]`.

First the seeded bugs at their smallest sizes, then random distinct rings, derived by a few edits from correct ones.
Disagreements are printed in full; there should be none. Times are totals of one process; only equal queries to the same
solver are cached.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable

from argus.core.algebra import sym
from argus.core.protocol.graph import check_event_graph
from argus.core.protocol.lemma import Certified, Shape, certify
from argus.core.protocol.obligations import check_obligations
from argus.core.protocol.outcome import Fails, Holds, Outcome, Unknown
from argus.core.protocol.ring import Protocol, attention, clustered, flash, held_per_tile, pingpong, plain
from argus.core.query import Answer, Budget, Query
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from argus.testing.protocol.mutations import Edit, apply_edits, seeded
from argus.testing.protocol.search import Bound, replay, search, search_deeper

FILLING = (("wait", 0), ("announce", 1), ("copy", 1))
DRAINING = (("wait", 0), ("read", 0), ("over", 0), ("release", 1))


def asking(solver: Solver) -> Callable[[Query], Answer]:
    """The solver, with a cache of answers."""
    answers: dict[str, Answer] = {}

    def ask(query: Query) -> Answer:
        if query.key not in answers:
            answers[query.key] = solver.check(query, Budget())
        return answers[query.key]

    return ask


def least(query: Query) -> Answer:
    """The smallest model, minimising sizes first."""
    ordered = sorted(query.symbols, key=lambda symbol: (symbol.kind != "size", symbol.name))
    return Session(Z3()).minimise(query.assertions, [sym(symbol) for symbol in ordered])


class Semantics:
    """One of the semantics, with its total time."""

    def __init__(self, name: str, judge: Callable[[Protocol], Outcome]) -> None:
        self.name = name
        self.judge = judge
        self.seconds = 0.0

    def __call__(self, protocol: Protocol) -> Outcome:
        start = time.perf_counter()
        outcome = self.judge(protocol)
        self.seconds += time.perf_counter() - start
        return outcome


def all_semantics(states: int) -> list[Semantics]:
    """The machine, the graph, and the obligations with either solver."""
    z3, cvc5 = asking(Z3()), asking(Cvc5())
    return [
        Semantics("machine", lambda protocol: search(protocol, Bound(states=states, shortest=0))),
        Semantics("graph", check_event_graph),
        Semantics("obligations, z3", lambda protocol: check_obligations(protocol, z3)),
        Semantics("obligations, cvc5", lambda protocol: check_obligations(protocol, cvc5)),
    ]


def drawn(rng: random.Random, *, pairs: bool = False) -> Edit:
    """A random protocol: S <= 4, lag <= 2, up to three consumers; two rings, alternating tiles, rings held over tiles;
    at most three edits.

    pairs: only pairs of blocks that fill each other's rings.
    """
    return apply_edits(
        pair(rng) if pairs else base(rng), [rng.getrandbits(31) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
    )


def base(rng: random.Random) -> Protocol:
    """A correct protocol; half of them are plain rings."""
    stages, lag = rng.choice([1, 2, 2, 3, 3, 4]), rng.randint(0, 2)
    match rng.randrange(8):
        case 0:
            order = rng.choice(["K(i+1) V(i)", "K(i) V(i)", "V(i) K(i)"])
            return attention(rng.randint(1, 2), rng.randint(1, 2), order=order, persistent=rng.random() < 0.7)
        case 1:
            return pingpong(stages, lag=lag, turns=rng.random() < 0.8)
        case 2:
            consumers, over = rng.randint(1, 2), rng.random() < 0.8
            return held_per_tile(stages, rng.randint(1, 2), consumers=consumers, lag=min(lag, 1), persistent=over)
        case 3:
            one, two, three = (rng.randint(1, 2) for _ in range(3))
            return flash(one, two, q_stages=three, turns=rng.random() < 0.7, late=rng.random() < 0.8)
        case _:
            pending = rng.choice([lag, lag, rng.randint(0, 2)])
            parts = rng.choice([(1,), (1, 1)])
            return plain(stages, consumers=rng.choice([1, 1, 2, 2, 3]), lag=lag, pending=pending, parts=parts)


def pair(rng: random.Random) -> Protocol:
    """Two blocks that multicast to each other, with one consumer each: more would exceed the machine's search."""
    stages, lag = rng.randint(1, 3), rng.randint(0, 2)
    pending = rng.choice([lag, lag, rng.randint(0, 2)])
    return clustered(stages, lag=lag, pending=pending)


def fuzz(number: int, states: int, seed: int, minutes: float, *, pairs: bool = False) -> int:
    """Number of disagreements on `number` distinct rings; a schedule that does not replay counts as one.

    minutes: time limit for drawing rings.
    """
    rng = random.Random(seed)  # noqa: S311  # a seed makes the figures repeatable
    judges = all_semantics(states)
    seen: set[Protocol] = set()
    verdicts: Counter[str] = Counter()
    wrong = 0
    start = time.monotonic()
    while len(seen) < number and time.monotonic() - start < 60 * minutes:
        name, protocol = drawn(rng, pairs=pairs)
        if protocol in seen:
            continue
        seen.add(protocol)
        outcomes = {judge.name: judge(protocol) for judge in judges}
        outcomes["machine"] = again(protocol, outcomes, states)
        known = {type(each).__name__ for each in outcomes.values() if not isinstance(each, Unknown)}
        verdicts[" ".join(type(each).__name__ for each in outcomes.values())] += 1
        if len(known) > 1 or not replayed(protocol, outcomes["machine"]):
            wrong += 1
            print(f"DISAGREEMENT on {name or 'no edit'}: {protocol}\n  {outcomes}")
    print(f"{len(seen)} distinct {'multicast pairs' if pairs else 'rings'}, seed {seed}: {wrong} disagreements")
    for which, count in verdicts.most_common():
        print(f"  {count:6} {which}")
    for judge in judges:
        print(f"  {judge.name}: {judge.seconds:.2f} s, {1000 * judge.seconds / max(1, len(seen)):.2f} ms per ring")
    return wrong


def again(protocol: Protocol, outcomes: dict[str, Outcome], states: int) -> Outcome:
    """The machine's outcome; searched again with more tiles if it found no failure but another semantics did."""
    other = next((each for each in outcomes.values() if isinstance(each, Fails)), None)
    if other is None or not isinstance(outcomes["machine"], Holds):
        return outcomes["machine"]
    return search_deeper(protocol, Bound(states=states, shortest=0), other)


def replayed(protocol: Protocol, outcome: Outcome) -> bool:
    """Whether the schedule of the machine's failure replays to the same failure."""
    if not isinstance(outcome, Fails):
        return True
    return outcome.size is not None and replay(protocol, outcome.size, outcome.schedule) == outcome


def milliseconds(action: Callable[[], object]) -> float:
    """Milliseconds of one run."""
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


def bugs() -> None:
    """The table of seeded bugs: claims, smallest size, shortest schedule, times."""
    print("bug | obligation that fails | graph | machine | size (K, tiles) | steps | ms z3, cvc5, graph, machine")
    for name, protocol in seeded():
        by_obligations, by_graph = check_obligations(protocol, asking(Z3()), least), check_event_graph(protocol)
        run = search(protocol, Bound(shortest=50_000))
        assert isinstance(by_obligations, Fails)
        assert isinstance(by_graph, Fails)
        assert isinstance(run, Fails)
        assert run.size is not None
        times = [milliseconds(lambda s=s, p=protocol: check_obligations(p, asking(s))) for s in (Z3(), Cvc5())]
        times.append(milliseconds(lambda p=protocol: check_event_graph(p)))
        times.append(milliseconds(lambda p=protocol: search(p, Bound(shortest=50_000))))
        model = " ".join(f"{key}={value}" for key, value in by_obligations.model)
        size = f"({run.size.trips},{run.size.tiles})"
        figures = " ".join(f"{each:.1f}" for each in times)
        print(
            f"{name} | {by_obligations.claim} {model} | {by_graph.claim} | {run.claim} | {size} | {len(run.schedule)} |"
            f" {figures}"
        )


def lemma() -> None:
    """The one-slot lemma: states and time for one, two and three consumers."""
    for consumers in (1, 2, 3):
        certify.cache_clear()
        shape = Shape(FILLING, (DRAINING,) * consumers, empty=consumers)
        spent = milliseconds(lambda s=shape: certify(s))
        found = certify(shape)
        assert isinstance(found, Certified)
        print(f"one-slot lemma, {consumers} consumers: {found.states} states, {spent:.1f} ms")


def main() -> None:
    """Print all figures; fail if any two semantics disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rings", type=int, default=5000)
    parser.add_argument("--pairs", type=int, default=1000, help="multicast pairs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time limit for drawing rings")
    chosen = parser.parse_args()
    bugs()
    lemma()
    number, pairs, states = (200, 50, 1000) if chosen.quick else (chosen.rings, chosen.pairs, 4000)
    wrong = fuzz(number, states, chosen.seed, chosen.minutes)
    wrong += fuzz(pairs, states // 4, chosen.seed, chosen.minutes, pairs=True)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
