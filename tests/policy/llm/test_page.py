"""docs/planner-llm.md agrees with the code."""

import re
from pathlib import Path

import attrs

from argus.policy.llm.budget import MODELS
from argus.policy.llm.prompt import MOST_BYTES
from argus.policy.llm.settings import DEFAULT_MODEL, Settings

PAGE = (Path(__file__).parents[3] / "docs" / "planner-llm.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_each_setting_is_documented_with_its_default() -> None:
    found = {row[0].strip("`"): row[1] for row in rows("Settings")}

    assert list(found) == [each.name for each in attrs.fields(Settings)]
    assert found["model"] == f"`{DEFAULT_MODEL}`"
    for name in ("max_tokens", "timeout", "patience", "attempts", "repairs", "every", "spread"):
        told = re.sub(r"[^\d.]", "", found[name])
        assert float(told) == getattr(Settings(), name)


def test_each_price_is_documented() -> None:
    told = {row[0].strip("`"): (*map(float, row[1:5]), row[5] == "yes") for row in rows("What it costs")}
    known = {
        name: (each.price.input, each.price.output, each.price.written, each.price.read, each.forced)
        for name, each in MODELS.items()
    }

    assert told == known


def test_the_bound_of_a_request_is_documented() -> None:
    assert f"{MOST_BYTES:,} bytes" in PAGE
