"""Files by which processes share out work."""

from __future__ import annotations

from pathlib import Path

from argus.runtime.processes.tickets import Tickets


def test_a_ticket_is_taken_once_and_read_when_it_is_written(tmp_path: Path) -> None:
    tickets = Tickets(tmp_path)
    assert [tickets.take("0-1.2"), tickets.take("0-1.2"), tickets.take("1-1.2")] == [True, False, True]
    tickets.give_back("1-1.2")
    assert tickets.take("1-1.2")
    assert tickets.read("ahead-1.2") is None
    tickets.write("ahead-1.2", {"seconds": 2.5})
    assert tickets.read("ahead-1.2") == {"seconds": 2.5}
