"""Proved kernels that are shown to a model: one in whole, and the shipped one nearest to the problem at hand."""

from __future__ import annotations

from argus.policy.llm.instructions import EXAMPLES
from argus.policy.llm.roles import Question
from argus.policy.llm.texts import truncated, words_of


def retrieved(asked: Question, most: int) -> str:
    """A whole kernel of the target, and the shipped kernel whose subjects the problem and its reference name.

    Together they have at most `most` bytes; nothing is retrieved for a problem that names no subject.
    """
    view, target = asked.view, asked.state.situation.target
    whole = EXAMPLES.get(target, "")
    wanted = words_of(f"{view.problem} {asked.state.situation.problem} {view.reference}")
    scores = {each: len(wanted & words_of(each.subjects)) for each in view.examples if each.target == target}
    nearest = max(scores, key=lambda each: scores[each], default=None)
    if nearest is None or scores[nearest] == 0:
        return whole
    room = most - len(whole.encode("utf-8"))
    return (
        f"{whole}\nA shipped kernel of a problem like this one, `{nearest.name}`:\n\n{truncated(nearest.text, room)}\n"
    )
