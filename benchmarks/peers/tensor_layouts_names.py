"""The names of `tensor-layouts` on top of `argus.layout`, to run its tests; see `benchmarks/layout_names.py`.

Only names, signatures and the classes of exceptions are adapted; every value is computed by Argus. A swizzled layout is
one class there (a layout with a swizzle) and a composed layout here.
"""

# pyright: basic
# ruff: noqa: ANN401 reason: an adapter of names, whose operands are whatever the other library takes

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from argus import layout as ours
from argus.layout import LayoutError


class Layout:
    """`Layout(shape, stride)`, `Layout(*layouts)`, with a swizzle that applies last."""

    def __init__(self, *parts: Any, swizzle: Any = None) -> None:
        made = _made(parts)
        self.shape, self.stride, self.swizzle = made.shape, made.stride, swizzle

    @classmethod
    def _of(cls, layout: Any, swizzle: Any = None) -> Layout:
        made = cls.__new__(cls)
        made.shape, made.stride, made.swizzle = layout.shape, layout.stride, swizzle
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and _key(self) == _key(other)

    def __hash__(self) -> int:
        return hash(_key(self))

    def __call__(self, *coord: Any) -> Any:
        place = coord[0] if len(coord) == 1 else coord
        if place is None:
            return self
        return _theirs(_call(to_argus(self), place))

    def squeeze(self) -> Any:
        return squeeze(self)

    def filter(self) -> Any:
        return _function("filter")(self)

    def __len__(self) -> int:
        return size(self)

    def __iter__(self) -> Iterator[Any]:
        return iter([idx2crd(index, self.shape) for index in range(size(self))])

    def __repr__(self) -> str:
        return f"Layout({self.shape!r}, {self.stride!r}" + (f", swizzle={self.swizzle!r})" if self.swizzle else ")")

    def __str__(self) -> str:
        shown = f"{_text(self.shape)} : {_text(self.stride)}"
        return f"({self.swizzle}) o ({shown})" if self.swizzle is not None else shown


def _made(parts: tuple[Any, ...]) -> Any:
    if not parts:
        return ours.Layout((), ())
    if all(isinstance(part, Layout) for part in parts):
        return ours.make_layout([to_argus(part) for part in parts])
    with_tuples = tuple(map(_tuples, parts))
    try:
        return ours.Layout(*with_tuples)
    except LayoutError as error:
        raise _error(error, parts) from error


def _error(error: LayoutError, parts: tuple[Any, ...]) -> Exception:
    """E801 for an argument of another type is a TypeError there, and names the parameter and the type."""
    message = error.diagnostic.message
    wrong = [(name, leaf) for name, part in zip(("shape", "stride"), parts, strict=False) for leaf in _leaves(part)]
    for name, leaf in wrong:
        if not isinstance(leaf, int):
            return TypeError(f"{name} has a {type(leaf).__name__}: {message}")
    return error


def _leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple | list) else [tree]


def _tuples(tree: Any) -> Any:
    return tuple(map(_tuples, tree)) if isinstance(tree, list | tuple) else tree


def _text(tree: Any) -> str:
    return f"({', '.join(map(_text, tree))})" if isinstance(tree, tuple) else str(tree)


def _key(layout: Layout) -> tuple[Any, ...]:
    return layout.shape, layout.stride, layout.swizzle


class ComposedLayout:
    def __init__(self, outer: Any, inner: Any, preoffset: int = 0) -> None:
        if not callable(outer):
            raise TypeError(f"ComposedLayout outer must be callable, got {type(outer).__name__}")
        self.outer, self.inner, self.preoffset = outer, inner, preoffset
        to_argus(self)

    @property
    def shape(self) -> Any:
        return self.inner.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposedLayout) and to_argus(self) == to_argus(other)

    def __hash__(self) -> int:
        return hash(to_argus(self))

    def __call__(self, *coord: Any) -> Any:
        place = coord[0] if len(coord) == 1 else coord
        return self if place is None else _theirs(_call(to_argus(self), place))

    def __len__(self) -> int:
        return size(self)

    def __iter__(self) -> Iterator[Any]:
        return iter([idx2crd(index, self.shape) for index in range(size(self))])

    def __repr__(self) -> str:
        return f"ComposedLayout({self.outer!r}, {self.inner!r}, preoffset={self.preoffset!r})"


class Swizzle:
    def __init__(self, bits: int, base: int, shift: int) -> None:
        made = ours.Swizzle(bits, base, shift)
        self.bits, self.base, self.shift = made.bits, made.base, made.shift

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Swizzle) and to_argus(self) == to_argus(other)

    def __hash__(self) -> int:
        return hash(to_argus(self))

    def __call__(self, offset: int) -> int:
        return to_argus(self)(offset)

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"


class Tensor:
    def __init__(self, layout: Any, offset: int = 0, data: Any = None) -> None:
        self._tensor = ours.Tensor(to_argus(layout), None, offset)
        self.data = data

    @classmethod
    def _of(cls, tensor: Any) -> Tensor:
        made = cls.__new__(cls)
        made._tensor = tensor
        return made

    @property
    def layout(self) -> Any:
        return _theirs(self._tensor.layout)

    offset = property(lambda self: self._tensor.offset)
    shape = property(lambda self: self._tensor.shape)
    stride = property(lambda self: as_affine_layout(self.layout).stride)

    @property
    def data(self) -> Any:
        return self._tensor.data

    @data.setter
    def data(self, value: Any) -> None:
        self._tensor = _refusing(TypeError, "E801", ours.Tensor, self._tensor.layout, value, self._tensor.offset)

    def view(self, layout: Any) -> Tensor:
        if self.data is None:
            raise TypeError("a view of a tensor without a buffer")
        return Tensor._of(self._tensor.view(to_argus(layout)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self._tensor == other._tensor

    def __hash__(self) -> int:
        return hash((self.layout, self.offset))

    def __call__(self, *coord: Any) -> Any:
        return self._tensor(*coord)

    def __getitem__(self, key: Any) -> Any:
        found = self._tensor[self._key(key)]
        return Tensor._of(found) if isinstance(found, ours.Tensor) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            self._tensor[self._key(key)] = value
        except LayoutError as error:
            raise TypeError(str(error)) from error

    def _key(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) != rank(self.layout):
            raise IndexError(f"{key} does not fit {self.layout}")
        if not isinstance(key, int | slice | tuple):
            raise TypeError(f"Invalid tensor index: {key!r}")
        return key

    def __repr__(self) -> str:
        return f"Tensor({self.layout}" + (f", offset={self.offset})" if self.offset else ")")

    def __str__(self) -> str:
        return f"{{{self.offset}}} ∘ {self.layout}"


class Tile(tuple[Any, ...]):
    __slots__ = ()

    def __new__(cls, *layouts: Any) -> Tile:
        return super().__new__(cls, layouts)


# -- there and back ------------------------------------------------------------------------------------------


def to_argus(value: Any) -> Any:
    """The value of `argus.layout` for one of theirs; int-tuples stay."""
    if isinstance(value, Layout):
        plain = ours.Layout(value.shape, value.stride)
        return plain if value.swizzle is None else ours.ComposedLayout(to_argus(value.swizzle), 0, plain)
    if isinstance(value, ComposedLayout):
        return ours.ComposedLayout(to_argus(value.outer), value.preoffset, to_argus(value.inner))
    if isinstance(value, Swizzle):
        return ours.Swizzle(value.bits, value.base, value.shift)
    if isinstance(value, Tensor):
        return to_argus(value.layout)
    if isinstance(value, tuple | list):
        return tuple(map(to_argus, value))
    if hasattr(value, "shape") and hasattr(value, "stride"):
        return ours.Layout(value.shape, value.stride)
    return value


def _theirs(value: Any) -> Any:
    if isinstance(value, ours.Layout):
        return Layout._of(value)
    if isinstance(value, ours.Swizzle):
        return Swizzle(value.bits, value.base, value.shift)
    if isinstance(value, ours.ComposedLayout):
        if isinstance(value.outer, ours.Swizzle) and value.offset == 0 and isinstance(value.inner, ours.Layout):
            return Layout._of(value.inner, _theirs(value.outer))
        return ComposedLayout(_theirs(value.outer), _theirs(value.inner), value.offset)
    return tuple(map(_theirs, value)) if isinstance(value, tuple) else value


def _call(layout: Any, place: Any) -> Any:
    if not isinstance(place, int | tuple):
        raise TypeError(f"a coordinate is an int or tuple, found {place!r}")
    return layout(place)


def _refusing(kind: type[Exception], code: str, function: Callable[..., Any], *operands: Any) -> Any:
    """A refusal with this code as their class of exception."""
    try:
        return function(*operands)
    except LayoutError as error:
        if error.code != code:
            raise
        raise kind(str(error)) from error


def _function(name: str) -> Callable[..., Any]:
    function = getattr(ours, name)

    def adapted(*operands: Any, **named: Any) -> Any:
        found = function(*map(to_argus, operands), **named)
        return found.holds if isinstance(found, ours.Answer) else _theirs(found)

    adapted.__name__ = name
    return adapted


SAME = """
    append coalesce compatible concat congruent cosize crd2crd crd2idx depth downcast elem_scale flat_divide flatten
    group has_none idx2crd inner_product is_int is_tuple left_inverse logical_divide make_ordered_layout
    max_common_layout max_common_vector mode nullspace prefix_product prepend product_each rank replace
    right_inverse safe_div shape_div shape_mod size slice_and_offset sort squeeze suffix_product tiled_divide
    tuple_max unflatten upcast weakly_congruent zipped_divide functionally_equal is_bijective is_contiguous is_injective
"""
PLACED = """
    blocked_product complement flat_product logical_product raked_product tile_to_shape tiled_product zipped_product
"""


def _placed(name: str) -> Callable[..., Any]:
    """A product or complement under CuTe's law; composed layouts are placed by their innermost part."""
    function = getattr(ours.by_law("cute"), name)

    def adapted(layout: Any, *operands: Any, **named: Any) -> Any:
        return _theirs(place(to_argus(layout), *map(to_argus, operands), **named))

    def place(layout: Any, *operands: Any, **named: Any) -> Any:
        if isinstance(layout, ours.ComposedLayout):
            return ours.ComposedLayout(layout.outer, layout.offset, place(layout.inner, *operands, **named))
        return function(layout, *operands, **named).layout

    return adapted


for _name in PLACED.split():
    globals()[_name] = _placed(_name)
for _name in SAME.split():
    globals()[_name] = _function(_name)
size, rank, idx2crd, squeeze = (_function(name) for name in ("size", "rank", "idx2crd", "squeeze"))
compose, slice_modes, dice_modes = _function("composition"), _function("slice_"), _function("dice")


def is_layout(value: Any) -> bool:
    return isinstance(value, Layout | ComposedLayout)


def is_affine(value: Any) -> bool:
    return isinstance(value.layout if isinstance(value, Tensor) else value, Layout)


def as_affine_layout(value: Any) -> Layout:
    layout = value.layout if isinstance(value, Tensor) else value
    if not isinstance(layout, Layout):
        raise TypeError(f"Expected affine Layout, got {type(layout).__name__}")
    return layout


def is_empty(value: Any) -> bool:
    layout = value.layout if isinstance(value, Tensor) else value
    return is_layout(layout) and layout.shape == ()


def as_list(tree: Any) -> list[Any]:
    return list(tree) if isinstance(tree, tuple) else [tree]


def crd2flat(coord: Any, shape: Any) -> int:
    return ours.crd2idx(coord, shape.shape if is_layout(shape) else shape)


def crd2offset(coord: Any, shape: Any, stride: Any) -> int:
    return ours.crd2idx(coord, shape, stride)


def iter_layout(layout: Any) -> Iterator[tuple[Any, int]]:
    return iter([(idx2crd(index, layout.shape), layout(index)) for index in range(size(layout))])


def hier_unzip(splitter: Callable[..., Any], layout: Any, tiler: Any) -> Any:
    def split(a: Any, b: Any) -> Any:
        return to_argus(splitter(_theirs(a), _theirs(b)))

    return _theirs(ours.hier_unzip(split, to_argus(layout), to_argus(tiler)))


def compute_col_major_strides(shape: Any) -> Any:
    return ours.Layout(shape).stride


def compute_row_major_strides(shape: Any) -> Any:
    return ours.row_major(shape).stride


def is_surjective(layout: Any, onto: int | None = None) -> Any:
    given = to_argus(layout)
    return ours.is_surjective(given, given.cosize() if onto is None else onto).holds


def to_F2_matrix(layout: Any) -> list[list[int]]:  # noqa: N802 reason: their name
    return ours.BinaryMatrix.of(to_argus(layout)).to_array().tolist()


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step
