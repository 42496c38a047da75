"""Proved kernels that are shown to a model as examples, retrieved for the problem at hand."""

from __future__ import annotations

from argus.policy.llm.instructions import EXAMPLES as PRODUCTS
from argus.policy.llm.roles import Question
from argus.policy.llm.texts import words_of
from argus.policy.llm.view import Example

EXAMPLES: tuple[Example, ...] = tuple(
    Example(f"matmul_{target}", target, "gemm matrix product contraction mma A B C", text)
    for target, text in PRODUCTS.items()
)
"""Each is proved by a test."""
_MOST = 2


def retrieved(asked: Question, most: int) -> str:
    """The examples of the target nearest to the problem and its reference, as many as fit into `most` bytes."""
    view, target = asked.view, asked.state.situation.target
    wanted = words_of(f"{view.problem} {asked.state.situation.problem} {view.reference}")
    known = [each for each in EXAMPLES if each.target == target]
    ranked = sorted(known, key=lambda each: -len(wanted & words_of(f"{each.name} {each.subjects}")))
    found: list[str] = []
    for each in ranked[:_MOST]:
        if sum(map(len, found)) + len(each.text.encode("utf-8")) <= most:
            found.append(each.text)
    return "\n".join(found)
