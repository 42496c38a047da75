"""Which tile a block takes: its own number, or the one that keeps neighbours in time on one die of gfx942."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.ir import Kernel, Policy, walk
from argus.emit.c_expr import CText
from argus.emit.faults import not_built

AXES = "xyz"
REMAPPED = "remap_xcd"
REMAP = """\
struct tile_of { int row, column; };
// Blocks start in the order of their numbers, x first, each on the next of 8 dies. Each die gets a run of the tiles,
// those that are left over by 8 keep their places; tiles run down bands of `height` rows (the last may be lower),
// column by column. Both steps are one to one, so every tile has its block.
HELPER tile_of remapped(long number, int rows, int columns, int height) {
    const long share = (long)rows * columns / 8;
    const long tile = number < share * 8 ? number % 8 * share + number / 8 : number;
    const int band = tile / ((long)columns * height);
    const int within = tile - (long)columns * height * band, high = min(height, rows - band * height);
    return {band * height + within % high, within / high};
}
"""
"""Counts of tiles lie in [1, 2^22]: their product needs more than 32 bits, a band of them does not."""


def remapped(kernel: Kernel) -> Policy | None:
    """The advice to reorder the blocks, if there is any."""
    return next((s for s in walk(kernel.body) if isinstance(s, Policy) and s.name == REMAPPED), None)


def numbered(kernel: Kernel, text: CText) -> Iterator[str]:
    """Declarations of the block's coordinates. Raises ArgusError (E501) for advice on other grids than of two axes."""
    names = [text.names.symbols[block] for block in kernel.blocks]
    advice = remapped(kernel)
    if advice is None:
        yield from (
            f"const int {name} = __builtin_amdgcn_workgroup_id_{axis}();"
            for axis, name in zip(AXES, names, strict=False)
        )
        return
    if len(kernel.grid) != 2 or len(advice.args) != 1:
        raise not_built("a reordered grid that has not two axes", advice.span, kernel.name)
    rows, columns = (text.index(count) for count in kernel.grid)
    x, y = (f"__builtin_amdgcn_workgroup_id_{axis}()" for axis in "xy")
    number = f"{x} + (long){text.factor(kernel.grid[0])} * {y}"
    yield f"const tile_of own_tile = remapped({number}, {rows}, {columns}, {advice.args[0]});"
    yield from (f"const int {name} = own_tile.{part};" for name, part in zip(names, ("row", "column"), strict=True))
