"""A shared search problem for planner tests: eight designs of two techniques and a broken one."""

from __future__ import annotations

from argus.policy.bandit import CONSTANT, Bandit, WeightPrior
from argus.policy.llm.memory import Memory
from argus.policy.llm.planner import Llm
from argus.policy.planner import Choice, Observation, Situation, State, Step

NAMES = (CONSTANT, "wide", "staged", "broken")


def choice(wide: int, staged: int, broken: int) -> Choice:
    steps = tuple(Step(name, "") for name, on in (("wide", wide), ("staged", staged), ("broken", broken)) if on)
    features = (1.0, float(wide), float(staged), float(broken))
    return Choice(f"d{wide}{staged}{broken}", steps, features, (("stages", 1 + 3 * staged), ("wide", bool(wide))))


OPTIONS = tuple(choice(wide, staged, broken) for wide in (0, 1) for staged in (0, 1) for broken in (0, 1))
SITUATION = Situation("sm_90a", "gemm:4096x4096x4096:bf16", NAMES, 100.0, "tensor", OPTIONS)
PLANNER = Llm(Bandit({CONSTANT: WeightPrior(-1.0, 0.5)}))


def start(seed: int = 0) -> State[Memory]:
    return PLANNER.start(SITUATION, seed)


def observed(found: Choice) -> Observation:
    """A fake machine: wide tiles halve the time, stages reduce it by a third, `broken` is refuted."""
    _, wide, staged, broken = found.features
    if broken:
        return Observation(found, "refuted")
    return Observation(found, "timed", 400.0 * 0.5**wide * 0.67**staged)


def proposal(confidence: float = 0.5, reason: str = "because", **target: object) -> dict[str, object]:
    return {"confidence": confidence, "reason": reason, **target}
