"""Baseline planner: Optuna's tree-structured Parzen estimator over the knobs of designs [Bergstra 2011].

Each proposal rebuilds the study from the observations, so that the planner is a pure function of its state.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.planner import Choice, Observation, RankedChoice, Situation, State, rank

_REFUSED = 1e3
"""Objective (time over bound) of a candidate that the gate rejects: worse than any that passes."""


@frozen
class Tpe:
    """Ranks open choices by how many knobs agree with the estimator's suggestion.

    `start` raises ArgusError (E905) if Optuna is not installed.
    """

    name: str = "tpe"

    def start(self, situation: Situation, seed: int) -> State[None]:
        _optuna()
        return State(seed, situation, None)

    def propose(self, state: State[None]) -> tuple[RankedChoice, ...]:
        options = state.open()
        if not options:
            return ()
        asked = _suggested_knobs(state)
        near = np.array([sum(asked.get(name) == value for name, value in each.knobs) for each in options], np.float64)
        return rank(options, near + 1e-3 * state.generator().random(len(options)))

    def learn(self, state: State[None], observation: Observation) -> State[None]:
        return state.with_observation(observation, None)


def _optuna() -> Any:  # noqa: ANN401 reason: an optional package
    try:
        optuna = import_module("optuna")
    except ImportError as problem:
        message = "the planner `tpe` needs the package `optuna`, which is not installed"
        raise ArgusError(Diagnostic("E905", "error", message, help="pip install 'argus[tpe]'")) from problem
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _suggested_knobs(state: State[None]) -> dict[str, Any]:
    """The knobs that the estimator suggests next."""
    optuna = _optuna()
    situation = state.situation
    every = (*situation.options, *(each.choice for each in situation.tried))
    values = {name: optuna.distributions.CategoricalDistribution(found) for name, found in _values(every).items()}
    seed = int(state.generator().integers(1 << 31))
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    for each in situation.tried:
        given = dict(each.choice.knobs)
        chosen = {name: values[name] for name in given}
        value = _REFUSED if each.microseconds is None else each.microseconds / situation.bound
        study.add_trial(optuna.trial.create_trial(params=given, distributions=chosen, value=float(np.log(value))))
    return dict(study.ask(values).params)


def _values(choices: tuple[Choice, ...]) -> dict[str, list[int | bool | str]]:
    """The values of each knob, in an order independent of which have been tried."""
    found: dict[str, set[int | bool | str]] = {}
    for each in choices:
        for name, value in each.knobs:
            found.setdefault(name, set()).add(value)
    return {name: sorted(each, key=str) for name, each in sorted(found.items())}
