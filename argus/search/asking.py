"""A question to a model that runs beside the search: nobody waits for its answer."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Thread

from attrs import define, field

from argus.policy.llm.budget import Spent
from argus.policy.llm.record import Response
from argus.policy.llm.tasks import Task
from argus.search.llm_client import Meter


@define
class PendingQuestion:
    """A question on its way, in a thread that is abandoned if the search ends first.

    ask: sends it and returns the response; it keeps the meter up to date. arrived: set once there is an answer.
    """

    task: Task
    ask: Callable[[Meter], Response]
    meter: Meter = field(factory=Meter)
    arrived: Event = field(factory=Event, init=False)
    _box: SimpleQueue[Response | BaseException] = field(factory=SimpleQueue[Response | BaseException], init=False)

    def start(self) -> PendingQuestion:
        """Send it."""
        Thread(target=self._work, daemon=True).start()
        return self

    def _work(self) -> None:
        try:
            self._box.put(self.ask(self.meter))
        except BaseException as problem:  # noqa: BLE001 reason: raised again by `answer`
            self._box.put(problem)
        self.arrived.set()

    def answer(self, seconds: float | None = 0.0) -> Response | None:
        """The response, or None if there is none within these seconds; None: wait until there is one.

        Raises what `ask` raises.
        """
        try:
            found = self._box.get(timeout=seconds) if seconds != 0 else self._box.get_nowait()
        except Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        return found

    def abandon(self) -> Spent:
        """Send no further call; returns the cost, with the worst case of a call in progress."""
        return self.meter.close()
