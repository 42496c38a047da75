"""Element expressions: what a `Map` computes for each element of its target."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from argus.core.dtype import DType
from argus.core.index import Cond, Index
from argus.core.ir.storage import View


@frozen(eq=False)
class Lit:
    """A number."""

    value: float


@frozen(eq=False)
class Num:
    """An integer expression, over the coordinates of the target's element, as a number."""

    value: Index


@frozen(eq=False)
class Get:
    """Element `at` of `view`, given over the coordinates of the target's element; the same thread must hold both."""

    view: View
    at: tuple[Index, ...]


@frozen(eq=False)
class Op:
    """An operation of the table `argus.core.elementwise` on its arguments."""

    name: str
    args: tuple[Elem, ...]


@frozen(eq=False)
class Cast:
    """The argument rounded to another type."""

    dtype: DType
    arg: Elem


@frozen(eq=False)
class Where:
    """`then` at elements where the test holds, else `other`."""

    test: Test
    then: Elem
    other: Elem


Elem = Lit | Num | Get | Op | Cast | Where


@frozen(eq=False)
class Holds:
    """A condition on integers and the element's coordinates."""

    cond: Cond


@frozen(eq=False)
class Compare:
    """A comparison of two element expressions."""

    op: Literal["<", "<=", "=="]
    left: Elem
    right: Elem


@frozen(eq=False)
class Both:
    """The conjunction of tests."""

    parts: tuple[Test, ...]


@frozen(eq=False)
class Either:
    """The disjunction of tests."""

    parts: tuple[Test, ...]


@frozen(eq=False)
class Neither:
    """The negation of a test."""

    part: Test


Test = Holds | Compare | Both | Either | Neither
