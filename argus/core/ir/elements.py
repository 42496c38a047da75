"""Element expressions: what a `Map` computes."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from argus.core.dtype import DType
from argus.core.index import Cond, Index
from argus.core.ir.storage import View


@frozen(eq=False)
class Lit:
    value: float


@frozen(eq=False)
class Num:
    value: Index


@frozen(eq=False)
class Get:
    """The element of `view` at coordinates over those of the target; the same thread must hold it."""

    view: View
    at: tuple[Index, ...]


@frozen(eq=False)
class Op:
    name: str
    args: tuple[Elem, ...]


@frozen(eq=False)
class Cast:
    dtype: DType
    arg: Elem


@frozen(eq=False)
class Where:
    test: Test
    then: Elem
    other: Elem


Elem = Lit | Num | Get | Op | Cast | Where


@frozen(eq=False)
class Holds:
    cond: Cond


@frozen(eq=False)
class Compare:
    op: Literal["<", "<=", "=="]
    left: Elem
    right: Elem


@frozen(eq=False)
class Both:
    parts: tuple[Test, ...]


@frozen(eq=False)
class Either:
    parts: tuple[Test, ...]


@frozen(eq=False)
class Neither:
    part: Test


Test = Holds | Compare | Both | Either | Neither
