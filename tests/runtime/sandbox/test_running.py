"""The sandbox's answers to harmless texts, and to requests that it cannot serve."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.serde import write
from argus.runtime.sandbox import (
    Answer,
    Array,
    Build,
    Built,
    CheckedKernel,
    Failed,
    Interpret,
    Interpreted,
    Limits,
    Refused,
    Request,
    Suggest,
    Suggested,
    Verified,
    Verify,
    choose_isolation,
    run,
)
from argus.runtime.sandbox.isolation import NAMES, Missing, Name, probe_isolation
from argus.runtime.sandbox.request import JUDGING, Task
from argus.verifier.api import interpret
from argus.verifier.loader import load
from property_tests.programs import CORPUS
from tests.runtime.sandbox.hostile import KERNEL, WRONG, alive, bearing, marked

isolated = pytest.mark.skipif(
    all(probe_isolation(name) is not None for name in NAMES),
    reason="nothing isolates a process here: texts are refused",
)
FAMILY = KERNEL.replace("threads=64)", "threads=64, configs={'one': 1, 'two': 2})").replace(
    'Y: Tensor["M", f32])', 'Y: Tensor["M", f32], *, cfg)'
)


def answered(text: str, *tasks: Task, kernel: str = "") -> tuple[CheckedKernel, ...]:
    found = run(Request(text, tasks, kernel=kernel))
    assert isinstance(found, Answer), found
    return found.kernels


@pytest.mark.share(16, among="tasks in the sandbox")
@isolated
def test_all_tasks_are_done_in_order() -> None:
    (kernel,) = answered(KERNEL, Verify("cvc5"), Interpret({"M": 40}, seed=3), Build(), Suggest())
    verified, interpreted, built, suggested = kernel.results
    assert (kernel.name, kernel.target, kernel.sizes) == ("doubled", "gfx942", ("M",))
    assert isinstance(verified, Verified)
    assert (verified.verdict, verified.exit_code, verified.report["solver"]) == ("proved", 0, "cvc5")
    assert isinstance(interpreted, Interpreted)
    assert interpreted.outputs["Y"].shape == (40,)
    assert isinstance(built, Built | Failed)
    if isinstance(built, Built):
        assert {Path(name).suffix for name in built.files} == {".hip", ".s", ".hsaco", ".json"}
        assert built.report["vgpr_spills"] == 0
    else:
        assert built.code == "E303"
    assert isinstance(suggested, Suggested)


@pytest.mark.share(16, among="tasks in the sandbox")
@isolated
def test_the_returned_kernel_is_the_one_that_was_checked() -> None:
    (judged,) = answered(KERNEL)
    kernel = judged.kernel()
    assert isinstance(kernel, Kernel)
    values = np.arange(12, dtype=np.float32)
    assert (interpret(kernel, values, np.zeros(12, np.float32))["Y"] == 2 * values).all()
    assert kernel.span.frame is not None
    assert kernel.span.frame.file == "kernel.py"


@pytest.mark.nightly
@isolated
def test_each_kernel_of_a_family_or_the_one_that_is_named() -> None:
    assert [each.name for each in answered(FAMILY)] == ["doubled_one", "doubled_two"]
    assert [each.name for each in answered(FAMILY, kernel="doubled_two")] == ["doubled_two"]
    found = run(Request(FAMILY, (), kernel="tripled"))
    assert isinstance(found, Refused)
    assert found.diagnostic.code == "E005"


@pytest.mark.nightly
@isolated
def test_launches_of_a_program_are_verified_where_they_are() -> None:
    path = Path(__file__).parents[2] / "corpus" / "traced" / "split_k.py"
    kernels = answered(path.read_text(encoding="utf-8"), Verify("cvc5"))
    here = [each.name for each in load(str(path))]
    assert [each.name for each in kernels] == here
    assert {result.verdict for each in kernels for result in each.results if isinstance(result, Verified)} == {"proved"}


@pytest.mark.share(16, among="tasks in the sandbox")
@isolated
def test_the_callers_arrays_go_in_and_outputs_come_out() -> None:
    given = {"X": Array.of(np.arange(8, dtype=np.float32)), "Y": Array.of(np.zeros(8, np.float32))}
    short = given | {"X": evolve(given["X"], data=b"\0")}
    (kernel,) = answered(
        KERNEL,
        Interpret(arrays=given),
        Interpret(arrays={"X": given["X"]}),
        Interpret(arrays=short),
        Interpret({"N": 1}),
    )
    done, absent, damaged, unknown = kernel.results
    assert isinstance(done, Interpreted)
    assert done.outputs["Y"].values.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    for failed, code in ((absent, "E401"), (damaged, "E401"), (unknown, "E701")):
        assert isinstance(failed, Failed)
        assert failed.code == code


@pytest.mark.share(8)
@isolated
def test_a_size_of_no_array_is_given_by_name() -> None:
    text = (CORPUS / "proved" / "attention_in_a_window.py").read_text(encoding="utf-8")
    small = {"S": 16, "T": 16, "E": 16}
    (kernel,) = answered(
        text, Interpret({**small, "left": 0, "right": 0}), Interpret({**small, "left": 16, "right": 16})
    )
    own, everything = kernel.results
    assert isinstance(own, Interpreted)
    assert isinstance(everything, Interpreted)
    assert kernel.sizes == ("S", "T", "E", "left", "right")
    assert not np.array_equal(own.outputs["O"].values, everything.outputs["O"].values)


@pytest.mark.nightly
@isolated
def test_a_trusted_reference_finds_faults_that_claims_miss(tmp_path: Path) -> None:
    """A text whose claims are true may still compute something other than intended."""
    file = tmp_path / "trusted.py"
    file.write_text(KERNEL, encoding="utf-8")
    (trusted,) = load(str(file))
    reference = write([trusted.trace()])
    tripled = KERNEL.replace("x * 2.0", "x * 3.0")
    task = Interpret({"M": 64}, reference=reference)
    for text, outside in ((KERNEL, 0), (tripled, 64)):
        (kernel,) = answered(text, Verify("cvc5"), task)
        verified, found = kernel.results
        assert isinstance(verified, Verified)
        assert verified.verdict == "proved"
        assert isinstance(found, Interpreted)
        assert found.compared is not None
        assert found.compared.outside == outside
    (other,) = answered(KERNEL.replace("Y", "Z"), task)
    (failed,) = other.results
    assert isinstance(failed, Failed)
    assert failed.code == "E401"


@pytest.mark.share(16, among="tasks in the sandbox")
@isolated
def test_a_refutation_shows_the_line_of_the_text() -> None:
    (kernel,) = answered(WRONG, Verify())
    (result,) = kernel.results
    assert isinstance(result, Verified)
    assert "--> kernel.py:" in result.text
    assert result.report["counterexample"]["replayed"] == "interpreter"


@isolated
def test_a_checking_process_that_takes_too_long_is_killed() -> None:
    short = evolve(JUDGING, wall_seconds=0.2, cpu_seconds=1)
    found = run(Request(KERNEL, (Verify(),), judging=short))
    assert isinstance(found, Refused)
    assert found.diagnostic.code == "E942"
    assert "checked" in found.diagnostic.message


@pytest.mark.nightly
@pytest.mark.parametrize("on", [name for name in NAMES if probe_isolation(name) is None])
def test_no_process_outlives_a_killed_caller(on: Name) -> None:
    token = f"t{secrets.token_hex(5)}"
    text = f"{marked(token)}\nimport time\ntime.sleep(600)\n{KERNEL}"
    code = f"from argus.runtime.sandbox import Request, run\nrun(Request({text!r}, ()), {on!r})"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3]) as asker:  # noqa: S603 reason: this interpreter
        deadline = monotonic() + 60
        while not bearing(token) and monotonic() < deadline:
            sleep(0.1)
        assert bearing(token)
        asker.send_signal(signal.SIGKILL)
    assert alive(token) == []


# -- without isolation -------------------------------------------------------------------------------------------------


def test_without_isolation_no_text_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: Name) -> Missing:
        return Missing("not here")

    with pytest.raises(ArgusError) as caught:
        choose_isolation(none)
    assert caught.value.diagnostic.facts == (("bwrap", "not here"), ("namespaces", "not here"))
    monkeypatch.setattr("argus.runtime.sandbox.operations.choose_isolation", lambda: choose_isolation(none))
    harm = tmp_path / "harm"
    found = run(Request(f"open({str(harm)!r}, 'w')\n{KERNEL}", (Verify(),)))
    assert isinstance(found, Refused)
    assert found.diagnostic.code == "E941"
    assert "bwrap" in found.diagnostic.help
    assert not harm.exists()


def test_the_first_working_isolation_is_chosen() -> None:
    assert choose_isolation(lambda _: None) == "bwrap"
    assert choose_isolation(lambda name: Missing("no") if name == "bwrap" else None) == "namespaces"


def test_a_missing_program_is_not_an_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    missing = probe_isolation.__wrapped__("bwrap")
    assert isinstance(missing, Missing)
    assert "bwrap" in missing.why


# -- requests and data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [{"file": "../up.py"}, {"file": "a.txt"}, {"file": "/etc/x.py"}, {"kernel": "x" * 300}, {"text": "x" * 2_000_000}],
)
def test_requests_have_bounds(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Request(**{"text": KERNEL, "tasks": (), **wrong})  # pyright: ignore[reportArgumentType] reason: that is tested


@pytest.mark.parametrize("wrong", [{"wall_seconds": 0}, {"processes": 0}, {"memory_bytes": 1}, {"output_bytes": 1}])
def test_limits_have_bounds(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Limits(**wrong)


def test_arrays_are_bytes_of_a_type_and_a_shape() -> None:
    for values in (
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.zeros((0, 4), np.int32),
        np.full((), 1.5, np.float16),
    ):
        assert (Array.of(values).values == values).all()
        assert Array.of(values).values.shape == values.shape
    for wrong in (Array("f32", (2,), b"1234"), Array("f32", (-1, -1), b"1234"), Array("f99", (1,), b"1234")):
        with pytest.raises((ValueError, LookupError)):
            _ = wrong.values
    with pytest.raises(LookupError):
        Array.of(np.zeros(3, np.complex64))
