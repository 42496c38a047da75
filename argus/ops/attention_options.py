"""The options of `argus.attention`: sliding windows, the scale of scores, and their soft cap."""

from __future__ import annotations

from math import log, sqrt

from argus.kernels.schedules.attention import LEAST_SCALE
from argus.ops.call_path import refuser

Window = int | tuple[int | None, int | None] | None
"""Keys to the left and right of a query's own that it sees, None for all; one number for both."""
Ends = tuple[int | None, int | None]

refuse = refuser("attention")


def ends(window: Window) -> Ends | None:
    """A window as a pair. Raises ArgusError (E401) for anything but numbers from 0 on and None."""
    if window is None:
        return None
    given: object = window
    pair = given if isinstance(given, tuple) else (given, given)
    if len(pair) != 2 or not all(each is None or _counts(each) for each in pair):
        refuse(f"`window` is {window!r}, expected (left, right), numbers from 0 on or None", "give None for no end")
    left, right = pair
    return left, right


def _counts(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def seen(window: Ends | None, rows: int, keys: int, *, causal: bool) -> bool | tuple[int, int]:
    """Whether the mask is causal; or the window, where it is another one, as numbers up to `keys` and `rows`."""
    if window is None:
        return causal
    left = keys if window[0] is None else min(window[0], keys)  # the last query's own key is the last one
    right = 0 if causal else rows if window[1] is None else min(window[1], rows)
    return right == 0 if left == keys and right in (0, rows) else (left, right)


def factors(scale: float | None, softcap: float | None, width: int) -> tuple[float, ...]:
    """The factor of the scores, in powers of 2; with a soft cap that of their tanh, and the factor within.

    Raises ArgusError (E401) for a number that is not between 2^-100 and 2^100.
    """
    wanted = 1 / sqrt(width) if scale is None else scale
    _bounded("scale", wanted, "negate `q` for a scale below 0")
    if softcap is None:
        return (wanted / log(2.0),)
    _bounded("softcap", softcap, "give None for scores without a cap")
    within = wanted / softcap
    _bounded("scale / softcap", within, "give numbers that are less unlike")
    return softcap / log(2.0), within


def _bounded(name: str, number: float, repair: str) -> None:
    if not LEAST_SCALE < number < 1 / LEAST_SCALE:
        refuse(f"`{name}` is {number:g}, expected between 2^-100 and 2^100", repair)
