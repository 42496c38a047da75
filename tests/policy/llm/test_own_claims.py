from argus.policy.llm.own_claims import OWN, OwnClaim, ranked_claims
from argus.policy.planner import Choice, Observation
from tests.policy.llm.searches import SITUATION

EARLY, LATE = f"{OWN}: I39: `a.step == k` does not hold", f"{OWN}: I39: `b.step == k` does not hold"


def text(name: str, repairs: str = "") -> Choice:
    return Choice(name, (), (), text=name, repairs=repairs)


def test_claims_are_ranked_by_repairs_that_stood_then_by_what_they_excluded() -> None:
    situation = SITUATION
    for each in (
        Observation(text("one"), "refuted", stage="invariants", why=EARLY),
        Observation(text("two"), "refuted", stage="invariants", why=EARLY),
        Observation(text("three"), "refuted", stage="invariants", why=LATE),
        Observation(text("other"), "refuted", stage="invariants", why="I5: read too early"),
        Observation(text("four", "three"), "timed", 100.0),
        Observation(text("five", "two"), "refuted", stage="invariants", why="I5: read too early"),
    ):
        situation = situation.with_observation(each)

    assert ranked_claims(situation) == (OwnClaim(LATE, 1, 1), OwnClaim(EARLY, 2, 0))
    assert str(OwnClaim(LATE, 1, 1)) == f"excluded 1, of which 1 led to a repair that stood: {LATE}"
