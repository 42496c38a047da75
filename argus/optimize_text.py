"""A search in words: one line a candidate, and what it came to."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from argus.optimizer.events import Asked, Ended, Event, Judged, Proposed, Resumed, Started
from argus.optimizer.files import shown
from argus.optimizer.judgement import Judgement
from argus.optimizer.run import Found
from argus.policy.bounds import Bounds


@define
class Teller:
    """Lines of a search as it goes. bounds: of the problem. counted: what they rest on, in words. best: so far, in
    microseconds.
    """

    bounds: Bounds
    trials: int | None = None
    counted: str = ""
    number: int = 0
    best: float | None = None
    techniques: dict[str, str] = field(factory=dict[str, str])

    def lines(self, event: Event) -> Iterator[str]:
        match event:
            case Started():
                yield f"{shown(event.problem)} on {event.target}: {event.choices:,} designs, planner {event.planner}"
                yield f"speed of light: {event.bound:.1f} us, set by {event.bottleneck}"
                if self.counted:
                    yield f"it counts {self.counted}"
            case Resumed(judged, best):
                self.number, self.best = judged, best
                yield f"resumed after {judged:,} candidates"
            case Proposed(name, techniques):
                self.techniques[name] = techniques[-1] if techniques else ""
            case Judged(judgement):
                yield from self._judged(judgement)
            case Asked(model, _, tokens, cost):
                yield f"  {model} was asked: {tokens:,} tokens, {cost:.4f} US dollars"
            case Ended(reason):
                yield f"ended: {reason}"

    def _judged(self, judgement: Judgement) -> Iterator[str]:
        self.number += 1
        of = f"/{self.trials}" if self.trials else ""
        head = f"{self.number:4}{of} {judgement.name}"
        technique = self.techniques.get(judgement.name, "")
        if technique:
            head += f" [{technique}]"
        if judgement.microseconds is None:
            yield f"{head}: {judgement.outcome}, {judgement.took:.1f} s: {judgement.why}"
            yield from _counterexample(judgement)
            return
        better = self.best is None or judgement.microseconds < self.best
        self.best = judgement.microseconds if self.best is None else min(self.best, judgement.microseconds)
        share = self.bounds.light / judgement.microseconds
        yield (
            f"{head}: proved, {judgement.reward} {judgement.microseconds:.1f} us, {share:.0%} of light,"
            f" {'the best so far' if better else f'best {self.best:.1f} us'}, {judgement.took:.1f} s"
        )


def _counterexample(judgement: Judgement) -> Iterator[str]:
    """Where a claim fails, on one line."""
    found = judgement.counterexample
    if found is None:
        return
    parts = [
        f"{name} {value}"
        for name, value in (
            ("sizes", found.get("sizes")),
            ("block", found.get("block")),
            ("thread", found.get("thread")),
            ("element", found.get("element")),
            ("iteration", found.get("iteration")),
        )
        if value not in (None, [], {}, ())
    ]
    if parts:
        yield f"       {found.get('message', '')}: {', '.join(parts)}"


def outcome_lines(found: Found) -> Iterator[str]:
    """What a run came to."""
    best, bounds = found.best, found.problem.bounds
    passed = sum(each.microseconds is not None for each in found.judged)
    stopped = len(found.judged) - passed
    early = sum(each.microseconds is None and not each.compiled for each in found.judged)
    yield (
        f"{len(found.judged):,} candidates: {passed:,} passed, {stopped:,} were stopped, {early:,} of them before a"
        " compiler was started"
    )
    if best is None or best.microseconds is None:
        yield "nothing passed the gate"
    else:
        share, headroom = bounds.light / best.microseconds, bounds.headroom(best.microseconds)
        yield f"best: {best.name}, {best.reward} {best.microseconds:.1f} us, {share:.0%} of the speed of light"
        yield f"headroom {headroom:.0%}, bottleneck {bounds.bottleneck}"
        if best.reward == "predicted":
            yield "times are predicted by the static model: there was no GPU"
    yield f"run {found.run} of {found.journal}; go on with --resume {found.run}"
