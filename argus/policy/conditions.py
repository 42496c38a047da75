"""When a technique gains: a decision list over a problem's sizes, from recorded pairs, tried on shapes left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from attrs import field, frozen

MOST_RULES = 2
"""More rules than this fit single shapes."""


@frozen
class Case:
    """What recorded pairs say of a technique at a shape. ratio: time without over with, their geometric mean."""

    shape: str
    features: Mapping[str, float] = field(converter=dict[str, float])
    ratio: float

    @property
    def gains(self) -> bool:
        return self.ratio > 1


@frozen
class Rule:
    """Problems whose feature is below `limit`, or not below it (`below` false), are answered by `gains`."""

    feature: str
    below: bool
    limit: float
    gains: bool

    def holds(self, case: Case) -> bool:
        return (case.features[self.feature] < self.limit) == self.below

    def __str__(self) -> str:
        told = f"{self.feature} {'<' if self.below else '>='} {self.limit:,.0f}"
        return f"{told}: {'gains' if self.gains else 'loses'}"


@frozen
class DecisionList:
    """The first rule that holds answers; if none does, `otherwise`."""

    rules: tuple[Rule, ...]
    otherwise: bool

    def gains(self, case: Case) -> bool:
        return next((rule.gains for rule in self.rules if rule.holds(case)), self.otherwise)

    def counter_examples(self, cases: Sequence[Case]) -> tuple[Case, ...]:
        """The cases that it answers wrongly."""
        return tuple(each for each in cases if self.gains(each) != each.gains)

    def __str__(self) -> str:
        last = "gains" if self.otherwise else "loses"
        return "; ".join([*map(str, self.rules), f"else {last}" if self.rules else f"always {last}"])


@frozen
class Condition:
    """What is learnt of a technique. held_out: right answers at shapes left out, of lists learnt from the other shapes.
    constant: right answers of the more frequent answer, which is chosen with all shapes known.

    learnt: a list with rules only if lists are right at more shapes left out than the constant answer.
    """

    learnt: DecisionList
    cases: int
    held_out: int
    constant: int
    counter_examples: tuple[Case, ...]


def learn_condition(cases: Sequence[Case]) -> Condition:
    """cases: one for each shape, at least two."""
    folds = [(each, [other for other in cases if other is not each]) for each in cases]
    held_out = sum(learn_list(others).gains(each) == each.gains for each, others in folds)
    constant = sum(_majority(cases) == each.gains for each in cases)
    learnt = learn_list(cases) if held_out > constant else DecisionList((), _majority(cases))
    return Condition(learnt, len(cases), held_out, constant, learnt.counter_examples(cases))


@frozen
class Validation:
    """Right answers at shapes that nothing was learnt or chosen from.

    right: of `learn_condition` of the other shapes, which chooses between lists and the constant answer by them alone.
    constant: of the more frequent answer of the other shapes.
    """

    right: int
    constant: int

    @property
    def confirmed(self) -> bool:
        """Whether conditions are right at more shapes than the constant answer."""
        return self.right > self.constant


def validate_condition(cases: Sequence[Case]) -> Validation:
    """Each shape is left out of all that `learn_condition` does, whose own count has chosen its answer.

    cases: one for each shape, at least three.
    """
    folds = [(each, [other for other in cases if other is not each]) for each in cases]
    right = sum(learn_condition(others).learnt.gains(each) == each.gains for each, others in folds)
    return Validation(right, sum(_majority(others) == each.gains for each, others in folds))


def learn_list(cases: Sequence[Case]) -> DecisionList:
    """Greedily the rule that leaves the fewest wrong answers, until none leaves fewer."""
    best = DecisionList((), _majority(cases))
    for _ in range(MOST_RULES):
        better = min(_longer(best, cases), key=lambda each: len(each.counter_examples(cases)), default=best)
        if len(better.counter_examples(cases)) >= len(best.counter_examples(cases)):
            return best
        best = better
    return best


def _longer(known: DecisionList, cases: Sequence[Case]) -> Iterator[DecisionList]:
    """The list with one rule more, whose limit lies between two neighbouring values of the cases."""
    left = [each for each in cases if not any(rule.holds(each) for rule in known.rules)]
    for name in left[0].features if left else ():
        values = sorted({each.features[name] for each in left})
        for low, high in pairwise(values):
            for below in (True, False):
                for gains in (True, False):
                    rule = Rule(name, below, (low * high) ** 0.5, gains)
                    rest = [each for each in left if not rule.holds(each)]
                    yield DecisionList((*known.rules, rule), _majority(rest))


def _majority(cases: Sequence[Case]) -> bool:
    return 2 * sum(each.gains for each in cases) >= len(cases)
