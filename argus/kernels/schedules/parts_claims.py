"""What a product of parts of f32 matrices claims; shares no text with the schedule."""

from __future__ import annotations

from argus.language import Value, round_bf16

_LOWEST = {6: 2, 3: 1, 1: 0}
"""By the number of products that count: the greatest sum of the numbers of their parts. A part is 2^-8 of the one
before it, so products of one sum are of one size, and those of the next 2^-8 of it.
"""


def rounded_product(x: Value, y: Value, products: int) -> Value:
    """x * y but for the products of parts that do not count, each of which is named.

    Of three parts, the first is the nearest bf16, the second the nearest to what it leaves, the third what both leave.
    """
    value = x * y
    for i, own in enumerate(_parts(x)):
        for j, other in enumerate(_parts(y)):
            if i + j > _LOWEST[products]:
                value = value - own * other
    return value


def _parts(x: Value) -> tuple[Value, Value, Value]:
    high = round_bf16(x)
    middle = round_bf16(x - high)
    return high, middle, x - high - middle
