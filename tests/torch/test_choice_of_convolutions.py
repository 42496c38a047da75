"""Which convolutions are products of filters with windows in memory."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.index import Index
from argus.nests.convolution import Convolution, Taps
from argus.nests.nest import size
from argus.torch.choice_of_convolutions import is_product


def extents(*numbers: int) -> tuple[Index, ...]:
    return tuple(map(algebra.const, numbers))


def square(taps: int, stride: int = 1, pad: int = 0, groups: int = 1, *, transposed: bool = False) -> Convolution:
    return Convolution((Taps(taps, stride, 1, pad, transposed),) * 2, groups)


PATCHES = square(16, 16), extents(32, 3, 224, 224), extents(32, 768, 14, 14)
POINTS = square(1), extents(32, 256, 28, 28), extents(32, 512, 28, 28)
WINDOWS = square(3, pad=1), extents(32, 256, 14, 14), extents(32, 256, 14, 14)
FEW_CHANNELS = square(7, 2, 3), extents(32, 3, 224, 224), extents(32, 64, 112, 112)
SMALL = square(1), extents(1, 8, 8, 8), extents(1, 8, 8, 8)
ODD_ROWS = square(1), extents(32, 256, 7, 7), extents(32, 512, 7, 7)
GROUPS = square(1, groups=2), *POINTS[1:]
TRANSPOSED = square(1, transposed=True), *POINTS[1:]
UNKNOWN = POINTS[0], (size("B"), *POINTS[1][1:]), (size("B"), *POINTS[2][1:])


@pytest.mark.parametrize(
    ("case", "single", "short"),
    [
        (PATCHES, True, True),
        (POINTS, True, True),
        (WINDOWS, True, False),
        (FEW_CHANNELS, False, False),
        (SMALL, False, False),
        (ODD_ROWS, True, False),
        (GROUPS, False, False),
        (TRANSPOSED, False, False),
        (UNKNOWN, False, False),
    ],
)
def test_those_that_are_faster_so(
    case: tuple[Convolution, tuple[Index, ...], tuple[Index, ...]], single: bool, short: bool
) -> None:
    """single: of f32. short: of 16 bits, whose windows may not overlap."""
    assert is_product(*case, "f32") == single
    assert is_product(*case, "bf16") == short
    assert is_product(*case, "f16") == short
