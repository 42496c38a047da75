"""What decode attention claims: each output as a formula of queries, pages, table and lengths."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from attrs import frozen

from argus.kernels.schedules.attention import LEAST_SCALE
from argus.kernels.schedules.decode import Cache, Decode, seen
from argus.language import (
    Bool,
    Int,
    Tensor,
    Value,
    assert_equals,
    ceil_div,
    elements,
    exp2,
    log,
    maximum,
    scalar,
    total,
)


@frozen
class Claims:
    """The outputs of sequences of at most as many keys as the table has slots for.

    Keys are counted in runs of `run` keys of one page: blocks of bn, where a page has more.
    """

    Q: Tensor
    cache: Cache
    scale: Tensor
    cfg: Decode

    @property
    def run(self) -> int:
        return min(self.cfg.bn, self.cfg.page)

    def state(self, O: Tensor, LSE: Tensor) -> None:  # noqa: E741 reason: the output's name in every paper
        """O is the mean of the values of the keys that a token sees, by the exponentials of their scores; LSE is the
        logarithm of the sum of these. Of a token that sees no key, 0 and -inf.
        """

        def mean(b: Int, g: Int, r: Int, s: Int, e: Int) -> Value:
            def one(first: Int, m: Int) -> Value:
                return self._weight(b, g, r, s, first, m) * self._element(self.cache.V, b, g, first, m, e)

            return self._over_keys(b, s, one) / self._weights(b, g, r, s)

        def logarithm(b: Int, g: Int, r: Int, s: Int) -> Value:
            return log(self._weights(b, g, r, s))

        # ruff: noqa: ARG005 reason: coordinates
        assert_equals(O, mean, where=lambda b, g, r, s, e: self._sees(b, s))
        assert_equals(LSE, logarithm, where=lambda b, g, r, s: self._sees(b, s))
        assert_equals(O, lambda b, g, r, s, e: 0, where=lambda b, g, r, s, e: self._sees_none(b, s))
        assert_equals(LSE, lambda b, g, r, s: -inf, where=lambda b, g, r, s: self._sees_none(b, s))

    def _sees(self, b: Int, s: Int) -> Bool:
        """Whether a token sees keys, of a sequence that the table has slots for."""
        return (self._seen(b, s) >= 1) & (scalar(self.cache.lengths[b]) <= self.cache.table.shape[1] * self.cfg.page)

    def _sees_none(self, b: Int, s: Int) -> Bool:
        return (self._seen(b, s) <= 0) & (scalar(self.cache.lengths[b]) <= self.cache.table.shape[1] * self.cfg.page)

    def _seen(self, b: Int, s: Int) -> Int:
        return seen(self.cfg, scalar(self.cache.lengths[b]), self.Q.shape[3], s)

    def _weights(self, b: Int, g: Int, r: Int, s: Int) -> Value:
        return self._over_keys(b, s, lambda first, m: self._weight(b, g, r, s, first, m))

    def _weight(self, b: Int, g: Int, r: Int, s: Int, first: Int, m: Int) -> Value:
        q, scale = elements(self.Q), elements(self.scale)

        def product(d: Int) -> Value:
            return q(b, g, r, s, d) * self._element(self.cache.K, b, g, first, m, d)

        return exp2(total(product, over=self.Q.shape[4]) * maximum(scale(0), LEAST_SCALE))

    def _element(self, pages: Tensor, b: Int, g: Int, first: Int, m: Int, d: Int) -> Value:
        """An element of key first + m, in a run that begins with key `first`."""
        page = self.cfg.page
        return elements(pages)(self.cache.page(b, first // page), g, first % page + m, d)

    def _over_keys(self, b: Int, s: Int, of: Callable[[Int, Int], Value]) -> Value:
        """The total over the keys that a token sees, of the first key of each run and the key's number in it."""
        bn, run = self.cfg.bn, self.run
        count, blocks = self._seen(b, s), ceil_div(scalar(self.cache.lengths[b]), bn)

        def whole(i: Int, m: Int) -> Value:
            return of(i * bn, m)

        def of_run(i: Int, n: Int, m: Int) -> Value:
            return of(i * bn + n * run, m)

        def sees(i: Int, m: Int) -> Bool:
            return i * bn + m < count

        def sees_of_run(i: Int, n: Int, m: Int) -> Bool:
            return i * bn + n * run + m < count

        if bn == run:
            return total(whole, over=(blocks, bn), where=sees)
        return total(of_run, over=(blocks, bn // run, run), where=sees_of_run)
