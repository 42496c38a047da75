"""Interrupts are raised in interruptible blocks only."""

import os
import signal
import threading
from collections.abc import Generator

import pytest

from argus.search.interrupts import ONE_PRESS, Interrupts


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def press(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def usual() -> Generator[None]:
    """Restore default signal handlers, even if the test runner ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_for_a_place_that_may_be_left() -> None:
    done: list[str] = []
    with Interrupts() as interrupts:
        interrupts.hold()
        press()
        done.append("a line of the journal is whole")
        with pytest.raises(KeyboardInterrupt), interrupts.may_leave():
            done.append("not reached")

    assert done == ["a line of the journal is whole"]


def test_within_may_leave_an_interrupt_is_raised_immediately() -> None:
    done: list[str] = []
    with Interrupts() as interrupts:
        interrupts.hold()
        with pytest.raises(KeyboardInterrupt):
            _pressed(interrupts, done)
        with interrupts.may_leave():
            done.append("once is enough")

    assert done == ["once is enough"]


def _pressed(interrupts: Interrupts, done: list[str]) -> None:
    with interrupts.may_leave():
        press()
        done.append("not reached")


@pytest.mark.parametrize(("later", "again"), [(ONE_PRESS / 2, False), (ONE_PRESS * 2, True)])
def test_two_presses_in_quick_succession_are_one(later: float, again: bool) -> None:
    clock = Clock()
    raised = 0
    with Interrupts(clock=clock) as interrupts:
        interrupts.hold()
        for _ in range(2):
            press()
            clock.now += later
            try:
                with interrupts.may_leave():
                    pass
            except KeyboardInterrupt:
                raised += 1

    assert raised == 1 + again


def test_signal_handlers_are_restored() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            press()
        interrupts.hold()
        press()
    with pytest.raises(KeyboardInterrupt):
        press()


def test_an_ending_program_is_interrupted_once_also_by_sigterm() -> None:
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    with Interrupts(ending=True) as interrupts:
        interrupts.hold()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    with Interrupts(ending=True) as interrupts:
        interrupts.hold()
        with pytest.raises(KeyboardInterrupt), interrupts.may_leave():
            press(signal.SIGTERM)
    after = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    press(signal.SIGTERM)
    press()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)

    assert set(after.values()) == {signal.SIG_IGN}


def test_foreign_signal_handlers_are_left_in_place() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts() as interrupts:
        interrupts.hold()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        press()
        with interrupts.may_leave():
            pass
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_defer_nothing() -> None:
    found: list[object] = []

    def work() -> None:
        with Interrupts() as interrupts:
            interrupts.hold()
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert found == [signal.default_int_handler]
