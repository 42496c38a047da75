"""Where in a kernel a statement stands: by whom it is run."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Kernel, One, Role, Roles, Stmt, bodies


@frozen
class Place:
    """Run by the block, by each agent of a role, or by the one thread that it elects."""

    kernel: Kernel
    role: Role | None = None
    alone: bool = False

    @property
    def agent(self) -> int:
        """Threads of the agent, elected or not."""
        return self.kernel.threads if self.role is None else self.role.agent

    @property
    def threads(self) -> int:
        """Threads that run the statement together."""
        return 1 if self.alone else self.agent

    @property
    def owner(self) -> str:
        return "" if self.role is None else self.role.name

    def __str__(self) -> str:
        return "the kernel" if self.role is None else f"role `{self.role.name}`"


def placed(kernel: Kernel) -> Iterator[tuple[Place, Stmt]]:
    """Every statement with its place, in program order, each before what it contains."""
    yield from _placed(Place(kernel), kernel.body)


def _placed(place: Place, body: tuple[Stmt, ...]) -> Iterator[tuple[Place, Stmt]]:
    for stmt in body:
        yield place, stmt
        for position, part in enumerate(bodies(stmt)):
            match stmt:
                case Roles(roles=roles):
                    yield from _placed(evolve(place, role=roles[position]), part)
                case One():
                    yield from _placed(evolve(place, alone=True), part)
                case _:
                    yield from _placed(place, part)


def fault(kernel: Kernel, stmt: Stmt, code: str, message: str, help: str = "", here: str = "") -> Diagnostic:
    return Diagnostic(code, "error", message, Label(stmt.span, here), help=help, kernel=kernel.name)
