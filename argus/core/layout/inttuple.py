"""Int-tuples: an int, or a tuple of int-tuples. Shapes, strides and coordinates are int-tuples.

Names and semantics are CuTe's [Cecka 2026, CuTe layout representation and algebra, section 2]. A tuple of one element
differs from the element: `4` has rank 1 and depth 0, `(4,)` has rank 1 and depth 1.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from operator import index, mul
from typing import Union, cast

from argus.core.layout.faults import LayoutError, malformed, misplaced

IntTuple = Union[int, tuple["IntTuple", ...]]
Coordinate = Union[int, None, tuple["Coordinate", ...]]
"""An int-tuple in which None selects a whole mode."""


def text(tree: Coordinate) -> str:
    """CuTe's notation: `(4,(2,3))`; a tuple of one has a trailing comma, since `(4)` is 4."""
    if isinstance(tree, tuple):
        return f"({','.join(map(text, tree))}{',' if len(tree) == 1 else ''})"
    return "_" if tree is None else str(tree)


def checked(tree: object, what: str) -> IntTuple:
    """The tree with Python ints as leaves. Raises LayoutError (E801) for anything else, bools included."""
    if tree.__class__ is int:
        return cast(int, tree)
    if isinstance(tree, tuple):
        return tuple(checked(part, what) for part in cast(tuple[object, ...], tree))
    if not isinstance(tree, bool):
        try:
            return index(tree)  # pyright: ignore[reportArgumentType] reason: whatever has __index__ is an integer
        except TypeError:
            pass
    repair = "write a tuple" if tree.__class__ is list else "write an int or a nested tuple of ints"
    raise malformed(f"{what} has {tree!r}, a {type(tree).__name__}; expected an int or a tuple of ints", repair)


def integer(value: object, what: str) -> int:
    """The value as a Python int. Raises LayoutError (E801) for anything else, bools included."""
    found = checked(value, what)
    if isinstance(found, tuple):
        raise malformed(f"{what} is {text(found)}, expected an int", "give an int")
    return found


def checked_coordinate(coord: object) -> Coordinate:
    """The coordinate with Python ints and None as leaves. Raises LayoutError (E801) for anything else."""
    if isinstance(coord, tuple):
        return tuple(map(checked_coordinate, cast(tuple[object, ...], coord)))
    return None if coord is None else checked(coord, "coordinate")


def is_int(tree: object) -> bool:
    return isinstance(tree, int) and not isinstance(tree, bool)


def is_tuple(tree: object) -> bool:
    return isinstance(tree, tuple)


def has_none(tree: Coordinate) -> bool:
    """Whether any leaf is None."""
    return any(map(has_none, tree)) if isinstance(tree, tuple) else tree is None


def rank(tree: IntTuple) -> int:
    """The number of modes; 1 for an int."""
    return len(tree) if isinstance(tree, tuple) else 1


def depth(tree: IntTuple) -> int:
    """Levels of nesting; 0 for an int."""
    return 1 + max(map(depth, tree), default=0) if isinstance(tree, tuple) else 0


def flatten(tree: IntTuple) -> tuple[int, ...]:
    """The leaves, left to right."""
    if not isinstance(tree, tuple):
        return (integer(tree, "an int-tuple"),)
    leaves: list[int] = []
    for part in tree:
        if part.__class__ is int:
            leaves.append(cast(int, part))
        else:
            leaves += flatten(part)
    return tuple(leaves)


def unflatten(leaves: tuple[int, ...], profile: IntTuple) -> IntTuple:
    """The tree congruent to `profile` with these leaves; the inverse of `flatten`. Raises LayoutError (E803)."""
    wanted = len(flatten(profile))
    if len(leaves) != wanted:
        raise misplaced(
            f"{len(leaves)} leaves do not fill the profile {text(profile)} of {wanted}", f"give {wanted} leaves"
        )
    rest = iter(leaves)

    def fill(part: IntTuple) -> IntTuple:
        return tuple(map(fill, part)) if isinstance(part, tuple) else next(rest)

    return fill(profile)


def product(tree: IntTuple) -> int:
    """The number of elements of a shape."""
    return prod(map(product, tree)) if isinstance(tree, tuple) else tree


def product_each(tree: IntTuple) -> tuple[int, ...]:
    """The number of elements of each mode; an int is one mode, as in CuTe."""
    return tuple(map(product, tree if isinstance(tree, tuple) else (tree,)))


def signum(value: int) -> int:
    """-1, 0 or 1."""
    return (value > 0) - (value < 0)


def tuple_max(tree: IntTuple) -> int:
    """The largest leaf. Raises LayoutError (E801) for a tree without leaves."""
    leaves = flatten(tree)
    if not leaves:
        raise malformed("the largest leaf of ()", "give a tree with leaves")
    return max(leaves)


def inner_product(a: IntTuple, b: IntTuple) -> int:
    """The sum of products of leaves of congruent trees. Raises LayoutError (E801) otherwise."""
    _require_congruent(a, b, "inner_product")
    return sum(map(mul, flatten(a), flatten(b)))


def elem_scale(a: IntTuple, b: IntTuple) -> IntTuple:
    """Each leaf of `a` times the size of the corresponding subtree of `b`. Raises LayoutError (E801)."""
    if isinstance(a, tuple):
        return tuple(elem_scale(x, y) for x, y in _pair_modes(a, b, "elem_scale"))
    return a * product(b)


def ceil_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """The number of tiles `b` that cover `a`, mode by mode; an int `b` consumes the modes of a tuple from the first on.

    Raises LayoutError (E801) for profiles that do not fit.
    """
    if isinstance(a, tuple):
        if isinstance(b, tuple):
            return tuple(ceil_div(x, y) for x, y in _pair_modes(a, b, "ceil_div", shorter=True)) + a[len(b) :]
        parts: list[IntTuple] = []
        for part in a:
            parts.append(ceil_div(part, b))
            b = -(-b // product(part))
        return tuple(parts)
    below = product(b)
    if below <= 0:
        raise malformed(f"ceil_div by {text(b)}", "divide by a positive extent")
    return -(-a // below)


def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Divide a shape by `b` elements, from the first mode on; mode by mode for a tuple.

    Each extent must divide the remaining divisor or be a multiple of it: 2 divided by 4 leaves 1, and a divisor of 2
    for the next mode. Raises LayoutError (E807) otherwise.
    """
    if isinstance(a, tuple):
        if isinstance(b, tuple):
            return tuple(shape_div(x, y) for x, y in _pair_modes(a, b, "shape_div"))
        parts: list[IntTuple] = []
        for part in a:
            parts.append(shape_div(part, b))
            b = cast(int, shape_div(b, product(part)))
        return tuple(parts)
    below = product(b)
    if below == 0 or (a % below != 0 and (a == 0 or below % a != 0)):
        raise LayoutError(
            "E807",
            f"shape_div: {a} and {below} do not divide, one way or the other",
            help="choose extents of which one is a multiple of the other",
        )
    return -(-a // below)


def prefix_product(tree: IntTuple, init: IntTuple = 1) -> IntTuple:
    """For each leaf, `init` times the product of the leaves before it: the strides of a column-major shape."""
    if isinstance(init, tuple):
        if not isinstance(tree, tuple):
            raise malformed(f"prefix_product of {text(tree)} from {text(init)}", "give an int to begin with")
        return tuple(prefix_product(x, y) for x, y in _pair_modes(tree, init, "prefix_product"))
    if not isinstance(tree, tuple):
        integer(tree, "a shape")
        return init
    parts: list[IntTuple] = []
    for part in tree:
        if isinstance(part, int):
            parts.append(init)
            init *= part
        else:
            parts.append(prefix_product(part, init))
            init *= product(part)
    return tuple(parts)


def suffix_product(tree: IntTuple, init: int = 1) -> IntTuple:
    """For each leaf, `init` times the product of the leaves after it: the strides of a row-major shape."""
    leaves = flatten(tree)
    after = tuple(accumulate(reversed(leaves[1:]), mul, initial=init))
    return unflatten(after[::-1][: len(leaves)], tree)


# -- coordinates ---------------------------------------------------------------------------------------------


def idx2crd(idx: IntTuple, shape: IntTuple, stride: IntTuple | None = None) -> IntTuple:
    """The coordinate in `shape` of an index, in colexicographic order. With `stride`: index // stride % extent.

    A tuple is converted mode by mode, so that an int in it is an index into that mode, as in CuTe's `stride.hpp`:
    (1,5) in (3,(2,3)) is (1,(1,2)). An index beyond the size wraps around. Raises LayoutError: E803 if it does not fit
    the shape, E801 for an invalid shape.
    """
    extents, place = _checked_extents(shape), checked(idx, "index")
    if stride is None:
        return _natural_coordinate(place, extents)
    return _coordinate(place, extents, checked(stride, "stride"))


def _natural_coordinate(idx: IntTuple, shape: IntTuple) -> IntTuple:
    if isinstance(idx, tuple) and isinstance(shape, tuple):
        _require_rank(idx, shape)
        return tuple(map(_natural_coordinate, idx, shape))
    return _coordinate(idx, shape, prefix_product(shape))


def _coordinate(idx: IntTuple, shape: IntTuple, steps: IntTuple) -> IntTuple:
    if isinstance(shape, tuple):
        parts = _pair_modes(shape, steps, "idx2crd")
        if isinstance(idx, tuple):
            _require_rank(idx, shape)
            return tuple(_coordinate(i, s, d) for i, (s, d) in zip(idx, parts, strict=True))
        return tuple(_coordinate(idx, s, d) for s, d in parts)
    if isinstance(idx, tuple) or isinstance(steps, tuple):
        raise misplaced(f"coordinate {text(idx)} does not fit the shape {text(shape)}", f"give an index into {shape}")
    return (idx // steps) % shape if steps else 0


def crd2idx(coord: Coordinate, shape: IntTuple, stride: IntTuple | None = None) -> int:
    """The inner product of a coordinate with the strides (column-major by default).

    An int in place of a tuple is an index into that mode, split by the shape; the last mode takes the rest, without a
    bounds check. None counts as 0. Raises LayoutError: E803 if it does not fit the shape, E801 for an invalid shape.
    """
    extents = _checked_extents(shape)
    steps = prefix_product(extents) if stride is None else checked(stride, "stride")
    return image(checked_coordinate(coord), extents, steps)


def image(coord: Coordinate, shape: IntTuple, steps: IntTuple) -> int:
    """`crd2idx` without the checks: the trees must be well formed."""
    if isinstance(coord, tuple):
        _require_rank(coord, shape)
        parts = _pair_modes(cast(tuple[IntTuple, ...], shape), steps, "crd2idx")
        return sum(image(c, s, d) for c, (s, d) in zip(coord, parts, strict=True))
    rest = coord or 0
    if isinstance(shape, tuple):
        total = 0
        parts = _pair_modes(shape, steps, "crd2idx")
        for extent, step in parts[:-1]:
            rest, here = divmod(rest, product(extent))
            total += image(here, extent, step)
        return total + image(rest, *parts[-1]) if parts else 0
    if isinstance(steps, tuple):
        raise malformed(f"shape {text(shape)} and stride {text(steps)} are not congruent", "give congruent trees")
    return rest * steps


def crd2crd(coord: IntTuple, dst_shape: IntTuple, src_shape: IntTuple | None = None) -> IntTuple:
    """A coordinate of `src_shape` as the coordinate of the same element in `dst_shape`.

    Raises LayoutError (E803) if the coordinate does not fit, or a tuple is to become an index without `src_shape`.
    """
    if isinstance(coord, tuple):
        if isinstance(dst_shape, tuple) and src_shape is None:
            _require_rank(coord, dst_shape)
            return tuple(crd2crd(c, s) for c, s in zip(coord, dst_shape, strict=True))
        if src_shape is None:
            raise misplaced(f"crd2crd of {text(coord)} to the index of {text(dst_shape)}", "give src_shape")
        coord = crd2idx(coord, src_shape)
    if isinstance(dst_shape, tuple):
        return idx2crd(coord, dst_shape)
    if not 0 <= coord < dst_shape:
        raise misplaced(f"coordinate {coord} is outside the shape {dst_shape}", f"give one of 0 .. {dst_shape - 1}")
    return coord


def slice_(coord: Coordinate, tree: IntTuple) -> tuple[IntTuple, ...] | IntTuple:
    """The parts of `tree` at which `coord` is None, as a tuple. Raises LayoutError (E803)."""
    return _select_modes(coord, tree, whole=True)


def dice(coord: Coordinate, tree: IntTuple) -> tuple[IntTuple, ...] | IntTuple:
    """The parts of `tree` at which `coord` is an int, as a tuple. Raises LayoutError (E803)."""
    return _select_modes(coord, tree, whole=False)


def _select_modes(coord: Coordinate, tree: IntTuple, *, whole: bool) -> tuple[IntTuple, ...]:
    if isinstance(coord, tuple):
        _require_rank(coord, tree)
        pairs = zip(coord, cast(tuple[IntTuple, ...], tree), strict=True)
        return tuple(part for c, each in pairs for part in _select_modes(c, each, whole=whole))
    return (tree,) if (coord is None) == whole else ()


def _checked_extents(shape: object) -> IntTuple:
    extents = checked(shape, "shape")
    if any(extent <= 0 for extent in flatten(extents)):
        raise malformed(f"shape {text(extents)} has an extent that is not positive", "use positive extents")
    return extents


# -- predicates ----------------------------------------------------------------------------------------------


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether both have the same profile: ints at the same places, tuples of equal rank elsewhere."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(congruent, a, b))
    return not isinstance(a, tuple) and not isinstance(b, tuple)


def weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether the profile of `b` refines that of `a`: an int of `a` matches any tree."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_congruent, a, b))
    return True


def compatible(a: IntTuple, b: IntTuple) -> bool:
    """Whether `b` refines `a`: each int of `a` is the size of its subtree in `b`. `b` accepts coordinates of `a`."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(compatible, a, b))
    return a == product(b)


def weakly_compatible(a: IntTuple, b: IntTuple) -> bool:
    """Like `compatible`, but the size of a subtree may be a multiple of the int: `a` tiles `b` mode by mode."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_compatible, a, b))
    return a != 0 and product(b) % a == 0


def _require_congruent(a: IntTuple, b: IntTuple, what: str) -> None:
    if not congruent(a, b):
        raise malformed(f"{what} of {text(a)} and {text(b)}: the trees are not congruent", "give congruent trees")


def _pair_modes(
    a: tuple[IntTuple, ...], b: IntTuple, what: str, *, shorter: bool = False
) -> list[tuple[IntTuple, IntTuple]]:
    if not isinstance(b, tuple) or len(b) > len(a) or (len(b) < len(a) and not shorter):
        raise malformed(f"{what} of {text(a)} and {text(b)}: the ranks differ", f"give a tuple of {len(a)}")
    return list(zip(a, b, strict=False))


def _require_rank(coord: tuple[Coordinate, ...], shape: IntTuple) -> None:
    if not isinstance(shape, tuple) or len(shape) != len(coord):
        raise misplaced(
            f"coordinate {text(coord)} does not fit the shape {text(shape)}",
            f"give an index or a coordinate of rank {rank(shape)}",
        )
