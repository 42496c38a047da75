"""The answer cache: one SQLite file shared between runs, safe to delete at any time, and an in-process memory.

Each answer belongs to the identity of the solver that was asked, its name and version: no other solver gets it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeVar, cast

import platformdirs
from attrs import define, field

from argus.core.index import Cond, Symbol, SymbolKind
from argus.core.query import Answer, GaveUp, Query, Sat, Unsat

# Part of every key: raise it when the semantics of queries or the normal forms change.
SEMANTICS_VERSION = "2"
_MOST_ROWS = 200_000
_PATIENCE_SECONDS = 1.0
_MOST_REMEMBERED = 50_000
T = TypeVar("T")
Implication = tuple[tuple[Cond, ...], Cond]
"""Hypotheses and goal, exactly as `prove` received them."""
Remembered = dict[tuple[str, Implication], Answer]
"""Answers by the identity of the solver asked and the implication."""


def default_folder() -> Path:
    """`$ARGUS_CACHE_DIR`, else the user's cache folder."""
    chosen = os.environ.get("ARGUS_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("argus"))


@define
class Cache:
    """Unsat and Sat answers by query; GaveUp depends on the budget and is never stored.

    Disk errors never raise: a damaged file is replaced, and where the folder cannot be written the cache stays
    empty and `problem` says why. Several processes and threads may share one folder. Answers read from the file are
    unchecked: a model can be checked before use, an Unsat is believed or asked again. asked: a solver's identity.
    """

    folder: Path = field(factory=default_folder)
    problem: str = ""
    _connection: sqlite3.Connection | None = field(default=None, init=False, repr=False)
    _lock: Lock = field(factory=Lock, init=False, repr=False)
    _checked: Remembered = field(factory=dict["tuple[str, Implication]", Answer], init=False, repr=False)
    _any_model: Remembered = field(factory=dict["tuple[str, Implication]", Answer], init=False, repr=False)

    def recall(self, asked: str, implied: Implication, *, any_model: bool = False) -> Answer | None:
        """An answer that a session of this solver in this process has given, or None; never reads the disk.

        any_model: also accept a model that depends on the queries asked before.
        """
        key = asked, implied
        return self._checked.get(key) or (self._any_model.get(key) if any_model else None)

    def remember(self, asked: str, implied: Implication, answer: Answer, *, any_model: bool = False) -> None:
        """Store an answer whose model has been checked, for later sessions; GaveUp is not stored.

        The answer keeps its interned nodes alive, so that tracing a similar kernel reuses them.
        any_model: the model depends on the queries asked before.
        """
        if isinstance(answer, GaveUp):
            return
        memory = self._any_model if any_model else self._checked
        if len(memory) >= _MOST_REMEMBERED:
            memory.clear()
        memory[asked, implied] = answer

    @property
    def path(self) -> Path:
        return self.folder / "answers.sqlite3"

    def get(self, query: Query, asked: str) -> Answer | None:
        """The solver's stored answer to the query, if there is one, unchecked."""
        rows = self._guarded(lambda db: db.execute(_SELECT, (_key(query, asked),)).fetchall())
        return _decode(rows[0]) if rows else None

    def put(self, query: Query, answer: Answer, asked: str) -> None:
        """Store the solver's answer on disk; GaveUp is not stored."""
        if isinstance(answer, GaveUp):
            return
        row = (_key(query, asked), *_encode(answer))
        self._guarded(lambda db: db.execute(_INSERT, row))

    def close(self) -> None:
        """Release the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _guarded(self, use: Callable[[sqlite3.Connection], T]) -> T | None:
        if self.problem:
            return None
        with self._lock:
            try:
                return use(self._open())
            except sqlite3.OperationalError as error:
                self.problem = f"{self.path}: {error}"
            except sqlite3.DatabaseError as error:
                self._drop(error)
            except OSError as error:
                self.problem = f"{self.folder}: {error}"
        return None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            # The lock serialises use of the connection. Without fsync a crash may lose answers, which are recomputed.
            connection = sqlite3.connect(
                self.path, timeout=_PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection = connection
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute(_CREATE)
            connection.execute(_TRIM, (_MOST_ROWS,))
        return self._connection

    def _drop(self, error: sqlite3.DatabaseError) -> None:
        """Remove a damaged file; the next use creates a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            self.problem = f"{self.path}: {error}"


_CREATE = "CREATE TABLE IF NOT EXISTS answers (key TEXT NOT NULL UNIQUE, solver TEXT NOT NULL, model TEXT)"
_TRIM = "DELETE FROM answers WHERE rowid <= (SELECT max(rowid) FROM answers) - ?"
_SELECT = "SELECT solver, model FROM answers WHERE key = ?"
_INSERT = "INSERT OR REPLACE INTO answers (key, solver, model) VALUES (?, ?, ?)"


def _key(query: Query, asked: str) -> str:
    return f"{SEMANTICS_VERSION}:{asked}:{query.key}"


def _encode(answer: Unsat | Sat) -> tuple[str, str | None]:
    if isinstance(answer, Unsat):
        return answer.solver, None
    entries = [(s.name, s.kind, s.low, s.high, value) for s, value in answer.model.items()]
    return answer.solver, json.dumps(entries)


def _decode(row: tuple[str, str | None]) -> Answer | None:
    """The answer in a row; None for a row that no version of this module wrote."""
    solver, text = row
    if text is None:
        return Unsat(solver)
    try:
        entries = cast("list[tuple[str, SymbolKind, int | None, int | None, int]]", json.loads(text))
        model = {Symbol(name, kind, low, high): int(value) for name, kind, low, high, value in entries}
    except (ValueError, TypeError):
        return None
    return Sat(solver, model)
