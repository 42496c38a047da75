"""One process at a time goes on with a run: two would each record answers to what only one of them has proposed."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from argus.core.diagnostic import ArgusError, Diagnostic


@contextmanager
def claimed(store: Path, run: str) -> Generator[None]:
    """Hold a run of a store for as long as this lasts; a process that ends, also by a signal, holds nothing any more.

    The lock is SQLite's own, on an empty file beside the store, so that it holds wherever the store does.
    Raises ArgusError: E904 where another process, or another search of this one, holds the run.
    """
    path = store.with_name(f"{store.name}-{run}")
    with closing(sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)) as lock:
        try:
            lock.execute("begin exclusive")
        except sqlite3.Error as problem:
            message = f"`{run}` of `{store}` is under way elsewhere ({problem})"
            advice = "wait until it ends or end it, or begin a new run, which may share the journal"
            raise ArgusError(Diagnostic("E904", "error", message, help=advice)) from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
