"""Parse layouts, swizzles and composed layouts from the text that `str` prints, in CuTe's notation.

    text      = composed
    composed  = part [ "o" int "o" part ]
    part      = "[" composed "]" | swizzle | layout
    swizzle   = ("Sw" | "SW" | "S") ( "<" int "," int "," int ">" | "_" int "_" int "_" int )
    layout    = tree [ ":" tree ]             a shape alone is column-major
    tree      = int | "(" [ tree { "," tree } [ "," ] ] ")"     `(4)` is 4, `(4,)` a tuple of one

Whitespace between tokens is ignored. An int may carry CuTe's mark of a static integer, `_4`.
"""

from __future__ import annotations

import re
from typing import NoReturn

from attrs import frozen

from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import IntTuple
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout

MAX_DEPTH = 32
"""Deepest nesting of brackets that the parser accepts."""
MAX_NUMBERS = 1024
MAX_CHARACTERS = 100_000
_MAX_DIGITS = 40

_NUMBER = re.compile("[0-9]+")
_INT = r"(?:-?_?|_-)[0-9]+"
_TOKEN = re.compile(
    rf"\s*(?:(?P<int>{_INT})|(?P<swizzle>S[wW]?(?=\s*<|_))|(?P<sign>[()\[\]:,;o])|(?P<end>\Z)|(?P<other>.))", re.DOTALL
)
_SWIZZLE = re.compile(
    r"S[wW]?(?:\s*<\s*(-?[0-9]{1,3})\s*,\s*(-?[0-9]{1,3})\s*,\s*(-?[0-9]{1,3})\s*>"
    r"|_(-?[0-9]{1,3})_(-?[0-9]{1,3})_(-?[0-9]{1,3}))"
)
_CONTEXT = 36


def parse(text: str) -> LayoutLike:
    """The layout, swizzle or composed layout that a text denotes; `parse(str(x)) == x`.

    Raises LayoutError: E802 with the column for text outside the grammar; E801 or E808 for text in the grammar that
    denotes no layout or swizzle.
    """
    found, after = _parse_composed(_Source.of(text), 0, 0)
    _expect_end(after)
    return found


def parse_layout(text: str) -> Layout:
    """As `parse`, but accepts only a layout."""
    found, after = _parse_shape_stride(_Source.of(text).token(0))
    _expect_end(after)
    return found


def parse_pair(text: str) -> tuple[Layout, Layout]:
    """Parse `threads ; values`, the text of a thread-value layout. Raises LayoutError like `parse`."""
    threads, between = _parse_shape_stride(_Source.of(text).token(0))
    if between.text != ";":
        between.refuse("`;` between the layout of the threads and that of the values")
    values, after = _parse_shape_stride(between.next())
    _expect_end(after)
    return threads, values


@frozen
class _Source:
    text: str

    @staticmethod
    def of(text: str) -> _Source:
        if len(text) > MAX_CHARACTERS:
            raise _too_long(f"{len(text)} characters", MAX_CHARACTERS)
        numbers = sum(1 for _ in _NUMBER.finditer(text))
        if numbers > MAX_NUMBERS:
            raise _too_long(f"{numbers} numbers", MAX_NUMBERS)
        return _Source(text)

    def token(self, at: int) -> _Token:
        """The token at or after a position; at the end of the text, the end token."""
        found = _TOKEN.match(self.text, at)
        assert found is not None
        kind = str(found.lastgroup)
        return _Token(self, kind, found[kind], found.start(kind), found.end())


@frozen
class _Token:
    source: _Source
    kind: str
    text: str
    start: int
    stop: int

    def next(self) -> _Token:
        return self.source.token(self.stop)

    def refuse(self, expected: str, found: str = "") -> NoReturn:
        """Raise E802 at this token's column, with the text around it and a caret below."""
        seen = found or ("the end" if self.kind == "end" else f"`{self.text[:_CONTEXT]}`")
        first = max(0, self.start - _CONTEXT)
        shown = "".join(c if c.isprintable() else " " for c in self.source.text[first : self.start + _CONTEXT])
        raise LayoutError(
            "E802",
            f"column {self.start + 1}: expected {expected}, found {seen}\n  {shown}\n  {' ' * (self.start - first)}^",
            help="write it as layouts print: `(4,8):(1,4)`, `Sw<3,4,3>` or `Sw<3,4,3> o 0 o (8,8):(8,1)`",
        )


def _too_long(what: str, most: int) -> LayoutError:
    # Default strides are products of all extents before them: a short text could otherwise ask for gigabytes of digits.
    return LayoutError(
        "E802", f"the text has {what}, at most {most} are read as a layout", help="build the layout in Python"
    )


def _expect_end(token: _Token) -> None:
    if token.kind != "end":
        token.refuse("the end of the text")


def _parse_composed(source: _Source, at: int, depth: int) -> tuple[LayoutLike, _Token]:
    outer, after = _parse_part(source.token(at), depth)
    if after.text != "o":
        return outer, after
    offset, after = _parse_int(after.next(), "a number for the offset")
    if after.text != "o":
        after.refuse("`o` between the offset and the inner layout")
    inner, after = _parse_part(after.next(), depth)
    return ComposedLayout(outer, offset, inner), after


def _parse_part(token: _Token, depth: int) -> tuple[LayoutLike, _Token]:
    if token.text == "[":
        _check_depth(token, depth)
        inside, after = _parse_composed(token.source, token.stop, depth + 1)
        if after.text != "]":
            after.refuse("`]`")
        return inside, after.next()
    return _parse_swizzle(token) if token.kind == "swizzle" else _parse_shape_stride(token)


def _parse_swizzle(token: _Token) -> tuple[Swizzle, _Token]:
    found = _SWIZZLE.match(token.source.text, token.start)
    if found is None:
        token.refuse("a swizzle such as `Sw<3,4,3>`, its numbers below 1000")
    bits, base, shift = (int(digits) for digits in found.groups() if digits is not None)
    return Swizzle(bits, base, shift), token.source.token(found.end())


def _parse_shape_stride(token: _Token) -> tuple[Layout, _Token]:
    shape, after = _parse_tree(token, 0)
    if after.text != ":":
        return Layout(shape), after
    stride, after = _parse_tree(after.next(), 0)
    return Layout(shape, stride), after


def _parse_tree(token: _Token, depth: int) -> tuple[IntTuple, _Token]:
    if token.text != "(":
        return _parse_int(token, "a number or `(`")
    _check_depth(token, depth)
    parts: list[IntTuple] = []
    token = token.next()
    comma = False
    while token.text != ")":
        part, token = _parse_tree(token, depth + 1)
        parts.append(part)
        comma = token.text == ","
        if comma:
            token = token.next()
        elif token.text != ")":
            token.refuse("`,` or `)`")
    return (parts[0] if len(parts) == 1 and not comma else tuple(parts)), token.next()


def _parse_int(token: _Token, expected: str) -> tuple[int, _Token]:
    if token.kind != "int":
        token.refuse(expected)
    if len(token.text) > _MAX_DIGITS:
        token.refuse(f"a number of at most {_MAX_DIGITS} digits", f"one of {len(token.text)}")
    return int(token.text.replace("_", "")), token.next()


def _check_depth(token: _Token, depth: int) -> None:
    if depth >= MAX_DEPTH:
        token.refuse(f"at most {MAX_DEPTH} levels of brackets")
