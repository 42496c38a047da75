from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from argus.core.diagnostic import ArgusError
from argus.policy.llm.answer import Answer, told
from argus.policy.llm.card import SCHEMA
from argus.policy.llm.planner import drafts, offered, refreshed
from argus.policy.llm.record import from_data, to_data
from argus.policy.llm.reply import Faulty, Kernel, Option, Reply, Trouble, Use, read
from argus.policy.llm.texts import sentence, unseen, within
from tests.policy.llm.searches import OPTIONS, PLANNER, proposal, start

NAMES = frozenset(each.name for each in OPTIONS)
TECHNIQUES = frozenset({"wide", "staged", "broken"})

TEXTS = st.text(st.characters(codec=None), max_size=40) | st.sampled_from([*sorted(NAMES), "wide", "d999", "../x", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
CONFIDENCES = st.floats(0, 1)
LISTS = st.lists(TEXTS, max_size=3)


def either(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What is meant, or anything."""
    return values | VALUES


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "confidence": either(CONFIDENCES),
    "reason": either(TEXTS),
    "option": either(TEXTS),
    "technique": either(TEXTS),
    "kernel": either(TEXTS),
    "invariants": either(LISTS),
    "needs": either(LISTS),
    "proved": VALUES,
}
NEARLY: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional=FIELDS)
PROPER: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"confidence": CONFIDENCES, "reason": TEXTS},
    optional={"option": TEXTS, "technique": TEXTS, "kernel": TEXTS, "invariants": LISTS, "needs": LISTS},
)


def single(confidence: float, reason: str, kind: str, text: str) -> dict[str, Any]:
    return {"confidence": confidence, "reason": reason, kind: text}


def encoded(data: object) -> bytes:
    return json.dumps(data).encode("utf-8")


KINDS = st.sampled_from(["option", "technique", "kernel"])
SINGLE = st.builds(single, CONFIDENCES, TEXTS, KINDS, TEXTS)
PROPOSALS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(SINGLE | PROPER | NEARLY, max_size=6)
REPLIES: st.SearchStrategy[Any] = VALUES | st.fixed_dictionaries(
    {"proposals": either(PROPOSALS)}, optional={"lessons": either(LISTS), "verdict": VALUES}
)
BODIES = st.binary(max_size=200) | st.builds(encoded, REPLIES)


@given(REPLIES)
def test_no_reply_raises_or_leaves_the_open_options(data: object) -> None:
    found = read(data, NAMES, TECHNIQUES)
    if isinstance(found, Faulty):
        assert found.faults
        assert all(not unseen(line) for line in found.faults)
        return
    assert found.proposals
    for each in found.proposals:
        assert 0 <= each.confidence <= 1
        assert TECHNIQUES.issuperset(each.needs)
        match each.target:
            case Option(name=name):
                assert name in NAMES
            case Use(technique=technique):
                assert technique in TECHNIQUES
            case Kernel(text=text):
                assert not unseen(text)
                text.encode("utf-8")
    state = refreshed(start(), found)
    assert {each.choice.name for each in PLANNER.propose(state)} == NAMES
    more = {each.choice.name for each in PLANNER.propose(offered(state))}
    assert more == NAMES | {each.name for each in drafts(state)}


@given(REPLIES)
def test_a_reply_is_recorded_without_loss(data: object) -> None:
    found = read(data, NAMES, TECHNIQUES)
    if isinstance(found, Reply):
        assert from_data(json.loads(json.dumps(to_data(found)))) == found


@given(st.lists(PROPER | SINGLE, min_size=1, max_size=5))
def test_what_the_schema_allows_is_of_the_right_form(proposals: list[dict[str, object]]) -> None:
    data = {"proposals": proposals}
    # The stubs of jsonschema leave the type of what is validated open.
    validator: Any = Draft202012Validator(SCHEMA)
    assert validator.is_valid(data)
    found = read(data, NAMES, TECHNIQUES)
    assert isinstance(found, Reply) or all(line.startswith("proposal ") for line in found.faults)


@given(NEARLY)
def test_what_is_read_is_what_the_schema_allows(found: dict[str, object]) -> None:
    data = {"proposals": [found]}
    if isinstance(read(data, NAMES, TECHNIQUES), Reply):
        # A field that is null counts as absent, which the schema does not say.
        present = {"proposals": [{name: value for name, value in found.items() if value is not None}]}
        validator: Any = Draft202012Validator(SCHEMA)
        assert validator.is_valid(present)


@given(BODIES)
def test_no_body_raises(body: bytes) -> None:
    assert isinstance(told(body), Answer)


@given(VALUES, VALUES, VALUES)
def test_no_message_raises(content: object, stop: object, usage: object) -> None:
    fields = {"content": [{"type": "tool_use", "name": content, "input": content}], "stop_reason": stop, "usage": usage}
    assert isinstance(told(json.dumps(fields).encode("utf-8")), Answer)


@pytest.mark.parametrize("depth", [10, 400, 900, 5000])
def test_no_nesting_raises(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    for body in (nested, f'{{"content": [{{"type": "tool_use", "name": {nested}}}]}}', f'{{"usage": {nested}}}'):
        assert isinstance(told(body.encode()), Answer)
    assert depth < sys.getrecursionlimit() or told(nested.encode()).found == Faulty(("the answer is no JSON",))


def test_equal_texts_have_equal_names_whatever_their_ends_of_lines() -> None:
    data = {"proposals": [proposal(kernel="a\r\nb\r\n"), proposal(0.9, kernel="a\nb\n"), proposal(kernel="other")]}
    found = read(data, NAMES, TECHNIQUES)

    assert isinstance(found, Reply)
    targets = [each.target for each in found.proposals]
    assert Kernel("a\nb\n") in targets
    assert len({target.name for target in targets if isinstance(target, Kernel)}) == 2
    assert found.dropped == ("proposal 1: it repeats an earlier one",)


def test_a_long_list_is_read_up_to_a_bound() -> None:
    data = {"proposals": [proposal(kernel=f"x = {number}\n") for number in range(40)]}
    found = read(data, NAMES, TECHNIQUES)

    assert isinstance(found, Reply)
    assert len(found.proposals) == 16
    assert "at most 16" in found.dropped[0]


@pytest.mark.parametrize(
    "data", [None, [], "x", {}, {"kind": "reply"}, {"kind": "other"}, {"kind": "trouble", "code": 1}]
)
def test_a_damaged_record_is_told(data: object) -> None:
    with pytest.raises(ArgusError) as raised:
        from_data(data)

    assert raised.value.diagnostic.code == "E928"


def test_trouble_is_recorded_too() -> None:
    found = Trouble("E923", "no answer", "try later", lasting=False, faults=("cut off",))

    assert from_data(json.loads(json.dumps(to_data(found)))) == found


@given(st.text(st.characters(codec=None)), st.integers(1, 50))
def test_a_sentence_is_short_and_seen(text: str, most: int) -> None:
    found = sentence(text, most)

    assert len(found) <= most
    assert not unseen(found)
    assert "\n" not in found


@given(st.text(st.characters(codec=None)), st.integers(80, 200))
def test_a_cut_text_has_so_many_bytes(text: str, most: int) -> None:
    assert len(within(text, most).encode("utf-8")) <= most
