"""Draws a progress bar below a search's output: budget used, candidates in evaluation, best time so far.

It appears only on a terminal, never in output to a file or a pipe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import assert_never

from attrs import define, field
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from argus.policy.bounds import Bounds
from argus.search.events import Asked, Asks, Ended, Judged, LastRound, Proposed, Resumed, Started, Update
from argus.search.loop import Limits

_WIDEST, _NARROWEST = 40, 8
"""Width of the bar, in columns."""
_A_SECOND = 4
_MINUTE, _HOUR = 60, 3600


@define
class Bar:
    """The state of the bar, updated by the events of a search.

    clock: time in seconds. begun: clock at creation. number: candidates evaluated. designs: size of the search space.
    at: start times of the candidates in evaluation, by name. asks: the language model being queried, and since when.
    """

    limits: Limits
    bounds: Bounds
    clock: Callable[[], float] = time.monotonic
    begun: float = field(init=False)
    number: int = 0
    designs: int = 0
    best: float | None = None
    at: dict[str, float] = field(factory=dict[str, float])
    asks: tuple[str, float] | None = None
    ended: bool = False

    def __attrs_post_init__(self) -> None:
        self.begun = self.clock()

    def update(self, event: Update) -> None:
        match event:
            case Started():
                self.designs = event.choices
            case Resumed(judged, best):
                self.number, self.best = judged, best
            case Proposed(name):
                self.at[name] = self.clock()
            case Judged(judgement):
                self.number += 1
                self.at.pop(judgement.name, None)
                times = [each for each in (self.best, judgement.microseconds) if each is not None]
                self.best = min(times, default=None)
            case Asks(model):
                self.asks = (model, self.clock())
            case Asked():
                self.asks = None
            case LastRound():
                pass
            case Ended():
                self.ended = True
            case _:
                assert_never(event)

    def shares(self) -> tuple[tuple[float, str], ...]:
        """For each limit the fraction used and its text, the most used first."""
        spent = self.clock() - self.begun
        seconds, trials = self.limits.seconds, self.limits.trials or self.designs
        found = [(spent / seconds, f"{_span(min(spent, seconds))} of {_span(seconds)}")] if seconds else []
        if trials:
            noun = "trials" if self.limits.trials else "designs"
            found.append((self.number / trials, f"{self.number:,} of {trials:,} {noun}"))
        if not seconds:
            found.append((0.0, _span(spent)))
        return tuple((min(1.0, share), words) for share, words in sorted(found, reverse=True))

    def words(self) -> tuple[str, ...]:
        """The rest of the line, the most important part first."""
        found: list[str] = []
        if self.best is not None:
            found.append(f"best {self.best:.1f} us, {self.bounds.light / self.best:.0%} of light")
        now = self.clock()
        if self.ended:
            found.append("ending")
        elif self.asks is not None:
            model, since = self.asks
            found.append(f"asking {model} {_span(now - since)}")
        elif self.at:
            name, since = next(iter(self.at.items()))
            more = f" and {len(self.at) - 1} more" if len(self.at) > 1 else ""
            found.append(f"at {name} {_span(now - since)}{more}")
        return tuple(found)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Fit into one line: drop words from the last on, then the bar."""
        shares = self.shares()
        head = ", ".join(words for _, words in shares)
        room, words = options.max_width - 1, list(self.words())
        while words and len(_line(head, words)) + _NARROWEST + 1 > room:
            words.pop()
        width = min(_WIDEST, room - len(_line(head, words)) - 1)
        if width < _NARROWEST:
            yield Text(head[: max(1, room)], no_wrap=True, end="")
            return
        bar = ProgressBar(total=1.0, completed=shares[0][0], width=width)
        shown = Text.assemble(*_segments(console, options, bar), no_wrap=True, end="")
        shown.pad_right(width - shown.cell_len)  # without colours the unfilled part is invisible
        yield shown.append(f" {_line(head, words)}")


def _segments(console: Console, options: ConsoleOptions, bar: ProgressBar) -> Generator[tuple[str, str]]:
    for each in console.render(bar, options):
        yield each.text.strip("\n"), str(each.style or "")


def _line(head: str, words: list[str]) -> str:
    return "; ".join((head, *words))


def _span(seconds: float) -> str:
    """`12 s`, `4:05` or `1:04:05`."""
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    minutes, rest = divmod(whole, _MINUTE)
    if whole < _HOUR:
        return f"{minutes}:{rest:02}"
    return f"{minutes // _MINUTE}:{minutes % _MINUTE:02}:{rest:02}"


def supports_live(console: Console) -> bool:
    """Whether the console can redraw a line: it is a real terminal, even if colour is forced for a file."""
    return console.is_terminal and not console.is_dumb_terminal and console.is_interactive and console.file.isatty()


@contextmanager
def show_bar(bar: Bar, console: Console) -> Generator[None]:
    """Show the bar below all output within the context, and remove it at the end."""
    if not supports_live(console):
        yield
        return
    with Live(bar, console=console, transient=True, refresh_per_second=_A_SECOND):
        yield
