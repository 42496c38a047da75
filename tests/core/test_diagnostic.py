"""Errors as data."""

from __future__ import annotations

import pickle

from argus.core.diagnostic import ArgusError, Diagnostic


def test_an_error_reaches_another_process_with_its_diagnostic() -> None:
    problem = ArgusError(Diagnostic("E401", "error", "no tensor", help="pass one"))
    found = pickle.loads(pickle.dumps(problem))  # noqa: S301 reason: made here
    assert isinstance(found, ArgusError)
    assert (str(found), found.diagnostic) == ("E401: no tensor", problem.diagnostic)
