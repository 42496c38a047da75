"""What `torch.compile(backend="argus")` made of each graph: kernels with their verdicts, and what eager torch runs."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen


@frozen
class KernelEntry:
    """A kernel. nests: what it computes, as text. seconds: that its proof took in this process."""

    name: str
    config: str
    nests: str
    verdict: str
    assumptions: tuple[str, ...]
    seconds: float


@frozen
class EagerEntry:
    """An operation that eager torch runs, and what is not covered."""

    operation: str
    node: str
    why: str


@frozen
class RewriteEntry:
    """Sums in another order, proved equal. rule: its name. old: the nest of the graph. new: the nests instead."""

    rule: str
    old: str
    new: tuple[str, ...]


@frozen
class GraphEntry:
    """A compiled graph. operators: of Argus that it calls. rewrites: of its sums.

    seconds: from the capture on, those in proofs included.

    failed: templates whose kernel is not proved, with the reason. in_proofs: seconds in proofs, those that failed
    included. operations: of aten in the graph.
    """

    kernels: tuple[KernelEntry, ...] = field(factory=tuple[KernelEntry, ...])
    eager: tuple[EagerEntry, ...] = field(factory=tuple[EagerEntry, ...])
    operators: tuple[str, ...] = ()
    seconds: float = 0.0
    failed: tuple[str, ...] = ()
    in_proofs: float = 0.0
    operations: int = 0
    rewrites: tuple[RewriteEntry, ...] = ()

    @property
    def covered(self) -> float:
        """The share of the operations that eager torch does not run."""
        return 1 - len(self.eager) / max(1, self.operations)

    def __str__(self) -> str:
        share = 100 * self.in_proofs / self.seconds if self.seconds else 0.0
        counts = f"{len(self.kernels)} kernels, {len(self.eager)} operations in eager torch"
        lines = [f"{counts}, {self.seconds:.2f} s to compile, {share:.0f} % of it in proofs"]
        for each in self.kernels:
            lines.append(f"  kernel {each.name} {each.config}: {each.verdict}")
            lines += [f"    {line}" for line in each.nests.splitlines()]
        lines += [f"  operator {each}" for each in self.operators]
        for each in self.rewrites:
            lines.append(f"  rewritten, {each.rule}: proved")
            lines += [f"    {line}" for line in each.old.splitlines()]
            lines.append("   as")
            lines += [f"    {line}" for nest in each.new for line in nest.splitlines()]
        lines += [f"  not proved: {each}" for each in self.failed]
        lines += [f"  eager {each.operation} ({each.node}): {each.why}" for each in self.eager]
        return "\n".join(lines)


_GRAPHS: list[GraphEntry] = []


def report() -> tuple[GraphEntry, ...]:
    """What has been compiled since the start, or since `clear_report`, in order."""
    return tuple(_GRAPHS)


def clear_report() -> None:
    _GRAPHS.clear()


def record(entry: GraphEntry) -> None:
    _GRAPHS.append(entry)


def fallback_text(entries: Sequence[EagerEntry]) -> str:
    """The operations in one line, each once, with the first reason."""
    reasons = {each.operation: each.why for each in reversed(entries)}
    return "; ".join(f"{operation}: {why}" for operation, why in sorted(reasons.items()))
