"""Divisions of a loop's next iteration, computed while the last product of the iteration before is still running.

A persistent kernel divides a tile's number several times, each time by what the division before has found. At the
beginning of a tile no product runs, so that the tensor cores would wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from argus.core.ir import For, If, Mma, Stmt, Wait

EARLY = """\
// The value, computed before what follows: the compiler does not move it behind an instruction that is `volatile`.
HELPER int computed(int x) { asm volatile("" : "+r"(x)); return x; }
"""
LEAST = 3
"""Divisions that take as long as a product."""
_NUMBER = "next_number"
"""The loop's variable in the next iteration: not made of its name, which would be a user's again."""


@frozen(eq=False)
class LastWait:
    """The wait for the last product that an iteration itself starts. branch: the `if` in which it is, of a body whose
    other iterations start none.
    """

    wait: Stmt
    branch: If | None = None


def last_wait(loop: For) -> LastWait | None:
    """That of a loop's body; None if there is none."""
    if loop.step != 1:
        return None
    branches = [stmt for stmt in loop.body if isinstance(stmt, If)]
    found = _last_wait(loop.body)
    if found is not None or len(branches) != 1:
        return None if found is None else LastWait(found)
    inside = _last_wait(branches[0].then)
    return None if inside is None else LastWait(inside, branches[0])


def _last_wait(body: Sequence[Stmt]) -> Stmt | None:
    found, started = None, False
    for stmt in body:
        if isinstance(stmt, Wait) and stmt.queue == "wgmma":
            found, started = (stmt if started else found), False
        elif isinstance(stmt, Mma):
            started = True
    return found


@frozen
class NextDivisions:
    """Texts for a loop over a variable: quotients by name, each of which may use those before; the loop's ends."""

    variable: str
    quotients: Sequence[tuple[str, str]]
    start: str
    stop: str

    def first(self) -> list[str]:
        """Ahead of the loop: those of its first iteration."""
        names = ", ".join(f"next_{name} = 0" for name, _ in self.quotients)
        return [f"int {names};", f"if ({self.start} < {self.stop}) {{", *self._of(self.start), "}"]

    def now(self) -> list[str]:
        """At the beginning of an iteration."""
        return [f"    const int {name} = next_{name};" for name, _ in self.quotients]

    def later(self) -> list[str]:
        """Within an iteration: those of the next one, or of the last."""
        return [
            "{",
            f"    const int {_NUMBER} = min({self.variable} + 1, ({self.stop}) - 1);",
            "    {",
            *(f"    {line}" for line in self._of(_NUMBER)),
            "    }",
            "}",
        ]

    def _of(self, number: str) -> list[str]:
        found = [f"    const int {self.variable} = {number};"]
        found += [f"    const int {name} = {text};" for name, text in self.quotients]
        return found + [f"    next_{name} = computed({name});" for name, _ in self.quotients]


def uses_next_divisions(lines: Sequence[str]) -> bool:
    """Whether lines of a kernel use `computed`."""
    return any("= computed(" in line for line in lines)
