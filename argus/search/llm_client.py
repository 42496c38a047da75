"""Client of a language model: the only module that talks to an endpoint of the Messages API.

Requests are built and answers parsed in `argus.policy.llm`, which is pure. Answers are never executed here: a kernel's
text is data for the gate.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, cast

import numpy as np
from attrs import define, evolve, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.llm.answer import ToolInput, parse_answer
from argus.policy.llm.author_roles import LoweringRole, RepairRole
from argus.policy.llm.budget import NOTHING, Spent, cost_of, refusal, worst_case
from argus.policy.llm.failures import Endpoint, FailedCall, to_trouble
from argus.policy.llm.memory import Memory
from argus.policy.llm.planner import Llm
from argus.policy.llm.planner_role import PlannerRole
from argus.policy.llm.prompt import request, size
from argus.policy.llm.record import Response, from_data, to_data
from argus.policy.llm.reply import Faulty, Reply, Trouble
from argus.policy.llm.retries import parse_retry_after, retry_delay
from argus.policy.llm.roles import Question, Role, Roles
from argus.policy.llm.settings import Settings, wrong_address
from argus.policy.llm.tasks import Plan, Task
from argus.policy.llm.texts import redacted
from argus.policy.llm.view import View
from argus.policy.planner import State

MOST_BYTES = 4 << 20
"""Size limit of an answer, far above that of any useful answer."""
_CONNECTING = 10.0
_SECRET = 8
"""Least length of a key to redact: endpoints without authentication get a dummy word."""
_GRACE = 0.5
"""Extra seconds for a call to end by its own timeout before its thread is abandoned."""
_BARE = View()
_PLAN = Plan()
ROLES: Roles = {"plan": PlannerRole(), "lower": LoweringRole(), "repair": RepairRole()}
"""The request types of a search; replace one in a copy."""


@frozen
class Client:
    """An open client. raw: client object of the package `anthropic` (`module`); transport: its HTTP package."""

    settings: Settings
    place: Endpoint
    raw: Any
    module: Any
    transport: Any
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def close(self) -> None:
        self.raw.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _TooLongError(Exception):
    """An answer exceeds its time or size limit."""


@define
class Meter:
    """The cost of a question so far, with the worst case of a call in progress; read by another thread."""

    spent: Spent = field(default=NOTHING)
    _closed: bool = field(default=False, init=False)
    _lock: Lock = field(factory=Lock, init=False)

    def charge(self, spent: Spent) -> bool:
        """Set the cost before a call; False if nobody waits any more, so that it must not be sent."""
        with self._lock:
            if not self._closed:
                self.spent = spent
            return not self._closed

    def close(self) -> Spent:
        """The cost, after which no further call is sent."""
        with self._lock:
            self._closed = True
            return self.spent


def connect(
    settings: Settings,
    environment: Mapping[str, str] | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Client:
    """Create a client of the endpoint; sends nothing. Close it, or use it in a `with`.

    environment: os.environ by default. Raises ArgusError: E920 without the package, E921 without a key, E927 for an
    invalid address.
    """
    named = os.environ if environment is None else environment
    module, transport = _modules()
    key = settings.key or named.get("ANTHROPIC_API_KEY", "")
    if not key or not key.isascii() or not key.isprintable():
        found = "there is no key" if not key else "the key has an invalid character"
        raise ArgusError(
            Diagnostic("E921", "error", f"{found} for the language model", help="set ANTHROPIC_API_KEY to your key")
        )
    address = settings.base_url or named.get("ANTHROPIC_BASE_URL") or None
    faults = () if address is None else wrong_address(address)
    if faults:
        message = f"settings of the model cannot be used: {faults[0]}"
        raise ArgusError(Diagnostic("E927", "error", message, help="correct ANTHROPIC_BASE_URL"))
    # We retry ourselves: the package's retries are neither seeded nor limited by the budget.
    raw = module.Anthropic(api_key=key, base_url=address, max_retries=0, timeout=settings.timeout)
    place = Endpoint(settings.model, str(raw.base_url), key)
    return Client(settings, place, raw, module, transport, sleep, clock)


def _modules() -> tuple[Any, Any]:
    try:
        return import_module("anthropic"), import_module("httpx2")
    except ImportError as problem:
        message = "the planner `llm` needs the package `anthropic`, which is not installed"
        repair = "install the extra: `pip install 'argus[llm]'`, or use the planner `bandit`, which needs no model"
        raise ArgusError(Diagnostic("E920", "error", message, help=repair)) from problem


def ask(
    client: Client,
    planner: Llm,
    state: State[Memory],
    view: View = _BARE,
    task: Task = _PLAN,
    roles: Roles = ROLES,
    meter: Meter | None = None,
) -> Response:
    """Send one request of a task to the model. Pass the response to the journal and to `with_response`.

    An unusable answer is requested again with its errors, at most `settings.repairs` times. Failures of the endpoint or
    the model are returned as Trouble. meter: kept up to date, for a caller that does not wait for the end.
    """
    found = _asked(
        client, roles[task.name], Question(task, state, planner.bandit_ranking(state), view), meter or Meter()
    )
    return without_key(evolve(found, task=task.name, about=task.about), client.place.key)


def _asked(client: Client, role: Role, asked: Question, meter: Meter) -> Response:
    settings, state = client.settings, asked.state
    until = client.clock() + settings.patience
    spent, faults, latest = NOTHING, (), ()
    for number in range(settings.repairs + 1):
        fields = without_secret(request(settings, role, asked, latest), client.place.key)
        generator = np.random.default_rng([state.seed, state.step, len(state.memory.feedback), number])
        sent = _Sent(fields, role.tool.name, state.memory.spent, spent)
        got, cost = _call_with_retries(client, sent, until, generator, meter)
        spent += cost
        found = role.parse(got.data, asked) if isinstance(got, ToolInput) else got
        match found:
            case Reply() | Trouble():
                return evolve(found, faults=faults, spent=spent)
            case Faulty(faults=latest, final=final):
                faults = (*faults, *latest)
                if final:
                    break
    message = f"no answer of the model could be used: {'; '.join(latest)}"
    repair = "ask another model, or go on without one"
    return Trouble("E926", message, repair, lasting=False, faults=faults, spent=spent)


@frozen
class _Sent:
    """A request. tool: that must be called. before: spent by earlier questions; spent: by this one."""

    fields: dict[str, object]
    tool: str
    before: Spent
    spent: Spent


def without_secret(fields: dict[str, object], key: str) -> dict[str, object]:
    """A request without the key, which a user's file or an answer may contain."""
    return cast("dict[str, object]", redacted(fields, key)) if len(key) >= _SECRET else fields


def without_key(asked: Response, key: str) -> Response:
    """The response with the key redacted, since some endpoints echo it and responses are journaled and displayed."""
    return from_data(redacted(to_data(asked), key)) if len(key) >= _SECRET else asked


def _call_with_retries(
    client: Client, sent: _Sent, until: float, generator: np.random.Generator, meter: Meter
) -> tuple[ToolInput | Faulty | Trouble, Spent]:
    """Call until there is an answer; returns it and the cost of all calls.

    A call without a usage report is charged at its worst case.
    """
    settings, fields = client.settings, sent.fields
    worst = worst_case(size(fields), settings.max_tokens, settings.pricing)
    spent = NOTHING
    for attempt in count(1):
        refused = refusal(sent.before + sent.spent + spent, worst, settings.limits, settings.pricing, settings.model)
        if refused is not None:
            return to_trouble(refused, lasting=True), spent
        left = until - client.clock()
        if left <= 0:
            late = client.place.no_answer(f"exceeded {settings.patience:.3g} s for one question", billed=False)
            return late.trouble, spent
        if not meter.charge(sent.spent + spent + worst):
            return client.place.no_answer("was not asked, as the search has ended", billed=False).trouble, spent
        got = _call_with_timeout(client, fields, min(settings.timeout, left))
        if isinstance(got, bytes):
            answer = parse_answer(got, sent.tool)
            cost = worst if answer.usage is None else cost_of(answer.usage, settings.pricing)
            meter.spent = sent.spent + spent + cost
            return answer.found, spent + cost
        spent += worst if got.billed else Spent(calls=1)
        meter.spent = sent.spent + spent
        pause = retry_delay(attempt, got.wait, generator)
        if not got.transient or attempt >= settings.attempts or client.clock() + pause >= until:
            return got.trouble, spent
        client.sleep(pause)
    raise AssertionError  # pragma: no cover


def _call_with_timeout(client: Client, fields: dict[str, object], seconds: float) -> bytes | FailedCall:
    """One call in its own thread, which is abandoned on timeout.

    The package's timeouts apply to each read, so an endpoint that sends its header slowly could block forever.
    """
    box: SimpleQueue[bytes | FailedCall | BaseException] = SimpleQueue()

    def work() -> None:
        try:
            box.put(_call(client, fields, seconds))
        except BaseException as problem:  # noqa: BLE001 reason: raised again below
            box.put(problem)

    Thread(target=work, daemon=True).start()
    try:
        found = box.get(timeout=seconds + _GRACE)
    except Empty:
        return client.place.timed_out(seconds)
    if isinstance(found, BaseException):
        raise found
    return found


def _call(client: Client, fields: dict[str, object], seconds: float) -> bytes | FailedCall:
    """One call. seconds: timeout of the whole answer."""
    module = client.module
    until = client.clock() + seconds
    patience = module.Timeout(seconds, connect=min(seconds, _CONNECTING))
    try:
        with client.raw.messages.with_streaming_response.create(**fields, timeout=patience) as response:
            return _body(response.iter_bytes(), client.clock, until)
    except module.APIStatusError as problem:
        return _status(client, problem)
    except (_TooLongError, module.APITimeoutError, client.transport.TimeoutException):
        return client.place.timed_out(seconds)
    except module.APIConnectionError as problem:
        # A connection that was never established costs nothing.
        cause = problem.__cause__
        unmade = isinstance(cause, (client.transport.ConnectError, client.transport.UnsupportedProtocol))
        return client.place.no_answer(f"cannot be reached: {cause or problem}", billed=not unmade)
    except client.transport.HTTPError as problem:
        return client.place.no_answer(f"broke off its answer: {problem}", billed=True)
    except module.AnthropicError as problem:
        return client.place.refused(str(problem))


def _body(chunks: Iterable[bytes], clock: Callable[[], float], until: float) -> bytes:
    """The whole answer, within the size limit and the deadline even if the endpoint keeps sending slowly."""
    found = bytearray()
    for chunk in chunks:
        found += chunk
        if len(found) > MOST_BYTES or clock() > until:
            raise _TooLongError
    return bytes(found)


def _status(client: Client, problem: Any) -> FailedCall:  # noqa: ANN401 reason: a class of a package that may be absent
    asked = parse_retry_after(problem.response.headers.get("retry-after"), datetime.now(UTC))
    return client.place.status(problem.status_code, str(problem.api_message or problem.message), asked)
