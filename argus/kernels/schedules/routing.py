"""The schedule of routing weights: a warp, or a part of one, has a token's scores, and checks the chosen experts.

The chosen experts are integers that the kernel is given. A weight is a number only if they are the ones of the largest
scores, in descending order; so the proof does not rest on what chose them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from attrs import frozen

from argus.kernels.rows.formulas import LOG2_E
from argus.kernels.schedules.routing_claims import Scoring, expert_of, weight_of
from argus.kernels.schedules.rows import Block, Chunks, Rows, RowsCdna3
from argus.language import (
    TV,
    Bool,
    Fragment,
    Int,
    IntLike,
    Layout,
    Tensor,
    assert_equals,
    assume,
    copy,
    exp2,
    f32,
    maximum,
    minimum,
    reciprocal,
    replicated,
    where,
)

MOST = 8
"""The most experts of a token."""
EXPERTS = 512


@frozen
class Routed(Rows):
    """Rows of scores, in registers, of which at least 8 threads share one."""


@frozen
class RoutedCdna3(RowsCdna3):
    """The same on MI300X."""


@frozen
class Routing:
    """W[t, j] is the weight of expert ids[t, j] for token t, where X holds a token's scores in a row.

    M: if given, only experts of which it is positive may be chosen, of (tokens, experts).
    scoring: "softmax" over all experts, or the sigmoid of each. renormalised: weights are divided by the sum of the
    token's. B: the chosen have the largest sums of a sigmoid and their expert's element of B. F: a factor, of one
    element.

    Where the chosen are not those of the largest scores, in descending order and of equal scores by their numbers, all
    weights of the token are infinite.
    """

    X: Tensor
    ids: Tensor
    F: Tensor
    W: Tensor
    scoring: Scoring
    renormalised: bool
    B: Tensor | None = None
    M: Tensor | None = None

    def __attrs_post_init__(self) -> None:
        (rows, experts), choices = self.X.shape, self.ids.shape[1]
        assume(rows < 1 << 28, experts >= 1, experts <= EXPERTS, choices >= 1, choices <= MOST)

    def column(self, r: Int, j: Int) -> Int:
        """The expert of a token's j-th choice."""
        return expert_of(self.ids, self.X.shape[1], r, j)

    def weigh(self, cfg: Rows) -> None:
        """The kernel's body."""
        (rows, experts), choices = self.X.shape, self.ids.shape[1]
        block = Block(cfg, rows, experts)
        chosen = Chosen(block, rows, choices)
        all_scores = block.rows(self.X, -inf)
        keys = all_scores if self.B is None else self._biased(block, all_scores, self.B)
        picked, own = self._keys(chosen, 0)
        _, after = self._keys(chosen, 1)
        number = chosen.gather(self.ids, lambda r, j: (r, j), 0)
        order, order_after = (chosen.order(self.ids, step, experts) for step in (0, 1))
        lowest = where(chosen.are(own), own, inf).min(1)
        last = block.of_rows(self.ids.gather((rows,), lambda r: (minimum(r, rows - 1), choices - 1)))

        may = None if self.M is None else block.rows(self.M)

        def ahead(chunk: IntLike) -> Fragment:
            """Which experts come before the last chosen one, and itself."""
            key = keys(chunk)
            place = where(key == lowest, block.tile(chunk) * block.width + key.index[1], inf)
            counts = block.within(key, chunk) & ((key > lowest) | (place <= last))
            return where(counts if may is None else counts & (may(chunk) > 0.0), 1.0, 0.0)

        places = block.sum(ahead)
        falls = (own > after) | ((own == after) & (order < order_after))
        rises = where(chosen.are(own, 1), where(falls, 0.0, 1.0), 0.0).sum(1)
        known = (number >= 0) & (number < experts)
        if self.M is not None:
            known &= chosen.gather(self.M, lambda r, j: (r, self.column(r, j)), 0) > 0.0
        outside = where(chosen.are(own), where(known, 0.0, 1.0), 0.0).sum(1)
        weights = self._weights(block, chosen, picked, all_scores)
        factor = block.load(self.F[0], replicated(cfg.threads))
        chosen.store(where((places == choices) & (rises == 0) & (outside == 0), weights * factor, inf), self.W)
        given = self.X, self.ids, self.F, self.scoring, self.B, self.M
        assert_equals(self.W, weight_of(*given, renormalised=self.renormalised))

    @staticmethod
    def _biased(block: Block, all_scores: Chunks, biases: Tensor) -> Chunks:
        held = block.columns(biases)

        def keys(chunk: IntLike) -> Fragment:
            return sigmoid(all_scores(chunk)) + held(chunk)

        return keys

    def _keys(self, chosen: Chosen, step: int) -> tuple[Fragment, Fragment]:
        """The scores of the chosen, or of those after them, and what they are compared by."""
        scores = chosen.gather(self.X, lambda r, j: (r, self.column(r, j)), step)
        if self.B is None:
            return scores, scores
        return scores, sigmoid(scores) + chosen.gather(self.B, lambda r, j: (self.column(r, j),), step)

    def _weights(self, block: Block, chosen: Chosen, picked: Fragment, all_scores: Chunks) -> Fragment:
        if self.scoring == "sigmoid":
            weights = sigmoid(picked)
            if not self.renormalised:
                return weights
        else:
            top = where(chosen.are(picked), picked, -inf).max(1)
            weights = exp2((picked - top) * LOG2_E)
            if not self.renormalised:
                highest = block.of_held(all_scores, maximum)
                sums = block.sum(lambda chunk: exp2((all_scores(chunk) - highest) * LOG2_E))
                return exp2((picked - highest) * LOG2_E) / sums
        return weights / where(chosen.are(weights), weights, 0.0).sum(1)


def sigmoid(x: Fragment) -> Fragment:
    """1 / (1 + exp(-x)), of the base 2^LOG2_E."""
    return reciprocal(exp2(x * -LOG2_E) + 1.0)


class Chosen:
    """The choices of a block's tokens: thread j of eight has the j-th, and all threads of a token take part."""

    def __init__(self, block: Block, rows: Int, choices: Int) -> None:
        self.block, self.rows, self.choices = block, rows, choices
        cfg = block.cfg
        threads = Layout((MOST, cfg.lanes // MOST, cfg.rows), (cfg.rows, 0, 1))
        self.layout = TV(threads, Layout((1,), (0,)), (cfg.rows, MOST))

    def are(self, values: Fragment, step: int = 0) -> Bool:
        """Whether there is a choice so many after each."""
        return values.index[1] < self.choices - step

    def load(self, view: Tensor) -> Fragment:
        """What a view has for each choice, in its own type."""
        cfg = self.block.cfg
        return self.block.load(view.tile((cfg.rows, MOST), (self.block.at, 0)), self.layout, edge=0)

    def order(self, ids: Tensor, step: int, experts: Int) -> Fragment:
        """The expert of each choice, or of that so many after, or the nearest to it: f32 has all of these integers."""
        return maximum(minimum(self._near(ids, lambda r, j: (r, j), step), experts - 1), 0).to(f32)

    def gather(self, source: Tensor, place: Callable[[Int, Int], tuple[IntLike, ...]], step: int) -> Fragment:
        """The element of `source` at the place of each choice, or of that so many after; any beyond the last."""
        return self._near(source, place, step).to(f32)

    def _near(self, source: Tensor, place: Callable[[Int, Int], tuple[IntLike, ...]], step: int) -> Fragment:
        def near(r: Int, j: Int) -> tuple[IntLike, ...]:
            return place(minimum(r, self.rows - 1), minimum(j + step, self.choices - 1))

        return self.load(source.gather((self.rows, self.choices), near))

    def store(self, values: Fragment, target: Tensor) -> None:
        """Store one number for each choice."""
        cfg = self.block.cfg
        copy(values, target.tile((cfg.rows, MOST), (self.block.at, 0)), edge=0)
