"""`LayoutError`, the exception of the layout algebra, and constructors for its common codes."""

from __future__ import annotations

from argus.core.diagnostic import ArgusError, Diagnostic

TABLE_LIMIT = 1 << 26
"""Most elements of a function's table."""


class LayoutError(ArgusError, ValueError):
    """An operation on layouts has no exact result, or an argument is not a layout.

    code: the error code, such as `E804`. index: the smallest index at which values disagree, None if no index is at
    fault. expected, found: the values there.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        help: str,
        index: int | None = None,
        expected: int | None = None,
        found: int | None = None,
    ) -> None:
        facts = (("index", index), ("expected", expected), ("found", found))
        shown = tuple((name, str(value)) for name, value in facts if value is not None)
        super().__init__(Diagnostic(code, "error", message, facts=shown, help=help))
        self.code = code
        self.index = index
        self.expected = expected
        self.found = found
        self._help = help

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.code, self.diagnostic.message, self._help, self.index, self.expected, self.found)


def _rebuild(
    code: str, message: str, repair: str, index: int | None, expected: int | None, found: int | None
) -> LayoutError:
    return LayoutError(code, message, help=repair, index=index, expected=expected, found=found)


def malformed(message: str, repair: str) -> LayoutError:
    """E801: an argument is not a shape or a stride, or the trees are not congruent."""
    return LayoutError("E801", message, help=repair)


def misplaced(message: str, repair: str) -> LayoutError:
    """E803: a coordinate, a mode number or a tiler does not fit the shape."""
    return LayoutError("E803", message, help=repair)


def too_large(fact: str) -> LayoutError:
    """E810: a table would exceed TABLE_LIMIT elements. fact: what needs the table."""
    return LayoutError(
        "E810",
        f"{fact}, a table holds at most {TABLE_LIMIT}",
        help="ask about a mode of it, about a smaller tile, or call it on the indices you need",
    )
