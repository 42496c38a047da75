"""A line on the terminal that says what is being tried and how far it is, from the first second of waiting on."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager, nullcontext

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from argus.cli.screen import on_stderr
from argus.interp.progress import counted_by
from argus.verifier.progress import told_to

FIRST = 1.0
"""Seconds before anything is shown."""


class _Known(ProgressColumn):
    """A column that is empty until the number of blocks is known."""

    def __init__(self, column: ProgressColumn) -> None:
        super().__init__()
        self.column = column

    def render(self, task: Task) -> RenderableType:
        return Text() if task.total is None else self.column.render(task)


@contextmanager
def waiting(
    subject: str, console: Console | None = None, *, first: float = FIRST, bar: bool = False
) -> Generator[None]:
    """Show a spinner, the subject, what the verifier is doing, and the time; only on a terminal, gone at the end.

    In place of what the verifier is doing, a run in the interpreter has a bar: how many of the launch's blocks, or
    clusters of blocks, have run.
    first: seconds before anything is shown. bar: whether to show it.
    """
    shown = on_stderr() if console is None else console
    if not shown.is_terminal:
        yield
        return
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        _Known(BarColumn()),
        _Known(MofNCompleteColumn()),
        TimeElapsedColumn(),
        console=shown,
        transient=True,
    )
    task = progress.add_task(subject, total=None)
    counts = (
        counted_by(lambda done, total: progress.update(task, completed=done, total=total)) if bar else nullcontext()
    )
    ended = threading.Event()

    def begin() -> None:
        if not ended.wait(first):
            progress.start()
            ended.wait()
            progress.stop()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    try:
        with told_to(lambda doing: progress.update(task, description=f"{subject}: {doing}")), counts:
            yield
    finally:
        ended.set()
        thread.join()
