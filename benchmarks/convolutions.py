"""Convolutions of KernelBench's two levels, as data: shapes, and what torch is given."""

from __future__ import annotations

from attrs import frozen

from argus.core import algebra
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.convolution import Convolution, Taps, convolution_nest, with_joined_rows
from argus.nests.nest import TensorType

_AXES = 6
"""Of a domain: inputs, groups, channels and three of space."""


@frozen
class Problem:
    """x and w: shapes, as torch has them. extra: outputs beyond, of a transposed convolution."""

    number: int
    x: tuple[int, ...]
    w: tuple[int, ...]
    transposed: bool = False
    stride: tuple[int, ...] = ()
    pad: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    extra: tuple[int, ...] = ()
    groups: int = 1
    level: int = 1

    @property
    def name(self) -> str:
        return f"{self.level}_{self.number}"

    @property
    def conv(self) -> Convolution:
        taps = self.w[2:]
        numbers = zip(taps, *(self.of(each) for each in ("stride", "dilation", "pad")), strict=True)
        return Convolution(tuple(Taps(t, s, d, p, self.transposed) for t, s, d, p in numbers), self.groups)

    def of(self, name: str) -> tuple[int, ...]:
        return getattr(self, name) or ((0 if name in ("pad", "extra") else 1,) * len(self.w[2:]))

    @property
    def outputs(self) -> int:
        return self.w[1] * self.groups if self.transposed else self.w[0]

    @property
    def y(self) -> tuple[int, ...]:
        found: list[int] = []
        for extent, axis, extra in zip(self.x[2:], self.conv.axes, self.of("extra"), strict=True):
            reach = axis.dilation * (axis.taps - 1)
            if self.transposed:
                found.append((extent - 1) * axis.stride - 2 * axis.pad + reach + extra + 1)
            else:
                found.append((extent + 2 * axis.pad - reach - 1) // axis.stride + 1)
        return (self.x[0], self.outputs, *found)

    @property
    def operations(self) -> float:
        """Of products and sums, as torch's formula counts them."""
        places = self.x if self.transposed else self.y
        count = 2.0 * places[0] * self.x[1] * self.w[1] if self.transposed else 2.0 * places[0] * self.w[0] * self.w[1]
        for each in (*places[2:], *self.w[2:]):
            count *= each
        return count

    @property
    def form(self) -> tuple[Canonical, dict[str, int]]:
        """The canonical form of its nest, and the kernel's sizes."""
        x, w, y = (
            TensorType(name, tuple(map(algebra.const, shape)), "f32")
            for name, shape in (("x", self.x), ("w", self.w), ("y", self.y))
        )
        nest, types = with_joined_rows(convolution_nest(self.conv, x, w, y), {"x": x, "w": w})
        form = canonical((nest,), types, {}, _AXES, join=False)
        return form, {name: int(computed(extent, {})) for name, extent in form.sizes.items()}


PROBLEMS = (
    Problem(50, (256, 3, 224, 224), (96, 3, 11, 11), stride=(4, 4), pad=(2, 2)),
    Problem(54, (16, 3, 64, 64, 64), (64, 3, 3, 3, 3)),
    Problem(55, (8, 64, 512, 1024), (128, 64, 3, 3)),
    Problem(56, (8, 64, 512, 256), (128, 64, 5, 7)),
    Problem(57, (8, 64, 1024, 1024), (64, 64, 3, 3), transposed=True),
    Problem(58, (16, 32, 16, 32, 64), (32, 16, 3, 5, 7), transposed=True),
    Problem(59, (16, 3, 256, 256, 10), (64, 3, 3, 3, 1)),
    Problem(60, (16, 3, 64, 64, 64), (64, 3, 3, 5, 7)),
    Problem(61, (8, 48, 64, 64, 64), (48, 48, 3, 3, 3), transposed=True),
    Problem(62, (8, 32, 512, 512), (64, 32, 5, 9)),
    Problem(63, (16, 16, 1024, 1024), (128, 16, 3, 3)),
    Problem(64, (64, 128, 65536), (128, 128, 3), transposed=True),
    Problem(65, (8, 64, 512, 512), (64, 64, 3, 7), transposed=True),
    Problem(66, (8, 3, 16, 128, 128), (64, 3, 3, 5, 7)),
    Problem(67, (32, 64, 131072), (128, 64, 3)),
    Problem(68, (16, 32, 64, 64, 64), (32, 64, 3, 5, 5), transposed=True),
    Problem(69, (64, 64, 128, 256), (64, 128, 3, 5), transposed=True),
    Problem(70, (8, 48, 96, 96, 96), (48, 24, 3, 3, 3), transposed=True),
    Problem(71, (8, 32, 512, 1024), (32, 32, 3, 3), transposed=True),
    Problem(72, (8, 32, 12, 24, 48), (32, 8, 3, 5, 7), True, (2, 2, 2), (1, 2, 3), extra=(1, 1, 1), groups=4),
    Problem(73, (4, 32, 32, 64, 128), (32, 32, 3, 3, 3), True, (2, 2, 2), (1, 1, 1)),
    Problem(74, (32, 32, 131072), (32, 64, 5), transposed=True, dilation=(3,)),
    Problem(75, (16, 32, 128, 256), (32, 16, 3, 5), True, (2, 3), (1, 2), (2, 1), groups=4),
    Problem(76, (64, 64, 524280), (128, 64, 3), stride=(3,), dilation=(4,)),
    Problem(77, (16, 32, 16, 32, 32), (32, 64, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), (2, 2, 2)),
    Problem(78, (8, 32, 512, 1024), (32, 32, 3, 7), transposed=True, pad=(1, 3)),
    Problem(79, (16, 32, 131072), (32, 64, 3), True, (2,), (1,), (2,)),
    Problem(80, (8, 32, 512, 512), (64, 32, 5, 9), pad=(2, 4), dilation=(2, 3)),
    Problem(81, (16, 32, 64, 128), (32, 64, 3, 3), True, (5, 5), (1, 1), (2, 2)),
    Problem(87, (16, 64, 1024, 1024), (128, 64, 1, 1)),
    Problem(1, (128, 64, 128, 128), (128, 64, 3, 3), level=2),
    Problem(2, (128, 64, 128, 128), (64, 64, 3, 3), True, (2, 2), (1, 1), extra=(1, 1), level=2),
    Problem(3, (32, 32, 16, 32, 32), (32, 64, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), extra=(1, 1, 1), level=2),
    Problem(5, (32, 64, 256, 256), (64, 64, 4, 4), True, (2, 2), (1, 1), extra=(1, 1), level=2),
    Problem(6, (128, 3, 16, 32, 32), (16, 3, 3, 3, 3), level=2),
    Problem(7, (64, 8, 32, 64, 64), (32, 8, 3, 3, 3), level=2),
    Problem(8, (128, 8, 16, 64, 64), (16, 8, 3, 3, 3), level=2),
    Problem(11, (512, 64, 32, 32), (64, 128, 5, 5), True, pad=(1, 1), level=2),
    Problem(13, (16, 16, 32, 128, 128), (16, 64, 3, 3, 3), True, pad=(1, 1, 1), level=2),
    Problem(15, (16, 16, 16, 32, 32), (16, 32, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), level=2),
    Problem(21, (128, 8, 256, 256), (32, 8, 3, 3), level=2),
    Problem(23, (128, 3, 24, 32, 32), (24, 3, 3, 3, 3), level=2),
    Problem(25, (128, 16, 256, 256), (64, 16, 3, 3), level=2),
    Problem(27, (1024, 3, 16, 32, 32), (16, 3, 4, 4, 4), level=2),
    Problem(34, (32, 32, 16, 32, 32), (32, 64, 4, 4, 4), True, (2, 2, 2), (1, 1, 1), level=2),
    Problem(26, (128, 32, 16, 16, 16), (32, 64, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), extra=(1, 1, 1), level=2),
    Problem(36, (16, 64, 128, 128), (64, 128, 3, 3), True, (2, 2), (1, 1), extra=(1, 1), level=2),
    Problem(38, (32, 32, 32, 64, 64), (32, 64, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), extra=(1, 1, 1), level=2),
    Problem(47, (16, 32, 32, 64, 64), (64, 32, 3, 3, 3), level=2),
    Problem(48, (128, 3, 16, 64, 64), (16, 3, 3, 3, 3), level=2),
    Problem(50, (128, 3, 16, 32, 32), (3, 16, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), level=2),
    Problem(57, (128, 8, 128, 128), (64, 8, 3, 3), level=2),
    Problem(72, (64, 3, 32, 32, 32), (3, 16, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), level=2),
    Problem(78, (16, 32, 32, 32, 32), (32, 64, 5, 5, 5), True, (2, 2, 2), (2, 2, 2), level=2),
    Problem(82, (128, 8, 256, 256), (64, 8, 3, 3), level=2),
    Problem(90, (128, 8, 16, 64, 64), (64, 8, 3, 3, 3), level=2),
    Problem(91, (128, 64, 64, 64), (64, 128, 4, 4), True, (2, 2), (1, 1), extra=(1, 1), level=2),
    Problem(93, (128, 64, 64, 64), (64, 128, 4, 4), True, (2, 2), level=2),
    Problem(100, (16, 64, 24, 48, 48), (64, 128, 3, 3, 3), True, (2, 2, 2), (1, 1, 1), level=2),
)
"""By their number in KernelBench's levels. In place of a depthwise one, 86 has 87's product."""
