"""Checks of times: a prediction is computed again; of a measurement, what can be known without the GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator

from argus.core.cost.occupancy import Compiled
from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.optimizer import claims
from argus.optimizer.certificate import Certificate
from argus.optimizer.certifying_code import built
from argus.optimizer.checked import Check, close, failed, passed, same, unchecked
from argus.optimizer.problem import Gemm
from argus.policy.bounds import Impossible, judge


def of_time(claimed: Certificate, asked: Gemm, kernel: Kernel, compiled: Compiled | None) -> Iterator[Check]:
    """compiled: what the compiler says here; None without one."""
    time = claimed.time
    if not (math.isfinite(time.microseconds) and time.microseconds > 0):
        yield failed("time", f"{time.microseconds} microseconds are no time")
        return
    yield _light(claimed, asked)
    if isinstance(judge(time.microseconds, asked.bounds), Impossible):
        yield failed("time", f"{time.microseconds:.4g} us is less than the work takes: {asked.bounds.least:.4g} us")
    elif time.reward == "measured":
        where = time.device or "a GPU that is not named"
        yield unchecked("time", f"{time.microseconds:.4g} us measured on {where}: run load.py there")
    elif time.device:
        yield failed("time", f"a prediction names a device: {time.device}")
    elif compiled is None:
        yield unchecked("time", "a prediction from the compiler's report, and there is no compiler")
    else:
        found = predict(kernel, asked.sizes, compiled).microseconds
        yield close("time", time.microseconds, found, f"predicted again: {found:.4g} us")


def _light(claimed: Certificate, asked: Gemm) -> Check:
    time, found = claimed.time, claims.time(asked, claimed.time.microseconds, claimed.time.reward, claimed.time.device)
    if time.bottleneck != found.bottleneck:
        return same("light", time.bottleneck, found.bottleneck, "what sets the speed of light")
    bound = close("light", time.light, found.light, f"{found.light:.4g} us, set by {found.bottleneck}")
    return bound if bound.state == "FAILED" else close("light", time.share, found.share, f"{found.share:.0%} of it")


def of_baseline(claimed: Certificate, asked: Gemm) -> Check:
    """What it is, and its time where that is a prediction."""
    given = claimed.baseline
    found = claims.baseline(asked, {})
    if (given.design, given.why) != (found.design, found.why):
        return same("baseline", (given.design, given.why), (found.design, found.why), "what one would launch")
    what = f"{found.design}, {found.why}"
    if given.microseconds is None:
        return passed("baseline", f"{what}: no time is claimed")
    if claimed.time.reward == "measured":
        return unchecked("baseline", f"{what}: its time is measured")
    return _predicted(asked, found.design, given.microseconds, what)


def _predicted(asked: Gemm, name: str, claimed: float, what: str) -> Check:
    kernel = asked.kernel(name)
    try:
        made = built(kernel)
    except ArgusError as problem:
        return unchecked("baseline", f"{what}: it does not compile here: {problem.diagnostic.message}")
    if made.compiled is None:
        return unchecked("baseline", f"{what}: its time is predicted from a compiler's report, and there is none")
    return close("baseline", claimed, predict(kernel, asked.sizes, made.compiled).microseconds, what)
