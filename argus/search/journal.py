"""The journal of searches: an append-only, crash-safe event log in SQLite.

Write-ahead logging allows several runs and readers to share a file. Each event is one transaction.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from attrs import define, field, frozen
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.search.events import Ended, Event, Judged, Started

T = TypeVar("T")
PATIENCE = 30.0
"""Timeout in seconds for another process's transaction."""
_PAUSE = 0.05
"""Seconds between two attempts; SQLite's own busy timeout cannot be interrupted."""
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
VERSION = 1
"""Schema version, in the file's `user_version`; 0 marks files written before versions were stored, equal to 1."""
_TROUBLE: tuple[type[BaseException], ...] = (sqlite3.Error, OSError, ValueError, ExceptionGroup, KeyError)
_COLUMNS = {"run", "number", "at", "data"}
_TABLES = f"""
begin immediate;
create table if not exists events (
    run text not null, number integer not null, at text not null default current_timestamp, data text not null,
    primary key (run, number)
) without rowid;
create trigger if not exists kept before update on events begin select raise(abort, 'events are never changed'); end;
create trigger if not exists whole before delete on events begin select raise(abort, 'events are never removed'); end;
pragma user_version = {VERSION};
commit;
"""

_CONVERTER: Any = make_converter(forbid_extra_keys=True)
configure_tagged_union(Event, _CONVERTER, tag_name="event")


def encode_event(event: Event) -> str:
    """An event as JSON."""
    return str(_CONVERTER.dumps(event, unstructure_as=Event))


def decode_event(text: str) -> Event:
    """The inverse of `encode_event`. Raises ValueError or an ExceptionGroup for any other text."""
    return cast("Event", _CONVERTER.loads(text, Event))


@frozen
class Run:
    """Summary of a run. judged: number of judgements. ended: reason, empty while it has not ended."""

    name: str
    started: Started
    judged: int
    ended: str


@define
class Journal:
    """An open journal. All methods raise ArgusError (E904) if the file is not a journal or cannot be written."""

    path: Path
    patience: float = PATIENCE
    _store: sqlite3.Connection = field(init=False)
    _known: dict[str, int] = field(factory=dict[str, int], init=False)
    """Number of events of each run that this object has read or written, to detect concurrent writers."""

    def __attrs_post_init__(self) -> None:
        with _as_diagnostics(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._store = _connected(self.path)
            try:
                if self._patiently(self._is_new):
                    self._patiently(lambda: self._store.execute("pragma journal_mode = wal"))
                    self._patiently(lambda: self._store.executescript(_TABLES))
                self._store.execute("pragma synchronous = full")
            except BaseException:
                self._store.close()
                raise

    def _is_new(self) -> bool:
        """Whether the file is empty. Raises ArgusError for another database or another version."""
        # Tables first: another process may be creating them, which it does in one transaction.
        (tables,) = self._store.execute("select count(*) from sqlite_master").fetchone()
        (version,) = self._store.execute("pragma user_version").fetchone()
        columns = {name for (_, name, *_) in self._store.execute("pragma table_info(events)")}
        if not tables:
            return True
        if columns != _COLUMNS:
            raise _unusable(self.path, "it is another kind of database", _ANOTHER)
        if version not in (0, VERSION):
            raise _unusable(self.path, f"its version is {version}, but this Argus reads {VERSION}", _OLD)
        return False

    def _patiently(self, work: Callable[[], T]) -> T:
        """Run a transaction, retrying while another process holds the lock; rolls back failed attempts."""
        until = time.monotonic() + self.patience
        while True:
            try:
                return work()
            except BaseException as problem:
                if self._store.in_transaction:
                    self._store.rollback()
                if not isinstance(problem, sqlite3.Error) or not _busy(problem) or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)

    def begin(self, started: Started) -> str:
        """Create a run with its first event; returns its name."""

        def work() -> str:
            self._store.execute("begin immediate")
            (count,) = self._store.execute("select count(distinct run) from events").fetchone()
            name = f"run-{count + 1:04}"
            self._insert(name, 0, started)
            self._store.execute("commit")
            self._known[name] = 1
            return name

        with _as_diagnostics(self.path):
            return self._patiently(work)

    def append(self, run: str, event: Event) -> None:
        """Append an event. Raises ArgusError (E904) also if another process has appended to the run meanwhile."""

        def work() -> None:
            self._store.execute("begin immediate")
            (number,) = self._store.execute("select count(*) from events where run = ?", (run,)).fetchone()
            known = self._known.get(run, number)
            if number != known:
                message = (
                    f"another process has continued `{run}` of `{self.path}`: it has {number} events, expected {known}"
                )
                raise ArgusError(Diagnostic("E904", "error", message, help="resume it when that process has ended"))
            self._insert(run, number, event)
            self._store.execute("commit")
            self._known[run] = number + 1

        with _as_diagnostics(self.path):
            self._patiently(work)

    @contextmanager
    def held(self, run: str) -> Generator[None]:
        """Hold an exclusive lock on a run. Raises ArgusError (E904) if another process holds it.

        This is an `flock` on a file next to the journal, which the system releases when the process ends.
        """
        path = self.path.with_name(f"{self.path.name}-{run}.lock")
        with _as_diagnostics(self.path):
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _locked(number):
                advice = "wait until it has ended, or start another run"
                raise _unusable(self.path, f"another process is running `{run}`", advice)
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink()
        finally:
            os.close(number)

    def _insert(self, run: str, number: int, event: Event) -> None:
        data = encode_event(event)
        self._store.execute("insert into events (run, number, data) values (?, ?, ?)", (run, number, data))

    def events(self, run: str) -> tuple[Event, ...]:
        """The events of a run, in order. Raises ArgusError (E904) also if there is no such run."""
        with _as_diagnostics(self.path), closing(self._store.cursor()) as cursor:
            rows = cursor.execute("select data from events where run = ? order by number", (run,)).fetchall()
            found = tuple(decode_event(data) for (data,) in rows)
        if not found:
            known = ", ".join(each.name for each in self.runs()) or "none"
            message = f"`{self.path}` has no run `{run}`, found {known}"
            raise ArgusError(Diagnostic("E904", "error", message, help="resume one of these, or start a new run"))
        self._known[run] = len(found)
        return found

    def begun(self, run: str) -> Started:
        """The first event of a run. Raises ArgusError (E904) also if there is no such run."""
        return _first(self.path, run, self.events(run)[0])

    def runs(self) -> tuple[Run, ...]:
        """All runs, oldest first."""
        return tuple(self._runs())

    def _runs(self) -> Iterator[Run]:
        with _as_diagnostics(self.path), closing(self._store.cursor()) as cursor:
            query = "select run, data from events where number = 0 order by run"
            for name, data in cursor.execute(query).fetchall():
                started = _first(self.path, name, decode_event(data))
                # Not by SQL: a utility may be infinite, which SQLite before 3.42 does not take for JSON.
                rows = cursor.execute("select data from events where run = ? order by number", (name,)).fetchall()
                every = [decode_event(data) for (data,) in rows]
                last = every[-1]
                ended = last.reason if isinstance(last, Ended) else ""
                yield Run(name, started, sum(isinstance(each, Judged) for each in every), ended)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@frozen
class _AsDiagnostics:
    """Context manager that converts database and file errors to diagnostics."""

    path: Path

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(value, _TROUBLE):
            raise _unusable(self.path, *_reason(value)) from None


def _first(path: Path, run: str, event: Event) -> Started:
    if isinstance(event, Started):
        return event
    raise _unusable(path, f"the first event of `{run}` is not `Started`", _ANOTHER)


def _as_diagnostics(path: Path) -> _AsDiagnostics:
    return _AsDiagnostics(path)


def _unusable(path: Path, reason: str, advice: str) -> ArgusError:
    message = f"`{path}` cannot be used as a journal: {reason}"
    return ArgusError(Diagnostic("E904", "error", message, help=advice))


_ANOTHER = "name another file with --journal"
_OLD = "read it with the version that wrote it, or name another file with --journal"


def _reason(problem: BaseException) -> tuple[str, str]:
    """Why the file is unusable, in one line, and the repair."""
    room = "name another file with --journal, or free disk space and allow writing there"
    match problem:
        case ExceptionGroup() | KeyError():
            return "it has an event that this version cannot read", _OLD
        case sqlite3.Error() if _busy(problem):
            return (
                f"another process has locked it for more than {PATIENCE:g} s",
                "end the process that locks it, or name another file with --journal",
            )
        case sqlite3.Error() if _code(problem) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return "it is no SQLite database, or a damaged one", _ANOTHER
        case OSError():
            return problem.strerror or str(problem), room
        case _:
            return str(problem), room


def _busy(problem: sqlite3.Error) -> bool:
    return _code(problem) in _BUSY


def _code(problem: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 if the error has none."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF


def _connected(path: Path) -> sqlite3.Connection:
    """Open the file; read-only media are opened as immutable if there is no write-ahead log."""
    store = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        store.execute("pragma user_version")
    except sqlite3.OperationalError as problem:
        log = path.with_name(f"{path.name}-wal")
        if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN or not path.is_file() or log.exists():
            return store
        store.close()
        return sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, isolation_level=None)
    return store


def _locked(number: int) -> bool:
    """Try to lock the file. False also if its previous owner has removed it meanwhile."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return bool(os.fstat(number).st_nlink)
