"""An operation of a ring protocol with the statement that it was read from."""

from __future__ import annotations

from attrs import frozen

from argus.core.index import Cond
from argus.core.ir import Buffer, Stmt
from argus.core.protocol.ring import Op


@frozen(eq=False)
class Placed:
    """One operation of the loop, where it comes from, and on which array of slots or barriers it works.

    groups: of products that a read is made of.
    """

    op: Op
    stmt: Stmt
    on: Buffer | None
    guard: Cond
    groups: int = 0
