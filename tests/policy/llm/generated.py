"""Strategies for model replies: valid, nearly valid and arbitrary."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.policy.llm.searches import OPTIONS

NAMES = frozenset(each.name for each in OPTIONS)
TECHNIQUES = frozenset({"wide", "staged", "broken"})

TEXTS = st.text(st.characters(codec=None), max_size=40) | st.sampled_from([*sorted(NAMES), "wide", "d999", "../x", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
CONFIDENCES = st.floats(0, 1)
SPEEDUPS = st.floats(0.01, 1000)
KNOBS = st.dictionaries(TEXTS | st.sampled_from(["stages", "wide"]), st.integers() | st.booleans() | TEXTS, max_size=3)
LISTS = st.lists(TEXTS, max_size=3)


def either(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A valid value or an arbitrary one."""
    return values | VALUES


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "confidence": either(CONFIDENCES),
    "reason": either(TEXTS),
    "option": either(TEXTS),
    "technique": either(TEXTS),
    "knobs": either(KNOBS),
    "kernel": either(TEXTS),
    "invariants": either(LISTS),
    "needs": either(LISTS),
    "write": either(TEXTS),
    "invariant": either(TEXTS),
    "context": either(TEXTS),
    "speedup": either(SPEEDUPS),
    "proved": VALUES,
}
NEARLY: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional=FIELDS)
PROPER: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"confidence": CONFIDENCES, "reason": TEXTS},
    optional={
        "option": TEXTS,
        "technique": TEXTS,
        "knobs": KNOBS,
        "kernel": TEXTS,
        "invariants": LISTS,
        "needs": LISTS,
        "write": TEXTS,
        "invariant": TEXTS,
        "context": TEXTS,
        "speedup": SPEEDUPS,
    },
)


def single(confidence: float, reason: str, kind: str, text: str) -> dict[str, Any]:
    return {"confidence": confidence, "reason": reason, kind: text}


def encoded(data: object) -> bytes:
    return json.dumps(data).encode("utf-8")


KINDS = st.sampled_from(["option", "technique", "kernel", "write"])
SINGLE = st.builds(single, CONFIDENCES, TEXTS, KINDS, TEXTS)
PROPOSALS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(SINGLE | PROPER | NEARLY, max_size=6)
REPLIES: st.SearchStrategy[Any] = VALUES | st.fixed_dictionaries(
    {"proposals": either(PROPOSALS)}, optional={"lessons": either(LISTS), "verdict": VALUES}
)
BODIES = st.binary(max_size=200) | st.builds(encoded, REPLIES)
