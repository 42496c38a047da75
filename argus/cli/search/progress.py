"""One line at the foot of a terminal: how much of its budget a search has used, what it is at, and its best so far.

It is drawn on terminals alone; where lines go to a file or a pipe, nothing of it does.
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
from argus.search.events import Asked, Asks, Ended, Judged, Proposed, Resumed, Started, Update
from argus.search.loop import Limits

_WIDEST, _NARROWEST = 40, 8
"""Columns of the bar itself."""
_A_SECOND = 4
_MINUTE, _HOUR = 60, 3600


@define
class Bar:
    """What it says follows from the events of a search. clock: seconds; begun: what it showed at first.

    number: candidates judged. designs: that there are to judge. at: under way, and since when. asks: of which model,
    and since when.
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

    def saw(self, event: Update) -> None:
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
            case Ended():
                self.ended = True
            case _:
                assert_never(event)

    def shares(self) -> tuple[tuple[float, str], ...]:
        """Of each limit what is used of it, from 0 to 1, and in words; the nearest to its end first."""
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
        """What else there is to say, the most important first."""
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
        """In one line, however narrow: words are left out from the last, then the bar."""
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
        shown.pad_right(width - shown.cell_len)  # without colours nothing marks the rest
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


def shown_on(console: Console) -> bool:
    """Whether lines can be drawn over: a terminal that is one, and not a file of which somebody says so."""
    return console.is_terminal and not console.is_dumb_terminal and console.is_interactive and console.file.isatty()


@contextmanager
def drawn(bar: Bar, console: Console) -> Generator[None]:
    """The bar below whatever is printed meanwhile; gone afterwards."""
    if not shown_on(console):
        yield
        return
    with Live(bar, console=console, transient=True, refresh_per_second=_A_SECOND):
        yield
