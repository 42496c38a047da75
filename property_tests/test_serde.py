"""Properties: serialisation round-trips kernels, and any document that is read as a kernel is verified soundly.

A document is untrusted data. A randomly changed one is rejected with a reason, or it is another kernel: if that one is
proved, no run of the interpreter may fail, as for a traced kernel.
"""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.ir.pretty import pretty
from argus.core.serde import MalformedError, read, write
from argus.core.verdict import Proved
from argus.verifier.kernel import verify
from property_tests.depth import examples
from property_tests.documents import changed
from property_tests.judging import check_no_run_fails
from property_tests.programs import KERNELS, Mutant

SMALL = st.deferred(
    lambda: st.sampled_from(sorted(name for name, kernel in KERNELS.items() if len(pretty(kernel)) < 2500))
)


def through(kernel: Kernel) -> Kernel:
    """The kernel after serialisation to text and back."""
    (found,) = read(json.loads(json.dumps(write([kernel]), allow_nan=False)))
    assert isinstance(found, Kernel)
    return found


@pytest.mark.share(8, among="documents of kernels")
@settings(max_examples=examples(12))
@given(name=st.sampled_from(sorted(KERNELS)))
def test_what_was_written_has_the_same_verdict(name: str) -> None:
    before, after = (verify(kernel, solver="cvc5") for kernel in (KERNELS[name], through(KERNELS[name])))
    assert after.verdict == before.verdict
    assert after.findings == before.findings
    assert after.diagnostics == before.diagnostics


@pytest.mark.share(8, among="documents of kernels")
@settings(max_examples=examples(60))
@given(name=SMALL, seed=st.integers(0, 1 << 32), times=st.integers(1, 3))
def test_a_changed_document_is_refused_or_is_judged_soundly(name: str, seed: int, times: int) -> None:
    document = changed(KERNELS[name], Random(seed), times)  # noqa: S311 reason: an example, not a secret
    try:
        (found,) = read(document)
    except (MalformedError, ArgusError):
        return
    assert isinstance(found, Kernel)
    assume(pretty(found) != pretty(KERNELS[name]))
    try:
        verdict = verify(found, solver="cvc5").verdict
    except Exception:  # noqa: BLE001 reason: an exception in the verifier gives no verdict (E945)
        return
    if isinstance(verdict, Proved):
        check_no_run_fails(Mutant(found, (f"{name} {seed} {times}",), claims=False))
