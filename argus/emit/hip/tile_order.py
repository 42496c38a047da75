"""Block-to-tile mapping: the identity, or XCD remapping, which keeps neighbouring tiles on one die of gfx942."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.ir import Kernel, Policy, walk
from argus.emit.c_expr import CText
from argus.emit.faults import not_built

AXES = "xyz"
REMAPPED = "remap_xcd"
REMAP = """\
struct tile_of { int row, column; };
// Blocks are dispatched in linear order, x first, round-robin over 8 dies (XCDs). Each die gets a contiguous range of
// tiles; a remainder modulo 8 stays in place. Tiles are ordered in bands of `height` rows (the last may have fewer),
// column by column within a band. Both maps are bijections, so every tile has one block.
HELPER tile_of remapped(long number, int rows, int columns, int height) {
    const long share = (long)rows * columns / 8;
    const long tile = number < share * 8 ? number % 8 * share + number / 8 : number;
    const int band = (int)(tile / ((long)columns * height)), high = min(height, rows - band * height);
    const int within = (int)(tile - (long)columns * height * band);
    return {band * height + within % high, within / high};
}
"""
"""Tile counts are in [1, 2^22]: their product needs 64 bits, the size of a band does not."""


def xcd_remap(kernel: Kernel) -> Policy | None:
    """The kernel's XCD remapping policy, if any."""
    return next((s for s in walk(kernel.body) if isinstance(s, Policy) and s.name == REMAPPED), None)


def block_coordinates(kernel: Kernel, text: CText) -> Iterator[str]:
    """Declarations of the block's coordinates. Raises ArgusError (E501) for a remapped grid of one axis."""
    names = [text.names.symbols[block] for block in kernel.blocks]
    policy = xcd_remap(kernel)
    if policy is None:
        yield from (
            f"const int {name} = __builtin_amdgcn_workgroup_id_{axis}();"
            for axis, name in zip(AXES, names, strict=False)
        )
        return
    if len(kernel.grid) not in (2, 3) or len(policy.args) != 1:
        raise not_built("a remapped grid of one axis", policy.span, kernel.name)
    rows, columns = (text.index(count) for count in kernel.grid[:2])
    x, y = (f"__builtin_amdgcn_workgroup_id_{axis}()" for axis in "xy")
    number = f"{x} + (long){text.factor(kernel.grid[0])} * {y}"
    yield f"const tile_of own_tile = remapped({number}, {rows}, {columns}, {policy.args[0]});"
    yield from (f"const int {name} = own_tile.{part};" for name, part in zip(names, ("row", "column"), strict=False))
    yield from (f"const int {name} = __builtin_amdgcn_workgroup_id_z();" for name in names[2:])
