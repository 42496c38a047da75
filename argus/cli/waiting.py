"""A line on the terminal that says what is being tried, from the first second of waiting on."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from argus.cli.screen import on_stderr
from argus.verifier.progress import told_to

FIRST = 1.0
"""Seconds before anything is shown."""


@contextmanager
def waiting(subject: str, console: Console | None = None, *, first: float = FIRST) -> Generator[None]:
    """Show a spinner, the subject, what the verifier is doing, and the time; only on a terminal, gone at the end.

    first: seconds before anything is shown.
    """
    shown = on_stderr() if console is None else console
    if not shown.is_terminal:
        yield
        return
    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=shown, transient=True
    )
    task = progress.add_task(subject)
    ended = threading.Event()

    def begin() -> None:
        if not ended.wait(first):
            progress.start()
            ended.wait()
            progress.stop()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    try:
        with told_to(lambda doing: progress.update(task, description=f"{subject}: {doing}")):
            yield
    finally:
        ended.set()
        thread.join()
