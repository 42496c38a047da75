"""Wrong attention: forward kernels with one edit, by what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from attrs import frozen

from argus.kernels.attention import attention_64
from argus.kernels.decode import FAMILIES as DECODE
from argus.kernels.schedules import attention as problem
from argus.kernels.schedules import attention_hopper as schedule
from argus.kernels.schedules import decode
from argus.kernels.windowed_attention import windowed_64
from argus.language import ProgramTemplate, Template
from tests.kernels.test_decode import TWINS as OF_DECODE
from tests.kernels.twins import Edit


@frozen
class Twin:
    """A kernel with one edit of a module's text. found: the invariants of which one refutes it.

    Without any, none is known to: it is not proved.
    """

    kernel: Template | ProgramTemplate
    config: str
    module: ModuleType
    edit: Edit
    found: frozenset[str] = frozenset()


def _problem(config: str, old: str, new: str, *found: str) -> Twin:
    return Twin(attention_64, config, problem, (old, new), frozenset(found))


def _schedule(config: str, old: str, new: str, *found: str) -> Twin:
    return Twin(attention_64, config, schedule, (old, new), frozenset(found))


def _window(module: ModuleType, config: str, old: str, new: str, *found: str) -> Twin:
    return Twin(windowed_64, config, module, (old, new), frozenset(found))


def _decode(config: str, old: str, new: str) -> Twin:
    return Twin(DECODE["torch.bfloat16"][128], config, decode, (old, new))


_HEADS, _SUMS = ("I1", "I2", "I4", "I26", "I39"), ("I3", "I25", "I39")

FORWARD: Mapping[str, Twin] = {
    "mask off by one": _problem("causal", "(t <= last) & below", "(t <= last + 1) & below", *_SUMS),
    "mask of one key more": _problem("causal", "(t <= last) & below", "(t < last) & below", *_SUMS),
    "mask without the end": _problem("full", "below, last = t < self.keys", "below, last = t >= 0", *_SUMS),
    "masked scores of 0": _problem("full", ", x, -inf)", ", x, 0.0)", "I39"),
    "a block too few is masked": _problem(
        "causal", "self.visible(first) // keys", "ceil_div(self.visible(first), keys)", *_SUMS
    ),
    "the last block is not masked": _schedule("full", "end - 1, masked=True", "end - 1, masked=False", "I39"),
    "another head": _problem("full", "self.K[b, g]", "self.K[b, h % self.K.shape[1]]", *_HEADS),
    "values of another head": _problem("full", "self.V[b, g]", "self.V[b, 0 * h]", *_HEADS),
    "values of another sequence": _problem("full", "self.V[b, g]", "self.V[0 * b, g]", "I24"),
    "values from the other end": _schedule(
        "full", "head.V.tile((cfg.bn, width), (n, 0))", "head.V.tile((cfg.bn, width), (end - 1 - n, 0))", "I39"
    ),
    "keys of the next block": _schedule(
        "full", "copy(head.K.tile((cfg.bn, width), (n, 0))", "copy(head.K.tile((cfg.bn, width), (n + 1, 0))", "I4"
    ),
    "queries of the first tile": _schedule("full", "(i, 0)), slot.q", "(0 * i, 0)), slot.q", "I4"),
    "queries of another warpgroup": _schedule(
        "full", "(self.number, 0))", "(cfg.warpgroups - 1 - self.number, 0))", "I4"
    ),
    "stored in rows of another warpgroup": _schedule(
        "full", "cfg.warpgroups * i + self.number", "cfg.warpgroups * (i + 1) - 1 - self.number", "I4"
    ),
    "log-sum-exp of the first head": _problem("full", "self.LSE[b, h]", "self.LSE[b, 0 * h]", "I39"),
    "output of the first sequence": _problem("full", "self.O[b, h]", "self.O[0 * b, h]", "I39"),
    "the last tile left out": _problem(
        "full", "return ceil_div(queries, rows), heads", "return queries // rows, heads", "I39"
    ),
    "no rescale": _schedule("full", "self.out[:] = self.out * rescale", "self.out[:] = self.out * 1.0", "I23", "I39"),
    "sum without its rescale": _problem("full", "rows.sums * rescale + weights", "rows.sums + weights", "I23", "I39"),
    "rescaled the other way": _problem("full", "(rows.high - guard) * c", "(guard - rows.high) * c", "I23", "I39"),
    "rescaled without the scale": _problem("full", "exp2((rows.high - guard) * c)", "exp2(rows.high - guard)", "I39"),
    "scale of the maximum left out": _problem("full", "else high * -self.scale", "else -high", "I39"),
    "scale squared": _problem(
        "full", "fma(scores, self.scale, most)", "fma(scores, self.scale * self.scale, most)", "I39"
    ),
    "maximum not kept": _problem("full", "        rows.high[:] = now\n", "", "I23", "I39"),
    "log-sum-exp without the maximum": _problem("full", "else most)) * _LN_2", "else 0.0)) * _LN_2", "I39"),
    "log-sum-exp in base 2": _problem("full", "else most)) * _LN_2", "else most))", "I39"),
    "twice the values": _problem("full", "found = reciprocal(", "found = 2.0 * reciprocal(", "I39"),
    "one block less": _schedule("full", "else end - 1) - 1, -1", "else end - 1) - 1, 0", *_SUMS),
    "one block less is loaded": _schedule(
        "full", "loop(end - 1, start - 1, step=-1)", "loop(end - 1, start, step=-1)", "I9"
    ),
    "early release": _schedule(
        "full",
        "        wgmma.wait(0)\n        self.rings.v.release()\n",
        "        self.rings.v.release()\n        wgmma.wait(0)\n",
        "I10",
    ),
    "early release of keys": _schedule(
        "full",
        "        wgmma.wait(1)  # the scores are ready; the other product still reads the weights\n"
        "        self.rings.k.release()\n",
        "        self.rings.k.release()\n        wgmma.wait(1)\n",
    ),
    "weights replaced while they are read": _schedule(
        "full", "            sync()\n        wgmma.wait(0)\n", "            sync()\n        wgmma.wait(1)\n", "I11"
    ),
    "the last values left out": _schedule(
        "full",
        "        mma(self.pv, self.out, self.weights, rings.v.wait().v)  # of the first block\n",
        "        rings.v.wait()\n",
        "I39",
    ),
    "a key more to the left": _window(
        problem,
        "window",
        "(t >= q + self.offset - self.window[0])",
        "(t >= q + self.offset - self.window[0] - 1)",
        *_SUMS,
    ),
    "a key more to the right": _window(problem, "window", "else (t <= last)", "else (t <= last + 1)", *_SUMS),
    "keys from the first block": _window(
        schedule,
        "window",
        "copy(head.K.tile((cfg.bn, width), (n, 0))",
        "copy(head.K.tile((cfg.bn, width), (n - start, 0))",
        "I24",
        *_HEADS,
    ),
    "values from the first block": _window(
        schedule,
        "capped",
        "head.V.tile((cfg.bn, width), (n, 0))",
        "head.V.tile((cfg.bn, width), (n - start, 0))",
        "I24",
        *_HEADS,
    ),
    "blocks from the last row's first key": _window(
        problem, "window", "self.first(first) // keys", "self.first(first + queries - 1) // keys", "I9"
    ),
    "a key less to the left": _window(
        problem,
        "window",
        "(t >= q + self.offset - self.window[0])",
        "(t > q + self.offset - self.window[0])",
        *_SUMS,
    ),
    "a key less to the right": _window(problem, "window", "else (t <= last)", "else (t < last)", *_SUMS),
    "the first block skipped unless all of it is seen": _window(
        problem, "window", "self.first(first) // keys", "ceil_div(self.first(first), keys)", *_SUMS
    ),
    "no rescale in a window": _window(
        schedule, "window", "self.out[:] = self.out * rescale", "self.out[:] = self.out * 1.0"
    ),
    "capped after the mask": _window(problem, "capped", ", x, -inf)", ", x, -1.0)", *_SUMS),
    "the last block not capped": _window(
        schedule,
        "capped",
        "self._softmax(own, end - 1, masked=True)",
        "self._softmax(_Tile(own.seen, own.row0, own.q, own.rows, None), end - 1, masked=True)",
        "I23",
        "I39",
    ),
    "capped log-sum-exp without the maximum": _window(
        problem, "capped", "else most)) * _LN_2", "else 0.0)) * _LN_2", "I39"
    ),
    "capped log-sum-exp in base 2": _window(problem, "capped", "else most)) * _LN_2", "else most))", "I39"),
    **{f"decoding, `{old.strip()}`": _decode(config, old, new) for old, (new, config) in OF_DECODE.items()},
}
"""Each is refuted by one of the invariants that it names, or not proved."""
