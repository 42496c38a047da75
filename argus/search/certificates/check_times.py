"""Checks of times: a prediction is computed again; of a measurement, what can be known without the GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from argus.core.cost.occupancy import Compiled
from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.policy.bounds import Bounds, Impossible, check_time
from argus.search.certificates.certificate import Baseline, Certificate
from argus.search.certificates.check_code import built
from argus.search.certificates.check_result import Check, close, failed, passed, same, unchecked


def of_time(
    claimed: Certificate,
    sizes: Mapping[str, int],
    light: Bounds | None,
    least: Bounds,
    kernel: Kernel,
    compiled: Compiled | None,
) -> Iterator[Check]:
    """light: of the problem, None where nothing here tells it. least: of what this kernel is known to do. compiled:
    what the compiler says here, None without one.
    """
    time = claimed.time
    if not (math.isfinite(time.microseconds) and time.microseconds > 0):
        yield failed("time", f"{time.microseconds} microseconds are no time")
        return
    yield (
        unchecked("light", "of the problem's own file, which is not known") if light is None else _light(claimed, light)
    )
    if isinstance(check_time(time.microseconds, least), Impossible):
        yield failed("time", f"{time.microseconds:.4g} us is less than the work takes: {least.least:.4g} us")
    elif time.reward == "measured":
        where = time.device or "a GPU that is not named"
        yield unchecked("time", f"{time.microseconds:.4g} us measured on {where}: run load.py there")
    elif time.device:
        yield failed("time", f"a prediction names a device: {time.device}")
    elif compiled is None:
        yield unchecked("time", "a prediction from the compiler's report, and there is no compiler")
    else:
        found = predict(kernel, sizes, compiled).microseconds
        yield close("time", time.microseconds, found, f"predicted again: {found:.4g} us")


def _light(claimed: Certificate, bounds: Bounds) -> Check:
    time = claimed.time
    if time.bottleneck != bounds.bottleneck:
        return same("light", time.bottleneck, bounds.bottleneck, "what sets the speed of light")
    bound = close("light", time.light, bounds.light, f"{bounds.light:.4g} us, set by {bounds.bottleneck}")
    share = bounds.light / time.microseconds
    return bound if bound.state == "FAILED" else close("light", time.share, share, f"{share:.0%} of it")


def of_baseline(
    claimed: Certificate, found: Baseline, kernel: Callable[[str], Kernel], sizes: Mapping[str, int]
) -> Check:
    """What it is, and its time where that is a prediction. kernel: of a design, by name."""
    given = claimed.baseline
    if (given.design, given.why) != (found.design, found.why):
        return same("baseline", (given.design, given.why), (found.design, found.why), "what one would launch")
    what = f"{found.design}, {found.why}"
    if given.microseconds is None:
        return passed("baseline", f"{what}: no time is claimed")
    if claimed.time.reward == "measured":
        return unchecked("baseline", f"{what}: its time is measured")
    return _predicted(kernel(found.design), sizes, given.microseconds, what)


def _predicted(kernel: Kernel, sizes: Mapping[str, int], claimed: float, what: str) -> Check:
    try:
        made = built(kernel)
    except ArgusError as problem:
        return unchecked("baseline", f"{what}: it does not compile here: {problem.diagnostic.message}")
    if made.compiled is None:
        return unchecked("baseline", f"{what}: its time is predicted from a compiler's report, and there is none")
    return close("baseline", claimed, predict(kernel, sizes, made.compiled).microseconds, what)
