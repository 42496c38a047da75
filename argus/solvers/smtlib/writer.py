"""Writes the steps of a lowered query, sharing equal steps, quotients, bits and array elements."""

from __future__ import annotations

from attrs import define, field

from argus.core.index import Symbol
from argus.solvers.smtlib.form import AtMost, Choice, Equal, Number, Opposite, Product, Some, Step, Total, Variable


class InexpressibleError(Exception):
    """A construct without a first-order form; `lower` and `export` return it as `Inexpressible`."""


@define
class Writer:
    """The steps written so far; equal steps are written once."""

    steps: list[Step] = field(factory=list[Step])
    asserted: list[int] = field(factory=list[int])
    symbols: list[tuple[Symbol, int]] = field(factory=list[tuple[Symbol, int]])
    read: list[tuple[str, tuple[int, ...], int]] = field(factory=list[tuple[str, tuple[int, ...], int]])
    _known: dict[Step, int] = field(factory=dict[Step, int])
    _quotients: dict[tuple[int, int], int] = field(factory=dict[tuple[int, int], int])
    _bits: dict[tuple[int, int], tuple[int, ...]] = field(factory=dict[tuple[int, int], tuple[int, ...]])
    _elements: dict[tuple[str, str, int], dict[tuple[int, ...], int]] = field(
        factory=dict[tuple[str, str, int], dict[tuple[int, ...], int]]
    )

    def write(self, step: Step) -> int:
        """The position of the step."""
        position = self._known.setdefault(step, len(self.steps))
        if position == len(self.steps):
            self.steps.append(step)
        return position

    def number(self, value: int) -> int:
        return self.write(Number(value))

    def fresh(self) -> int:
        return self.write(Variable(len(self.steps)))

    def total(self, *terms: tuple[int, int], constant: int = 0) -> int:
        if len(terms) == 1 and terms[0][1] == 1 and constant == 0:
            return terms[0][0]
        return self.write(Total(terms, constant))

    def confine(self, value: int, low: int | None, high: int | None) -> None:
        """Assert `low <= value <= high`."""
        if low is not None:
            self.asserted.append(self.write(AtMost(self.number(low), value)))
        if high is not None:
            self.asserted.append(self.write(AtMost(value, self.number(high))))

    def symbol(self, symbol: Symbol) -> int:
        position = self.fresh()
        self.symbols.append((symbol, position))
        self.confine(position, symbol.low, symbol.high)
        return position

    def product(self, left: int, right: int) -> int:
        for number, other in ((left, right), (right, left)):
            step = self.steps[number]
            if isinstance(step, Number):
                return self.total((other, step.value))
        return self.write(Product(left, right))

    def minimum(self, left: int, right: int) -> int:
        return self.write(Choice(self.write(AtMost(left, right)), left, right))

    def maximum(self, left: int, right: int) -> int:
        return self.write(Choice(self.write(AtMost(left, right)), right, left))

    def quotient(self, numerator: int, divisor: int) -> int:
        """The q of `numerator = divisor*q + r`, `0 <= r < divisor`."""
        found = self._quotients.get((numerator, divisor))
        if found is not None:
            return found
        quotient = self._quotients[numerator, divisor] = self.fresh()
        rest = self.total((numerator, 1), (self.product(divisor, quotient), -1))
        self.confine(rest, 0, None)
        self.asserted.append(self.write(AtMost(self.total((rest, 1), constant=1), divisor)))
        return quotient

    def remainder(self, numerator: int, divisor: int) -> int:
        quotient = self.quotient(numerator, divisor)
        return self.total((numerator, 1), (self.product(divisor, quotient), -1))

    def element(self, kind: str, name: str, at: tuple[int, ...]) -> int:
        """A variable for an array element, asserted equal to each earlier one of the array where the indices agree."""
        earlier = self._elements.setdefault((kind, name, len(at)), {})
        if at in earlier:
            return earlier[at]
        value = self.fresh()
        if kind == "read":
            self.read.append((name, at, value))
        self.asserted += [self.agreement(at, value, *other) for other in earlier.items()]
        earlier[at] = value
        return value

    def agreement(self, at: tuple[int, ...], value: int, other_at: tuple[int, ...], other: int) -> int:
        """That two elements of one array are equal where their indices are."""
        differs = [self.write(Opposite(self.write(Equal(a, b)))) for a, b in zip(at, other_at, strict=True)]
        return self.write(Some((*differs, self.write(Equal(value, other)))))

    def bits(self, value: int, width: int) -> tuple[int, ...]:
        """For each of the lowest `width` bits of value, the condition that it is one."""
        found = self._bits.get((value, width))
        if found is not None:
            return found
        digits = [self.fresh() for _ in range(width)]
        for digit in digits:
            self.confine(digit, 0, 1)
        weighed = [(digit, 1 << i) for i, digit in enumerate(digits)]
        whole = self.total(*weighed, (self.fresh(), 1 << width))
        self.asserted.append(self.write(Equal(value, whole)))
        one = self.number(1)
        conditions = self._bits[value, width] = tuple(self.write(Equal(digit, one)) for digit in digits)
        return conditions

    def remember_bits(self, value: int, bits: tuple[int, ...]) -> None:
        """Make `bits(value, len(bits))` return these conditions."""
        self._bits[value, len(bits)] = bits
