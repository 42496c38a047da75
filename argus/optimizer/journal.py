"""The journal of searches: an append-only store in SQLite, which loses nothing that was written before a crash.

Write-ahead logging lets several runs share a store, and readers look on. Each event is a transaction of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from attrs import define, field, frozen
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.optimizer.events import Event, Started

_PATIENCE = 30.0
"""Seconds in which another run's transaction ends."""
_TABLES = """
create table if not exists events (
    run text not null, number integer not null, at text not null default current_timestamp, data text not null,
    primary key (run, number)
) without rowid;
create trigger if not exists kept before update on events begin select raise(abort, 'events are never changed'); end;
create trigger if not exists whole before delete on events begin select raise(abort, 'events are never removed'); end;
"""

_CONVERTER: Any = make_converter(forbid_extra_keys=True)
configure_tagged_union(Event, _CONVERTER, tag_name="event")


def written(event: Event) -> str:
    """An event as JSON."""
    return str(_CONVERTER.dumps(event, unstructure_as=Event))


def read(text: str) -> Event:
    """The event of a text that `written` gave. Raises ValueError or an ExceptionGroup for another text."""
    return cast("Event", _CONVERTER.loads(text, Event))


@frozen
class Run:
    """One run of a store. judged: candidates that have been through the gate."""

    name: str
    started: Started
    judged: int
    ended: str


@define
class Journal:
    """Raises ArgusError (E904) from each method where the file is no store, or cannot be written."""

    path: Path
    _store: sqlite3.Connection = field(init=False)
    _known: dict[str, int] = field(factory=dict[str, int], init=False)
    """Events of a run that this journal has read or written: no others may come between."""

    def __attrs_post_init__(self) -> None:
        with _told(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._store = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            self._store.execute("pragma journal_mode = wal")
            self._store.execute("pragma synchronous = full")
            self._store.executescript(_TABLES)

    def begin(self, started: Started) -> str:
        """A new run with its first event; its name."""
        with _told(self.path), self._transaction():
            (count,) = self._store.execute("select count(distinct run) from events").fetchone()
            name = f"run-{count + 1:04}"
            self._insert(name, 0, started)
        self._known[name] = 1
        return name

    def append(self, run: str, event: Event) -> None:
        """Raises ArgusError (E904) also where somebody else has gone on with the run since it was read here."""
        with _told(self.path), self._transaction():
            (number,) = self._store.execute("select count(*) from events where run = ?", (run,)).fetchone()
            known = self._known.get(run, number)
            if number != known:
                message = f"`{run}` of `{self.path}` went on elsewhere: it has {number} events, {known} are known here"
                raise ArgusError(Diagnostic("E904", "error", message, help="resume it once it has ended"))
            self._insert(run, number, event)
        self._known[run] = number + 1

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """All that is done within, or nothing, also where it is interrupted."""
        try:
            self._store.execute("begin immediate")
            yield
            self._store.execute("commit")
        except BaseException:
            if self._store.in_transaction:
                self._store.execute("rollback")
            raise

    def _insert(self, run: str, number: int, event: Event) -> None:
        data = written(event)
        self._store.execute("insert into events (run, number, data) values (?, ?, ?)", (run, number, data))

    def events(self, run: str) -> tuple[Event, ...]:
        """Of a run, in order. Raises ArgusError (E904) also where there is no such run."""
        with _told(self.path), closing(self._store.cursor()) as cursor:
            rows = cursor.execute("select data from events where run = ? order by number", (run,)).fetchall()
            found = tuple(read(data) for (data,) in rows)
        if not found:
            known = ", ".join(each.name for each in self.runs()) or "none"
            message = f"`{self.path}` has no run `{run}`, found {known}"
            raise ArgusError(Diagnostic("E904", "error", message, help="resume one of these, or start a new run"))
        self._known[run] = len(found)
        return found

    def begun(self, run: str) -> Started:
        """How a run began. Raises ArgusError (E904) also where there is no such run."""
        return _first(self.path, run, self.events(run)[0])

    def runs(self) -> tuple[Run, ...]:
        """All runs, the first begun first."""
        return tuple(self._runs())

    def _runs(self) -> Iterator[Run]:
        with _told(self.path), closing(self._store.cursor()) as cursor:
            query = "select run, data from events where number = 0 order by run"
            for name, data in cursor.execute(query).fetchall():
                started = _first(self.path, name, read(data))
                kinds = cursor.execute(
                    "select json_extract(data, '$.event'), json_extract(data, '$.reason') from events"
                    " where run = ? order by number",
                    (name,),
                ).fetchall()
                last = kinds[-1]
                ended = str(last[1]) if last[0] == "Ended" else ""
                yield Run(name, started, sum(kind == "Judged" for kind, _ in kinds), ended)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@frozen
class _Told:
    """What goes wrong with a store, told as a diagnostic."""

    path: Path

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(value, sqlite3.Error | OSError | ValueError | ExceptionGroup) and not isinstance(
            value, ArgusError
        ):
            message = f"`{self.path}` does not serve as a journal: {value}"
            advice = "name another file with --journal, or make room and allow writing there"
            raise ArgusError(Diagnostic("E904", "error", message, help=advice)) from value


def _first(path: Path, run: str, event: Event) -> Started:
    if isinstance(event, Started):
        return event
    message = f"`{path}` does not serve as a journal: `{run}` does not say how it began"
    raise ArgusError(Diagnostic("E904", "error", message, help="name another file with --journal"))


def _told(path: Path) -> _Told:
    return _Told(path)
