"""The search for a run that shows a fault costs what its budget counts, for kernels of waves and of agents."""

from __future__ import annotations

import pytest

from argus.core.proof.obligation import INVARIANT_PRIORITY
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import uses_agents
from argus.interp.search.budget import EVENTS_PER_RUN, STATEMENTS_PER_RUN, RunBudget
from argus.interp.search.runs import Runs
from argus.interp.search.search import sizes_in_order
from argus.verifier.run_search import search, search_events
from property_tests.programs import CORPUS, templates

UNKNOWN = CORPUS / "unknown"


@pytest.mark.share(3)
def test_runs_by_agents_count_by_their_statements() -> None:
    prepared, budget = Prepared(templates(UNKNOWN / "one_box_of_two_warpgroups.py")[0].trace(), Runs()), RunBudget(60)
    assert uses_agents(prepared.kernel)

    sizes = list(sizes_in_order(prepared.kernel))[:-9:-1]
    assert search_events(prepared, sizes, budget) is None

    assert budget.left <= 0
    assert 0 < prepared.runs.executed < 60 * EVENTS_PER_RUN


@pytest.mark.share(3)
def test_no_size_is_run_that_the_budget_cannot_pay() -> None:
    """Sizes come in the order of their work: one that costs more than is left ends the pass."""
    kernel = templates(UNKNOWN / "scales_before_the_product_of_another_tile.py")[0].trace()
    prepared, budget = Prepared(kernel, Runs()), RunBudget(40)

    assert search(prepared, list(sizes_in_order(kernel)), frozenset(INVARIANT_PRIORITY), budget) is None

    assert 0 < prepared.runs.executed < 40 * STATEMENTS_PER_RUN
