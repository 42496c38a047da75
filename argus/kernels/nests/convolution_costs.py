"""Which of two templates a convolution of f32 tensors is for: products of shifted rows in parts, or FMAs.

Each takes a time that is a sum of what it does, each times a number fitted to measured times
(`benchmarks/conv_h200.py fit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from attrs import frozen

from argus.kernels.nests.direct_tiles import Direct, config_for, direct_for
from argus.kernels.schedules.class_tiles import TILES, classes_for, work_of
from argus.kernels.schedules.parts import PAIRS
from argus.kernels.schedules.shifted import CHUNK, Shifted
from argus.kernels.schedules.shifted_classes import Classes
from argus.kernels.schedules.shifted_tiles import shifted_for
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.convolution import Convolution
from argus.nests.convolution_forms import ConvolutionForm, convolution_form
from argus.nests.nest import Expr, Reduce
from argus.nests.work import instructions

SIX = 6
"""Products of parts of f32 numbers, which are as exact as single precision."""
ON_MATRIX_UNITS = (1195.0, 376.0, 279.0, 61.0)
"""Milliseconds of an H200: of 10^15 operations, 10^12 bytes laid out, 10^12 bytes stored, and 10^6 tiles."""
BY_FMAS = (26000.0, 400.0)
"""The same, of 10^15 operations and 10^12 bytes stored."""
BY_CLASSES = (*TILES, 913.0)
"""The same, of what tiles do, and 10^12 bytes laid out."""
MOST_WORK = 28
"""Instructions for each sum up to which work on it takes less before it is stored than in a launch of its own, which
waits for memory: a multiprocessor's matrix units wait meanwhile.
"""


@frozen
class Work:
    """A convolution of inputs (n, c, *extents) to outputs (n, o, *places), of one group."""

    conv: Convolution
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def windows(self) -> list[int]:
        """Along each axis of space."""
        return [-(-place // axis.classes) for place, axis in zip(self.outputs[2:], self.conv.axes, strict=True)]

    def on_matrix_units(self, products: int = SIX) -> tuple[float, ...]:
        """What the products of shifted rows do, as in `ON_MATRIX_UNITS`, with one row in a tile, as was measured.

        products: of parts of f32 numbers.
        """
        conv, (n, channels), outputs = self.conv, self.inputs[:2], self.outputs[1]
        cfg = shifted_for(conv, channels, outputs, n, self.outputs[2:], products, most_rows=1)
        *rows, across = self.windows
        tiles = n * conv.classes * prod(rows) * -(-across // cfg.pixels) * -(-outputs // cfg.channels)
        laid = CHUNK * -(-channels // CHUNK)
        depth = conv.taps * cfg.bk * -(-laid // cfg.bk)
        operations = 2 * len(PAIRS[products]) * tiles * cfg.pixels * cfg.channels * depth
        places = prod(window + axis.reach for window, axis in zip(self.windows, conv.axes, strict=True))
        written = 2 * cfg.parts * n * conv.phases * places * laid
        stored = 4 * prod(self.outputs) * (3 if conv.classes > 1 else 1)  # of classes, sums are stored and read, too
        read = 4 * prod(self.inputs) * conv.axes[-1].phases  # each phase reads all sectors
        return 1e-15 * operations, 1e-12 * (written + read), 1e-12 * stored, 1e-6 * tiles

    def by_classes(self, cfg: Classes) -> tuple[float, ...]:
        """What products of shifted rows do, all classes in a tile, as in `BY_CLASSES`."""
        conv, (n, channels) = self.conv, self.inputs[:2]
        laid = CHUNK * -(-channels // CHUNK)
        places = prod(window + axis.reach for window, axis in zip(self.windows, conv.axes, strict=True))
        moved = 2 * cfg.parts * n * places * laid + 4 * prod(self.inputs)
        return *work_of(conv, cfg, laid, self.outputs), 1e-12 * moved

    def by_fmas(self, cfg: Direct) -> tuple[float, ...]:
        """What FMAs do, as in `BY_FMAS`."""
        outputs, high, wide = cfg.sums().tile
        flat = len(self.windows) == 1
        rows = (1, high * wide) if flat else (high, wide)
        *outer, down, across = [1, *self.windows] if flat else self.windows
        conv, axes = self.conv, self.conv.axes[-2:]
        inner = prod(axis.taps for axis in axes)  # of all classes, each of which has some of them
        places = rows[0] * rows[1] * -(-down // rows[0]) * -(-across // rows[1])
        classes = prod(axis.classes for axis in conv.axes[:-2])
        taps = inner * prod(axis.window for axis in conv.axes[:-2])
        sums = self.outputs[0] * prod(outer) * classes * places * outputs * -(-self.outputs[1] // outputs)
        return 2e-15 * sums * taps * self.inputs[1], 4e-12 * prod(self.outputs)

    def milliseconds(self, cfg: Shifted | Classes | Direct, products: int = SIX) -> float:
        """The modelled time."""
        match cfg:
            case Direct():
                return _time(self.by_fmas(cfg), BY_FMAS)
            case Classes():
                return _time(self.by_classes(cfg), BY_CLASSES)
            case _:
                return _time(self.on_matrix_units(products), ON_MATRIX_UNITS)

    def classes(self, products: int) -> Classes | None:
        """The configuration with all classes in a tile."""
        return classes_for(self.conv, self.inputs, self.outputs, products)


def milliseconds(conv: Convolution, inputs: tuple[int, ...], outputs: tuple[int, ...], products: int = SIX) -> float:
    """The modelled time of the faster template. inputs, outputs: (n, c, *extents) and (n, o, *places), of one group.

    products: of parts, on matrix units.
    """
    work = Work(conv, inputs, outputs)
    tiles = direct_for(ConvolutionForm(conv, "x", "f"), inputs[1], outputs[1], list(outputs[2:]))
    configs = (Shifted(), tiles, work.classes(products))
    return min(work.milliseconds(cfg, products) for cfg in configs if cfg is not None)


def is_for_matrix_units(form: Canonical, sizes: Mapping[str, int], products: int = SIX) -> bool:
    """Whether a convolution is faster as products of shifted rows, as all are that FMAs are not for.

    products: of parts.
    """
    found, config = _work(form, sizes), config_for(form, sizes)
    if found is None or config is None:
        return True
    work, grouped = found
    if grouped or work.inputs[0] == 1:
        return False  # those are not proved on matrix units, or no faster
    by_fmas, classes = work.milliseconds(config), work.classes(products)
    together = classes is not None and work.milliseconds(classes) < by_fmas
    return together or (_is_proved_apart(work.conv) and work.milliseconds(Shifted(), products) < by_fmas)


def with_all_classes(form: Canonical, sizes: Mapping[str, int], products: int) -> Classes | None:
    """The configuration with all classes in a tile, where that is faster than a tile for each of them."""
    found = _work(form, sizes)
    if found is None or found[1]:
        return None
    work, _ = found
    classes = work.classes(products)
    if classes is None or not _is_proved_apart(work.conv):
        return classes
    return classes if work.milliseconds(classes) < work.milliseconds(Shifted(), products) else None


def _work(form: Canonical, sizes: Mapping[str, int]) -> tuple[Work, bool] | None:
    """The convolution that a form is, at these sizes, and whether it has groups."""
    types = {each.type.name: each.type for each in form.parameters}
    found = convolution_form(form.nests[0], types)
    if found is None:
        return None
    inputs, outputs = (
        tuple(int(computed(extent, sizes)) for extent in extents)
        for extents in (types[found.x].shape, [axis.extent for axis in form.nests[0].domain])
    )
    return Work(found.conv, inputs, outputs if found.batched else (1, *outputs)), found.grouped


def _is_proved_apart(conv: Convolution) -> bool:
    """Whether a tile for each class is proved."""
    return not any(axis.classes > 1 and axis.dilation > 1 for axis in conv.axes)


def is_light(body: Expr, sums: Reduce) -> bool:
    """Whether what is computed of sums on matrix units is so little that they are worked on before they are stored."""
    return instructions(body, sums) <= MOST_WORK


def _time(work: tuple[float, ...], costs: tuple[float, ...]) -> float:
    return sum(amount * cost for amount, cost in zip(work, costs, strict=True))
