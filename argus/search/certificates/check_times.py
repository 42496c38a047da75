"""Checks claimed times: recomputes predictions; compares measurements with lower bounds, as there may be no GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from argus.core.cost.occupancy import Compiled
from argus.core.diagnostic import ArgusError
from argus.policy.bounds import Bounds, Impossible, check_time
from argus.search.certificates.certificate import Baseline, Certificate
from argus.search.certificates.check_code import predictable, rebuild_all
from argus.search.certificates.check_result import Check, check_close, check_equal, failed, passed, unchecked
from argus.search.evaluation.prediction import predict_time
from argus.search.problems.traced import Traced, kernels_of


def check_claimed_time(
    claimed: Certificate,
    sizes: Mapping[str, int],
    light: Bounds | None,
    least: Bounds,
    kernel: Traced,
    compiled: Sequence[Compiled],
) -> Iterator[Check]:
    """light: bounds of the problem, None if unknown. least: bounds of this kernel's known work. compiled: resource
    reports of the compiler here, of each launch, none without one.
    """
    time = claimed.time
    if not (math.isfinite(time.microseconds) and time.microseconds > 0):
        yield failed("time", f"{time.microseconds} microseconds is not a valid time")
        return
    yield (
        unchecked("light", "depends on the problem's file, which is unknown")
        if light is None
        else _check_light(claimed, light)
    )
    if isinstance(check_time(time.microseconds, least), Impossible):
        yield failed("time", f"{time.microseconds:.4g} us is below the work's lower bound of {least.least:.4g} us")
    elif time.reward == "measured":
        where = time.device or "an unnamed GPU"
        how = "the median of a last round" if time.median else "one measurement"
        yield unchecked("time", f"{time.microseconds:.4g} us, {how} on {where}: run load.py there")
    elif time.median:
        yield failed("time", "a prediction is claimed to be the median of measurements")
    elif time.device:
        yield failed("time", f"a prediction names a device: {time.device}")
    elif not compiled:
        yield unchecked("time", "a prediction from the compiler's report, but there is no compiler here")
    else:
        found = _predicted(kernel, sizes, compiled)
        yield check_close("time", time.microseconds, found, f"predicted again: {found:.4g} us")


def _predicted(traced: Traced, sizes: Mapping[str, int], compiled: Sequence[Compiled]) -> float:
    """Microseconds of all launches, which follow one another."""
    pairs = zip(kernels_of(traced), compiled, strict=True)
    return sum(predict_time(kernel, sizes, report).microseconds for kernel, report in pairs)


def _check_light(claimed: Certificate, bounds: Bounds) -> Check:
    time = claimed.time
    if time.bottleneck != bounds.bottleneck:
        return check_equal("light", time.bottleneck, bounds.bottleneck, "bottleneck of the speed of light")
    bound = check_close("light", time.light, bounds.light, f"{bounds.light:.4g} us, set by {bounds.bottleneck}")
    share = bounds.light / time.microseconds
    return bound if bound.state == "FAILED" else check_close("light", time.share, share, f"{share:.0%} of it")


def check_baseline(
    claimed: Certificate,
    found: Baseline,
    kernel: Callable[[str], Traced],
    sizes: Callable[[Traced], Mapping[str, int]],
) -> Check:
    """Check the baseline's design, and its time if predicted. kernel: of a design by name. sizes: of a kernel."""
    given = claimed.baseline
    if (given.design, given.why) != (found.design, found.why):
        return check_equal("baseline", (given.design, given.why), (found.design, found.why), "the baseline design")
    what = f"{found.design}, {found.why}"
    if given.microseconds is None:
        return passed("baseline", f"{what}: no time is claimed")
    if claimed.time.reward == "measured":
        return unchecked("baseline", f"{what}: its time is measured")
    made = kernel(found.design)
    return _check_prediction(made, sizes(made), given.microseconds, what)


def _check_prediction(kernel: Traced, sizes: Mapping[str, int], claimed: float, what: str) -> Check:
    try:
        compiled = predictable(rebuild_all(kernel))
    except ArgusError as problem:
        return unchecked("baseline", f"{what}: it does not compile here: {problem.diagnostic.message}")
    if not compiled:
        return unchecked(
            "baseline", f"{what}: its time is predicted from a compiler's report, but there is no compiler"
        )
    return check_close("baseline", claimed, _predicted(kernel, sizes, compiled), what)
