"""Claims of a model's own beside its problem's: ranked by what they excluded, credited with repairs that stood."""

from __future__ import annotations

from attrs import frozen

from argus.policy.planner import Situation

OWN = "own claim"
"""The first words of a refusal by a claim of the author's own."""


@frozen
class OwnClaim:
    """A claim by its refusal. excluded: kernels that it refuted. mended: those whose repair passed the whole gate."""

    refusal: str
    excluded: int
    mended: int

    def __str__(self) -> str:
        return f"excluded {self.excluded}, of which {self.mended} led to a repair that stood: {self.refusal}"


def ranked_claims(situation: Situation) -> tuple[OwnClaim, ...]:
    """The claims that have excluded a kernel: those with the most repairs that stood first, then the most excluded."""
    stood = {each.choice.repairs for each in situation.tried if each.passed and each.choice.repairs}
    found: dict[str, list[bool]] = {}
    for each in situation.tried:
        if each.why.startswith(OWN):
            found.setdefault(each.why, []).append(each.choice.name in stood)
    ranked = (OwnClaim(why, len(mended), sum(mended)) for why, mended in found.items())
    return tuple(sorted(ranked, key=lambda each: (-each.mended, -each.excluded)))
