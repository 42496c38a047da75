"""Serialisation of kernels and programs as plain data, for exchange between processes that do not trust each other.

    document = {"schema": "argus.kernels/2", "rows": [row*], "exported": [row number*]}
    row      = [kind, field*]

A row is one object: an expression, a view, a statement, a kernel. Its fields are numbers, texts, lists of these, or
numbers of earlier rows, so that a shared object is written once and no object contains itself. Instructions, targets
and element types are given by name, out of the tables of Argus; expressions are built by the normalising constructors.

`write` makes a document; `read` parses one strictly: closed unions, typed fields, then the invariants that tracing
would have established (`trace_invariants`) and well-formedness (`check`), since nothing has validated the data before.
"""

from __future__ import annotations

from argus.core.serde.kinds import Exportable
from argus.core.serde.reading import Bounds, MalformedError, read
from argus.core.serde.writing import SCHEMA, write

__all__ = ["SCHEMA", "Bounds", "Exportable", "MalformedError", "read", "write"]
