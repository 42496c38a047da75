"""Fill colours on which black text is readable, distinguishable with any colour vision.

Hues are those of Paul Tol's scheme "light", designed for filled cells with text [Tol 2021, Colour schemes,
SRON/EPS/TN/09-002]; the ramp only darkens, so that it also reads in greyscale.
"""

from __future__ import annotations

BLANK = "#ffffff"
HUES = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#dddddd")
TINTS = 4
_RAMP = ((255, 255, 229), (213, 238, 200), (150, 211, 195), (92, 176, 200))


def shade(hue: int, tint: int = 0) -> str:
    """A hue by number, cyclic; a higher tint, also cyclic, is lighter."""
    colour = HUES[hue % len(HUES)]
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    lighter = tint % TINTS * 0.2
    return _hex([part + (255 - part) * lighter for part in parts])


def ramp(part: int, whole: int) -> str:
    """A colour from light to mid-dark for `part` from 0 to `whole`."""
    place = part / whole * (len(_RAMP) - 1) if whole else 0.0
    step = min(int(place), len(_RAMP) - 2)
    low, high = _RAMP[step], _RAMP[step + 1]
    return _hex([a + (b - a) * (place - step) for a, b in zip(low, high, strict=True)])


def _hex(parts: list[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in parts)
