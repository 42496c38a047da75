from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from argus.core.diagnostic import ArgusError
from argus.policy.llm.answer import Answer, parse_answer
from argus.policy.llm.instructions import SCHEMA
from argus.policy.llm.parse_reply import parse_proposals
from argus.policy.llm.planner import untried_kernels, with_kernels_as_options, with_response
from argus.policy.llm.record import from_data, to_data
from argus.policy.llm.reply import Faulty, Kernel, Knob, Knobs, Option, Proposal, Reply, Trouble, Use, Write
from argus.policy.llm.texts import invisible_characters, printable_line, truncated
from tests.policy.llm.generated import BODIES, NAMES, NEARLY, PROPER, REPLIES, SINGLE, TECHNIQUES, VALUES
from tests.policy.llm.searches import OPTIONS, PLANNER, proposal, start


@pytest.mark.share(3)
@given(REPLIES)
def test_no_reply_raises_or_leaves_the_open_options(data: object) -> None:
    found = parse_proposals(data, OPTIONS)
    if isinstance(found, Faulty):
        assert found.faults
        assert all(not invisible_characters(line) for line in found.faults)
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
            case Knobs() as knobs:
                assert any(map(knobs.fit, OPTIONS))
            case Kernel(text=text):
                assert not invisible_characters(text)
                text.encode("utf-8")
            case Write(plan=plan):
                assert not invisible_characters(plan)
    state = with_response(start(), found)
    assert {each.choice.name for each in PLANNER.propose(state)} == NAMES
    more = {each.choice.name for each in PLANNER.propose(with_kernels_as_options(state))}
    assert more == NAMES | {each.name for each in untried_kernels(state)}


@given(REPLIES)
def test_a_reply_is_recorded_without_loss(data: object) -> None:
    found = parse_proposals(data, OPTIONS)
    if isinstance(found, Reply):
        assert from_data(json.loads(json.dumps(to_data(found)))) == found


@given(st.lists(PROPER | SINGLE, min_size=1, max_size=5))
def test_data_allowed_by_the_schema_is_well_formed(proposals: list[dict[str, object]]) -> None:
    data = {"proposals": proposals}
    # The stubs of jsonschema leave the type of what is validated open.
    validator: Any = Draft202012Validator(SCHEMA)
    assert validator.is_valid(data)
    found = parse_proposals(data, OPTIONS)
    assert isinstance(found, Reply) or all(line.startswith("proposal ") for line in found.faults)


@given(NEARLY)
def test_parsed_data_is_allowed_by_the_schema(found: dict[str, object]) -> None:
    data = {"proposals": [found]}
    if isinstance(parse_proposals(data, OPTIONS), Reply):
        # A field that is null counts as absent, which the schema does not say.
        present = {"proposals": [{name: value for name, value in found.items() if value is not None}]}
        validator: Any = Draft202012Validator(SCHEMA)
        assert validator.is_valid(present)


@given(BODIES)
def test_no_body_raises(body: bytes) -> None:
    assert isinstance(parse_answer(body), Answer)


@given(VALUES, VALUES, VALUES)
def test_no_message_raises(content: object, stop: object, usage: object) -> None:
    fields = {"content": [{"type": "tool_use", "name": content, "input": content}], "stop_reason": stop, "usage": usage}
    assert isinstance(parse_answer(json.dumps(fields).encode("utf-8")), Answer)


@pytest.mark.parametrize("depth", [10, 400, 900, 5000])
def test_no_nesting_raises(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    for body in (nested, f'{{"content": [{{"type": "tool_use", "name": {nested}}}]}}', f'{{"usage": {nested}}}'):
        assert isinstance(parse_answer(body.encode()), Answer)
    assert depth < sys.getrecursionlimit() or parse_answer(nested.encode()).found == Faulty(("the answer is not JSON",))


def test_equal_texts_have_equal_names_whatever_their_ends_of_lines() -> None:
    data = {"proposals": [proposal(kernel="a\r\nb\r\n"), proposal(0.9, kernel="a\nb\n"), proposal(kernel="other")]}
    found = parse_proposals(data, OPTIONS)

    assert isinstance(found, Reply)
    targets = [each.target for each in found.proposals]
    assert Kernel("a\nb\n") in targets
    assert len({target.name for target in targets if isinstance(target, Kernel)}) == 2
    assert found.dropped == ("proposal 1: it repeats an earlier one",)


def test_knobs_are_matched_by_value_and_type() -> None:
    data = {
        "proposals": [
            proposal(knobs={"stages": 4, "wide": True}),
            proposal(0.9, knobs={"stages": 4, "wide": 1}),
            proposal(0.9, knobs={"stages": 5}),
            proposal(0.9, knobs={"depth": 4}),
            proposal(0.2, knobs={}),
        ]
    }
    found = parse_proposals(data, OPTIONS)

    assert isinstance(found, Reply)
    assert [each.target for each in found.proposals] == [Knobs((("stages", 4), ("wide", True))), Knobs(())]
    assert [each.split(":")[0] for each in found.dropped] == ["proposal 1", "proposal 2", "proposal 3"]
    assert PLANNER.propose(with_response(start(), found))[0].choice.knobs == (("stages", 4), ("wide", True))


@pytest.mark.parametrize(
    ("knobs", "said"),
    [({"stages": 4.0}, "for stages"), ({"stages": [4]}, "for stages"), ([], "an object, found a list"), ("x", "text")],
)
def test_knobs_of_another_form_are_faulty(knobs: object, said: str) -> None:
    found = parse_proposals({"proposals": [proposal(knobs=knobs)]}, OPTIONS)

    assert isinstance(found, Faulty)
    assert said in found.faults[0]


def test_a_long_list_is_read_up_to_a_bound() -> None:
    data = {"proposals": [proposal(kernel=f"x = {number}\n") for number in range(40)]}
    found = parse_proposals(data, OPTIONS)

    assert isinstance(found, Reply)
    assert len(found.proposals) == 16
    assert "at most 16" in found.dropped[0]


@pytest.mark.parametrize(
    "data", [None, [], "x", {}, {"kind": "reply"}, {"kind": "other"}, {"kind": "trouble", "code": 1}]
)
def test_a_damaged_record_is_reported(data: object) -> None:
    with pytest.raises(ArgusError) as raised:
        from_data(data)

    assert raised.value.diagnostic.code == "E928"


@pytest.mark.parametrize("value", [4, True, "Hopper"])
def test_knobs_are_recorded_by_value_and_type(value: Knob) -> None:
    found = Reply((Proposal(Knobs((("stages", 4), ("other", value))), 0.5),))
    again = from_data(json.loads(json.dumps(to_data(found))))

    assert again == found
    assert isinstance(again, Reply)
    target = again.proposals[0].target
    assert isinstance(target, Knobs)
    assert type(target.values[1][1]) is type(value)


@pytest.mark.parametrize("value", [4.5, None, [4]])
def test_a_record_of_knobs_of_another_type_is_damaged(value: object) -> None:
    target = {"kind": "knobs", "values": [["stages", value]]}
    data = {"kind": "reply", "proposals": [{"target": target, "confidence": 0.5}]}

    with pytest.raises(ArgusError, match="E928"):
        from_data(data)


def test_trouble_is_recorded_too() -> None:
    found = Trouble("E923", "no answer", "try later", lasting=False, faults=("cut off",))

    assert from_data(json.loads(json.dumps(to_data(found)))) == found


@given(st.text(st.characters(codec=None)), st.integers(1, 50))
def test_a_sentence_is_short_and_seen(text: str, most: int) -> None:
    found = printable_line(text, most)

    assert len(found) <= most
    assert not invisible_characters(found)
    assert "\n" not in found


@given(st.text(st.characters(codec=None)), st.integers(80, 200))
def test_a_truncated_text_has_at_most_its_limit_of_bytes(text: str, most: int) -> None:
    assert len(truncated(text, most).encode("utf-8")) <= most
