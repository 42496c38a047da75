"""Well-formedness checks of a traced kernel or program; proof, interpreter and emitters assume that they pass."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.check.agents import check_agent, check_roles
from argus.core.check.clusters import check_clusters
from argus.core.check.completion import check_barriers, check_completion, check_queues
from argus.core.check.executor import statements_with_executor
from argus.core.check.formulas import check_formulas, formula_claims
from argus.core.check.masks import has_masks, masks_by_range
from argus.core.check.operands import check_operands
from argus.core.check.parts import claim_views, expressions, views
from argus.core.check.programs import check_program
from argus.core.check.reads import check_reads, indirect_tags, read_arrays, read_terms
from argus.core.check.scopes import check_scopes
from argus.core.check.unended_rows import ends_rows, unended_rows, unlike_ends
from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Kernel, Policy, walk
from argus.core.span import Span
from argus.core.target import Target

__all__ = [
    "check",
    "check_program",
    "check_thread_count",
    "claim_views",
    "ends_rows",
    "expressions",
    "formula_claims",
    "has_masks",
    "indirect_tags",
    "masks_by_range",
    "read_arrays",
    "read_terms",
    "unended_rows",
    "unlike_ends",
    "views",
]


def check(kernel: Kernel) -> tuple[Diagnostic, ...]:
    """All errors of a kernel, those of scopes first, then in program order; empty for a well-formed kernel."""
    return tuple(_checks(kernel))


def _checks(kernel: Kernel) -> Iterator[Diagnostic]:
    yield from check_thread_count(kernel.name, kernel.target, kernel.threads, kernel.span)
    yield from _check_resident(kernel)
    yield from check_scopes(kernel)
    yield from check_roles(kernel)
    yield from check_barriers(kernel)
    yield from check_clusters(kernel)
    for executor, stmt in statements_with_executor(kernel):
        yield from check_operands(executor, stmt)
        yield from check_agent(executor, stmt)
        yield from check_completion(executor, stmt)
    yield from check_queues(kernel)
    yield from check_reads(kernel)
    yield from check_formulas(kernel)


def check_thread_count(name: str, target: Target, threads: int, span: Span) -> tuple[Diagnostic, ...]:
    """Error E213 unless the thread count is a positive multiple of the wave size within the target's limit."""
    unit, most = target.unit, target.max_threads
    if 0 < threads <= most and threads % unit == 0:
        return ()
    message = f"kernel `{name}` has {threads} threads; {target} runs whole waves of {unit}, at most {most}"
    label = Label(span, "declared here")
    return (Diagnostic("E213", "error", message, label, help=f"choose a multiple of {unit} up to {most}", kernel=name),)


def _check_resident(kernel: Kernel) -> Iterator[Diagnostic]:
    """Error E232 unless one processor holds the waves of the resident blocks, and roles leave the registers alone."""
    target, count = kernel.target, kernel.resident
    need = count * (kernel.threads // target.unit)
    reallocates = any(isinstance(stmt, Policy) and stmt.name == "registers" for stmt in walk(kernel.body))
    label = Label(kernel.span, "declared here")
    if count < 1 or need > max(target.waves, kernel.threads // target.unit):
        message = f"{count} resident blocks of `{kernel.name}` have {need} waves; {target} holds {target.waves}"
        most = target.waves * target.unit // kernel.threads
        yield Diagnostic("E232", "error", message, label, help=f"ask for 1 to {most} blocks", kernel=kernel.name)
    elif count > 1 and reallocates:
        message = f"{count} resident blocks of `{kernel.name}`, whose roles request registers"
        help_ = "leave `resident` out: roles that request registers divide those of a block that is alone"
        yield Diagnostic("E232", "error", message, label, help=help_, kernel=kernel.name)
