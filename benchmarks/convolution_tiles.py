"""The tiles of a model's convolutions: which template computes each, and how much of its tiles are outputs.

    convolution_tiles.py [--model resnet50] [--type bf16] [--images 32] [--json]

Nothing is run on a GPU: shapes are those of the model on tensors without memory, and tiles those that
`argus.torch` plans. *Columns with outputs* is the share of the columns of all tiles that are outputs; *tiles* are
those of one launch. The model is timed by `models_h200.py --models resnet50 --types bf16`.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# Functions of torch, which is untyped.

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from math import prod
from typing import Any

from attrs import asdict, frozen

from argus.core import algebra
from argus.kernels.nests.convolution_costs import SIX
from argus.kernels.schedules.shifted_tiles import shifted_for
from argus.nests.affine import computed
from argus.nests.convolution import Convolution, Taps, convolution_nest, convolution_of
from argus.nests.joined_axes import with_joined_axes
from argus.nests.nest import TensorType
from argus.torch.choice_of_convolutions import is_product


@frozen
class Layer:
    """A convolution of a model. x, f, y: the shapes of inputs, filters and outputs."""

    x: tuple[int, ...]
    f: tuple[int, ...]
    y: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dtype: str

    @property
    def conv(self) -> Convolution:
        numbers = zip(self.f[2:], self.stride, self.pad, strict=True)
        return Convolution(tuple(Taps(taps, stride, 1, pad) for taps, stride, pad in numbers))


@frozen
class Tiles:
    """What computes a convolution. of: outputs' channels and columns of a tile, and its rows of an image."""

    template: str
    of: tuple[int, int, int] | None = None
    tiles: int | None = None
    columns_with_outputs: float | None = None


def convolutions(model: str, dtype: str, images: int) -> Iterator[Layer]:
    """The convolutions of a model, in order."""
    torch: Any = import_module("torch")
    models: Any = import_module("benchmarks.models")
    found: list[Layer] = []

    def seen(module: Any, given: Any, result: Any) -> None:  # noqa: ANN401 reason: torch's
        x, f, y = (tuple(each.shape) for each in (given[0], module.weight, result))
        found.append(Layer(x, f, y, module.stride, module.padding, dtype))

    case = models.CASES[model]
    with torch.device("meta"), torch.no_grad():
        made = case.model().eval()
        for module in made.modules():
            if isinstance(module, torch.nn.Conv2d):
                module.register_forward_hook(seen)
        made(torch.empty((images, *case.shape[1:])))
    return iter(found)


def tiles_of(layer: Layer) -> Tiles:
    """What computes a convolution."""
    x, f, y = (
        TensorType(name, tuple(map(algebra.const, shape)), layer.dtype)
        for name, shape in (("x", layer.x), ("f", layer.f), ("y", layer.y))
    )
    if is_product(layer.conv, x.shape, y.shape, layer.dtype):
        return Tiles("product of matrices")
    f = TensorType("f", (*f.shape[:2], *(each for each in f.shape[2:] if each is not algebra.const(1))), layer.dtype)
    nest, types = with_joined_axes(convolution_nest(layer.conv, x, f, y), {"x": x, "f": f})
    found = convolution_of(nest, types)
    assert found is not None
    count, outputs, *places = (int(computed(axis.extent, {})) for axis in nest.domain)
    cfg = shifted_for(found[0], layer.x[1], outputs, count, places, SIX if layer.dtype == "f32" else 1)
    *others, across = places
    tiles = count * prod(others) // cfg.rows * -(-across // cfg.across) * -(-outputs // cfg.channels)
    columns = tiles // -(-outputs // cfg.channels) * cfg.pixels
    of = (cfg.channels, cfg.pixels, cfg.rows)
    return Tiles("products of shifted rows", of, tiles, count * prod(places) / columns)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--type", default="bf16", choices=("bf16", "f32"))
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    counted = Counter(convolutions(chosen.model, chosen.type, chosen.images))
    for layer, times in counted.items():
        tiles = tiles_of(layer)
        if chosen.json:
            print(json.dumps({"times": times, **asdict(layer), **asdict(tiles)}))
            continue
        shape = f"{layer.x[1]}x{layer.x[2]}x{layer.x[3]} to {layer.y[1]}x{layer.y[2]}x{layer.y[3]}"
        taps = f"{layer.f[2]}x{layer.f[3]} by {layer.stride[0]}"
        share = "" if tiles.columns_with_outputs is None else f"{tiles.columns_with_outputs:.0%}"
        of = "" if tiles.of is None else "{} x {}, {} rows".format(*tiles.of)
        print(f"{times:2} x {shape:28} {taps:10} {tiles.template:25} {of:20} {tiles.tiles or '':>6} {share:>5}")
    print(f"{sum(counted.values())} convolutions, {len(counted)} different ones")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
