"""Formats the events of a search as text: one line per candidate, then a summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never, cast

from attrs import define, field

from argus.policy.bounds import Bounds
from argus.policy.llm.budget import DEFAULT_LIMITS, Limits, Spent
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Asks, Ended, Judged, LastRound, Proposed, Resumed, Started, Update
from argus.search.problems.problem import display_name
from argus.search.run import SearchResult

_FEW = 4
"""Most techniques that a line lists in full."""


@define
class SearchLog:
    """Turns the events of a running search into lines of text.

    bounds: performance bounds of the problem. counted: what they count, in words. trials: limit of candidates, if any.
    model: spending limits of the language model. best: lowest time so far in microseconds, with the design's name and
    steps. tokens, dollars: spent on the language model.
    """

    bounds: Bounds
    trials: int | None = None
    model: Limits = DEFAULT_LIMITS
    counted: str = ""
    number: int = 0
    best: float | None = None
    best_name: str = ""
    best_steps: tuple[str, ...] = ()
    tokens: int = 0
    dollars: float = 0.0
    steps: dict[str, tuple[str, ...]] = field(factory=dict[str, tuple[str, ...]])

    def lines(self, event: Update) -> Iterator[str]:
        match event:
            case Started():
                name = display_name(event.problem)
                yield f"{name} on {event.target}: {event.choices:,} designs, planner {event.planner}"
                yield f"speed of light: {event.bound:.1f} us, set by {event.bottleneck}"
                if self.counted:
                    yield f"it counts {self.counted}"
            case Resumed(judged, best, techniques, tokens, cost):
                self.number, self.best, self.best_steps = judged, best, techniques
                self.best_name = "from before the resume"
                self.tokens, self.dollars = tokens, cost
                yield f"resumed after {judged:,} candidates{'' if best is None else f', best {best:.1f} us'}"
            case Proposed(name, techniques):
                self.steps[name] = techniques
            case Judged(judgement):
                yield from self._judged(judgement)
            case Asked():
                yield self._asked(event)
            case LastRound():
                yield from last_round_lines(event)
            case Ended(reason):
                yield f"ended: {reason}"
            case Asks():
                pass
            case _:
                assert_never(event)

    def best_at_error(self) -> Iterator[str]:
        """The best design so far, for a search that ends by an error."""
        if self.best is not None:
            yield f"best so far: {self.best_name}, {self.best:.1f} us; the journal has all results"

    def _judged(self, judgement: Judgement) -> Iterator[str]:
        self.number += 1
        of = f"/{self.trials}" if self.trials else ""
        head = f"{self.number:4}{of} {judgement.name}"
        steps = tuple(each.removesuffix(f" ({judgement.name})") for each in self.steps.pop(judgement.name, ()))
        if steps:
            head += f" [{change(steps, self.best_steps)}]"
        if judgement.microseconds is None:
            yield f"{head}: {judgement.outcome}, {judgement.took:.1f} s: {judgement.why}"
            yield from counterexample_lines(judgement)
            return
        better = self.best is None or judgement.microseconds < self.best
        if better:
            self.best, self.best_steps, self.best_name = judgement.microseconds, steps, judgement.name
        yield (
            f"{head}: proved, {judgement.reward} {judgement.microseconds:.1f} us,"
            f" {bound_summary(self.bounds, judgement.microseconds)},"
            f" {'the best so far' if better else f'best {self.best:.1f} us'}, {judgement.took:.1f} s"
        )

    def _asked(self, event: Asked) -> str:
        """The outcome of a language-model call, its cost, and the budget left."""
        self.tokens += event.tokens
        self.dollars += event.cost
        supposed = event.reply.get("spent", {}).get("supposed", 0)
        parts = [
            f"  asked {event.model}: {_answer(event.reply)}",
            *([_cost(event.tokens, event.cost, supposed)] if event.tokens else []),
            budget(self.tokens, self.dollars, self.model),
        ]
        return "; ".join(parts)


def last_round_lines(event: LastRound) -> Iterator[str]:
    """The standings of the last round, one a line, with the time over that of the best."""
    if event.missing:
        yield f"last round: not measured: {event.missing}"
        return
    yield f"last round: {len(event.standings)} candidates, {event.rounds} interleaved rounds"
    for each in event.standings:
        times = ", ".join(f"{regime} {time:.1f} us" for regime, time in each.medians.items())
        apart = "" if each.place in ("best", "wrong") else f", {each.low - 1:+.2%} to {each.high - 1:+.2%}"
        yield f"  {each.name}: {each.place}{apart}{f': {each.why}' if each.why else ''}{f'; {times}' if times else ''}"


def bound_summary(bounds: Bounds, microseconds: float) -> str:
    """A time against its bounds: share of the speed of light, gap, headroom, and the bottleneck."""
    return (
        f"{bounds.light / microseconds:.0%} of light (gap {bounds.gap(microseconds):.2f},"
        f" headroom {bounds.headroom(microseconds):.0%}, {bounds.bottleneck})"
    )


def change(steps: Sequence[str], best: Sequence[str]) -> str:
    """The techniques of a design: all if they are few, else the difference to the best so far, else the last one.

    The last one is shown with the parameters that it changes, the others by name.
    """
    if len(steps) <= _FEW:
        return _signed(steps, "+")
    more, less = [each for each in steps if each not in best], [each for each in best if each not in steps]
    if best and len(more) + len(less) <= _FEW:
        gone = [each for each in map(_name, less) if each not in map(_name, more)]
        return " ".join(each for each in ("the best", _signed(more, "+", in_full=True), _signed(gone, "-")) if each)
    return f"{len(steps)} techniques, +{steps[-1]}"


def _signed(steps: Sequence[str], sign: str, *, in_full: bool = False) -> str:
    display_name = [each if in_full or place == len(steps) - 1 else _name(each) for place, each in enumerate(steps)]
    return " ".join(sign + each for each in display_name)


def _name(step: str) -> str:
    return step.partition(" (")[0]


def _cost(tokens: int, dollars: float, supposed: int = 0) -> str:
    """supposed: how many of the tokens are estimates, for calls that ended without a count."""
    return f"{tokens:,} tokens{f' ({supposed:,} of them estimated)' if supposed else ''}, ${dollars:.4f}"


def budget(tokens: int, dollars: float, limits: Limits, supposed: int = 0) -> str:
    """The total cost of the language model, and the budget left."""
    parts = [f"spent {_cost(tokens, dollars, supposed)}"]
    if limits.dollars is not None:
        parts.append(f"left ${max(0.0, limits.dollars - dollars):.4f} of ${limits.dollars:.2f}")
    if limits.tokens is not None:
        parts.append(f"left {max(0, limits.tokens - tokens):,} of {limits.tokens:,} tokens")
    return ", ".join(parts)


def _total(spent: Spent, limits: Limits) -> str:
    return budget(spent.tokens, spent.dollars, limits, spent.supposed)


def _answer(reply: Mapping[str, Any]) -> str:
    """The outcome of a recorded reply: our error text or the number of proposals, never the model's own text."""
    if reply.get("kind") == "trouble":
        return f"no answer, {reply['code']}: {reply['message']}; continuing with the bandit"
    count = len(cast("Sequence[object]", reply.get("proposals", ())))
    return "1 proposal" if count == 1 else f"{count} proposals"


def counterexample_lines(judgement: Judgement) -> Iterator[str]:
    """Where a claim fails, on one line: program point, block, thread, data element, sizes, and how it was replayed.

    No line if the kernel as a whole exceeds a hardware limit.
    """
    found = judgement.counterexample
    if found is None:
        return
    where = [
        *(f"at {point}" for point in [_point(found.get("at"))] if point),
        *(f"and {point}" for point in [_point(found.get("other_at"))] if point),
        *_named(found),
        *(f"element {each}" for each in _elements(found)),
    ]
    if where:
        how = _REPLAYED.get(str(found.get("replayed")))
        yield f"       {', '.join(where)}{f'; {how}' if how else ''}"


_REPLAYED = {"interpreter": "replayed in the interpreter", "recomputed": "recomputed from the program"}
_NAMES = (
    ("block", "block"),
    ("thread", "thread"),
    ("other_thread", "other thread"),
    ("iteration", "iteration"),
    ("other_iteration", "other iteration"),
    ("sizes", "sizes"),
)


def _named(found: Mapping[str, Any]) -> Iterator[str]:
    for key, name in _NAMES:
        value = found.get(key)
        if value not in (None, [], {}, ()) and not (key == "other_thread" and value == found.get("thread")):
            yield f"{name} {_shown(value)}"


def _shown(value: object) -> str:
    match value:
        case dict():
            return " ".join(f"{name}={each}" for name, each in cast("dict[str, object]", value).items())
        case list() | tuple():
            return f"({', '.join(map(str, cast('Sequence[object]', value)))})"
        case _:
            return str(value)


def _elements(found: Mapping[str, Any]) -> Iterator[str]:
    """The elements of the buffer that the claim is about, and of the operands."""
    places: list[Mapping[str, Any]] = [
        {"buffer": found.get("buffer"), "element": found.get("element")},
        *(found.get("elements") or []),
    ]
    shown = [f"{each['buffer'] or ''}{list(each['element'])}" for each in places if each.get("element") is not None]
    yield from dict.fromkeys(shown)


def _point(frame: Mapping[str, Any] | None) -> str:
    """`file:line` of a program point, without the folder."""
    if not frame:
        return ""
    return f"{str(frame.get('file', '')).rpartition('/')[2]}:{frame.get('line')}"


def outcome_lines(found: SearchResult, model: Limits | None = None) -> Iterator[str]:
    """The summary of a run. model: spending limits of the language model."""
    best, bounds = found.best, found.problem.bounds
    passed = sum(each.microseconds is not None for each in found.judged)
    stopped = len(found.judged) - passed
    early = sum(each.microseconds is None and not each.compiled for each in found.judged)
    yield (
        f"{len(found.judged):,} candidates: {passed:,} passed, {stopped:,} were rejected, {early:,} of them before"
        " compilation"
    )
    if found.spent is not None:
        calls = "1 call" if found.spent.calls == 1 else f"{found.spent.calls:,} calls"
        yield f"the model: {calls}, {_total(found.spent, model or DEFAULT_LIMITS)}"
    if best is None or best.microseconds is None:
        yield "nothing passed the gate"
    else:
        share, headroom = bounds.light / best.microseconds, bounds.headroom(best.microseconds)
        how = " in the last round" if best.name in found.settled else ""
        yield f"best: {best.name}, {best.reward} {best.microseconds:.1f} us{how}, {share:.0%} of the speed of light"
        yield f"headroom {headroom:.0%}, bottleneck {bounds.bottleneck}"
        if best.reward == "predicted":
            yield "times are predicted by the static model: there was no GPU"
    yield f"run {found.run} in {found.journal}; continue it with --resume {found.run}"
