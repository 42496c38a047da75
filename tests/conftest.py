"""Golden texts: `golden(text)` compares with tests/golden/<file>-<test>.txt, `--update-golden` rewrites it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tests.tiers import Tier

GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected texts with what the tests produce"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected texts are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def tier(request: pytest.FixtureRequest) -> Tier:
    """The tier that runs, for a test that does less in the default one."""
    return cast("Tier", request.config.getoption("--tier"))


@pytest.fixture
def golden(request: pytest.FixtureRequest, update_golden: bool) -> Golden:
    """Compare a text with this test's golden file; the text must not hold what changes from run to run."""
    node: pytest.Item = request.node
    stem = f"{node.path.stem}-{node.name}"
    path = GOLDEN / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', stem).strip('-')}.txt"

    def compare(text: str) -> None:
        if update_golden:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"no golden text {path.name}: run this test with --update-golden, and read what it wrote")
        assert text == path.read_text(encoding="utf-8"), f"differs from {path.name}; `make golden` accepts the new text"

    return compare
