"""Kernels and programs as plain data, and back: what one process may tell another that does not trust it.

    document = {"schema": "argus.kernels/2", "rows": [row*], "exported": [row number*]}
    row      = [kind, field*]

A row is one object: an expression, a view, a statement, a kernel. Its fields are numbers, texts, lists of such, or the
numbers of rows before it, so that what is shared is written once and nothing contains itself. Instructions, targets and
element types are names of what Argus knows; expressions are made by the constructors that every kernel goes through.

`write` makes a document, `read` parses one strictly: closed unions, each field of its type, and then the facts that a
kernel states of itself (`facts`) and its well-formedness (`check`), as nothing else has looked at them.
"""

from __future__ import annotations

from argus.core.serde.kinds import Exportable
from argus.core.serde.reading import Bounds, MalformedError, read
from argus.core.serde.writing import SCHEMA, write

__all__ = ["SCHEMA", "Bounds", "Exportable", "MalformedError", "read", "write"]
