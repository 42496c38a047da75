"""The progress bar: its text, its width, and its absence outside a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from argus.cli.search.progress import Bar, show_bar, supports_live
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Asks, Ended, Judged, Proposed, Resumed, Started, Update
from argus.search.loop import Limits
from argus.search.problems.problem import problem_of

BOUNDS = problem_of("gemm:4096x4096x4096", "sm_90a").bounds
STARTED = Started("gemm:4096x4096x4096:bf16", "sm_90a", "bandit", 0, BOUNDS.light, "tensor", 200)
FAST = Judged(Judgement("fast", "timed", "timing", microseconds=2 * BOUNDS.light))


class Clock:
    """Seconds, as a test says."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def bar(limits: Limits, seconds: float, *events: Update) -> Bar:
    """After so many seconds, in which these events happened at once."""
    clock = Clock()
    made = Bar(limits, BOUNDS, clock)
    for event in events:
        made.update(event)
    clock.now += seconds
    return made


def line(made: Bar, width: int, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    Console(file=file, width=width, force_terminal=True, color_system=None).print(made)
    file.flush()
    buffer = file.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(encoding)


def words(shares: Sequence[tuple[float, str]]) -> list[str]:
    return [each for _, each in shares]


@pytest.mark.parametrize(
    ("seconds", "share", "expected"),
    [
        (300.0, 0.5, ["5:00 of 10:00", "1 of 50 trials"]),
        (6.0, 0.02, ["1 of 50 trials", "6 s of 10:00"]),
        (9999.0, 1.0, ["10:00 of 10:00", "1 of 50 trials"]),
    ],
)
def test_the_nearest_limit_comes_first(seconds: float, share: float, expected: list[str]) -> None:
    found = bar(Limits(600.0, 50), seconds, STARTED, FAST).shares()

    assert words(found) == expected
    assert found[0][0] == share


def test_without_a_limit_the_designs_are_counted() -> None:
    assert words(bar(Limits(), 4000.0, STARTED, FAST).shares()) == ["1 of 200 designs", "1:06:40"]


def test_the_bar_shows_the_current_candidate_and_the_best() -> None:
    begun = (STARTED, Proposed("fast", (), 0.5, "bandit"), Proposed("next", (), 0.5, "bandit"))

    assert bar(Limits(60.0), 12.0, *begun).words() == ("at fast 12 s and 1 more",)
    assert bar(Limits(60.0), 12.0, *begun, FAST).words() == (
        f"best {2 * BOUNDS.light:.1f} us, 50% of light",
        "at next 12 s",
    )
    assert bar(Limits(60.0), 75.0, STARTED, Asks("m")).words() == ("asking m 1:15",)
    assert bar(Limits(60.0), 75.0, STARTED, Asks("m"), Asked("m", {}, 1, 0.1)).words() == ()
    assert bar(Limits(60.0), 1.0, *begun, Ended("interrupted")).words() == ("ending",)


def test_a_resumed_run_continues_the_count() -> None:
    found = bar(Limits(None, 10), 1.0, Resumed(4, 3 * BOUNDS.light))

    assert words(found.shares()) == ["4 of 10 trials", "1 s"]
    assert found.words() == (f"best {3 * BOUNDS.light:.1f} us, 33% of light",)


@pytest.mark.parametrize("width", [1, 5, 12, 20, 30, 40, 60, 80, 120, 300])
def test_the_bar_is_one_line_in_any_terminal_width(width: int) -> None:
    shown = line(bar(Limits(600.0, 50), 300.0, STARTED, FAST, Proposed("n" * 70, (), 0.1, "bandit")), width)

    assert "\n" not in shown
    assert 0 < len(shown) <= max(1, width - 1)
    assert ("5:00 of 10:00" in shown) == (width >= 20)
    assert ("━" in shown) == (width >= 40)
    assert ("at nnn" in shown) == (width >= 300)


def test_half_of_the_bar_is_full_at_half_of_the_budget() -> None:
    assert line(bar(Limits(600.0), 300.0, STARTED), 200) == "━" * 20 + " " * 20 + " 5:00 of 10:00, 0 of 200 designs"


def test_an_encoding_without_the_bar_characters_gets_ascii() -> None:
    made = bar(Limits(600.0), 300.0, STARTED, FAST)

    assert "-----" in line(made, 120, "cp1252")
    assert line(made, 120, "cp1252").isascii()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def console(file: io.StringIO, **environment: str) -> Console:
    return Console(file=file, _environ={"TERM": "xterm", "COLUMNS": "100", **environment})


def test_only_a_terminal_has_a_bar() -> None:
    assert supports_live(console(Terminal()))
    assert supports_live(console(Terminal(), NO_COLOR="1"))
    assert not supports_live(console(Terminal(), TERM="dumb"))
    assert not supports_live(console(Terminal(), TTY_INTERACTIVE="0"))
    assert not supports_live(console(io.StringIO()))
    assert not supports_live(console(io.StringIO(), FORCE_COLOR="1"))


def test_the_bar_is_removed_and_the_cursor_restored() -> None:
    file = Terminal()
    shown = console(file, NO_COLOR="1")
    with show_bar(bar(Limits(60.0), 30.0, STARTED), shown):
        shown.print("a line above")
    written = file.getvalue()

    assert "a line above\n" in written
    assert "30 s of 1:00" in written
    assert written.index("\x1b[?25l") < written.index("a line above") < written.rindex("\x1b[?25h")
    assert written.endswith("\x1b[1A\x1b[2K")


def test_nothing_is_written_to_a_file_or_pipe() -> None:
    file = io.StringIO()
    with show_bar(bar(Limits(60.0), 30.0, STARTED), console(file, FORCE_COLOR="1")):
        pass

    assert file.getvalue() == ""
