from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

import argus
from argus.cli import demo
from argus.cli import verify as verify_command
from argus.cli.main import main
from argus.cli.screen import Screen
from argus.core.diagnostic import InternalError
from argus.core.invariants import INVARIANTS

ROOT = Path(__file__).parents[2]
PROVED = ROOT / "examples" / "01_prove.py"
REFUTED = ROOT / "examples" / "02_refute.py"
HEADER = 'from argus.language import *\n@kernel(target=gfx942, threads=64)\ndef f(A: Tensor["M N", bf16]{more}):\n'
STORES = """
    m, n = block_id((ceil_div(A.shape[0], 16), ceil_div(A.shape[1], 16)))
    r = registers(bf16, spread((16, 16), threads=64, vector=1))
    copy(A.tile((16, 16), (m, n)), r, via=global_load, edge=0)
    vmem.wait(0)
    copy(r, B.tile((16, 16), (m, n)), edge=0)
"""
BAD_FILES = {
    "syntax": ("x = (\n", "E002"),
    "raises": ("raise ValueError('no')\n", "E003"),
    "leaves": ("import sys; sys.exit(0)\n", "E003"),
    "endless": ("while True: pass\n", "E006"),
    "no_kernel": ("print('hello')\n", "E004"),
    "annotation": ("from argus.language import *\n@kernel(target=gfx942, threads=64)\ndef f(A: int): pass\n", "E107"),
    "body": (HEADER.format(more="") + "    raise ValueError('no')\n", "E103"),
    "no_target": ('from argus.language import *\n@kernel\ndef f(A: Tensor["M N", bf16]): pass\n', "E107"),
}
BAD_COMMANDS: list[tuple[list[str], str]] = [
    ([], "E701"),
    (["nosuch"], "E701"),
    (["verify"], "E701"),
    (["verify", str(PROVED), "--bogus"], "E701"),
    (["verify", str(PROVED), "--seconds", "nan"], "E701"),
    (["verify", str(PROVED), "--seconds", "-1"], "E701"),
    (["verify", str(PROVED), "--seconds", "soon"], "E701"),
    (["verify", str(PROVED), "--solver", "nosuch"], "E601"),
    (["verify", str(PROVED) + ":nosuch"], "E005"),
    (["verify", "nosuch.py"], "E001"),
    (["verify", str(ROOT)], "E001"),
    (["build", str(PROVED)], "E701"),
    (["build", str(PROVED), "--target", "gfx90", "-o", "out"], "E301"),
    (["build", str(PROVED), "--target", "sm_90a", "-o", "out"], "E301"),
    (["build", str(PROVED), "--target", "gfx942", "-o", str(PROVED)], "E302"),
    (["build", str(PROVED), "--target", "gfx942", "-o", str(PROVED / "below")], "E302"),
    (["build", str(PROVED), "--target", "gfx942", "-o", "/dev/full"], "E302"),
    (["run"], "E701"),
    (["run", str(PROVED), "--on", "gpu"], "E406"),
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


Captured = pytest.CaptureFixture[str]


def document(capsys: Captured) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(capsys.readouterr().out))


# -- verdicts ------------------------------------------------------------------------------------------------


def test_a_proof_is_shown_with_its_assumptions(capsys: Captured) -> None:
    assert main(["verify", str(PROVED)]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("matmul (gfx942): proved for all sizes that meet the assumptions\n")
    assert all(word in out for word in ("K % 4 == 0", "assumptions", "coverage", "cost"))
    assert err == ""


def test_a_refutation_shows_the_line_and_the_witness(capsys: Captured) -> None:
    assert main(["verify", str(REFUTED), "--solver", "cvc5"]) == 1

    out = capsys.readouterr().out
    assert out.startswith("error[I1]: ")
    assert "mma(mm, acc, a, b, init=eq(k, 0))" in out
    assert "matmul (gfx942): refuted by I1, replayed in the interpreter" in out


def test_invariants_that_do_not_apply_are_listed_on_request(capsys: Captured) -> None:
    main(["verify", str(PROVED), "-v"])

    out = capsys.readouterr().out
    assert "I16  a multicast delivers the tile that each receiver needs (no multicast)" in out
    assert "I1   operands of a multiplication agree" in out


@pytest.mark.parametrize(
    ("more", "assumed", "verdict", "code"),
    [
        (', B: Tensor["M N", bf16]', "", "proved", "E404"),
        (', B: Tensor["M N", bf16]', "    assume(A.shape[0] >= 4, A.shape[0] <= 3)\n", "vacuous", "E403"),
    ],
)
def test_a_vacuous_proof_ends_with_code_2(
    more: str, assumed: str, verdict: str, code: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "f.py").write_text(HEADER.format(more=more) + assumed + STORES, encoding="utf-8")

    assert main(["verify", "f.py", "--json"]) == 2
    (kernel,) = document(capsys)["kernels"]
    assert kernel["verdict"] == verdict
    assert [each["code"] for each in kernel["diagnostics"]] == [code]


def test_the_worst_kernel_of_a_file_decides(tmp_path: Path, capsys: Captured) -> None:
    both = PROVED.read_text(encoding="utf-8").partition("\n\nif __name__")[0]
    again = REFUTED.read_text(encoding="utf-8").partition("@kernel")[2].partition("\n\nif __name__")[0]
    (tmp_path / "both.py").write_text(f"{both}\n\n@kernel{again.replace('matmul', 'shifted')}", encoding="utf-8")

    assert main(["verify", "both.py", "--json"]) == 1
    assert [each["verdict"] for each in document(capsys)["kernels"]] == ["proved", "refuted"]
    assert main(["verify", "both.py:matmul"]) == 0


def test_the_document_has_the_whole_report(capsys: Captured) -> None:
    assert main(["verify", str(REFUTED), "--json"]) == 1

    found = document(capsys)
    (kernel,) = found["kernels"]
    assert (found["schema"], found["version"], found["exit_code"]) == ("argus.report/1", argus.__version__, 1)
    assert kernel["counterexample"]["sizes"] == {"M": 1, "N": 1, "K": 12}
    assert {finding["invariant"] for finding in kernel["findings"]} == {each.id for each in INVARIANTS}
    assert kernel["diagnostics"][0]["schema"] == "argus.diagnostic/1"


def test_answers_are_cached_unless_disabled(own_cache: Path, capsys: Captured) -> None:
    main(["verify", str(PROVED), "--no-cache"])
    assert not own_cache.exists()

    main(["verify", str(PROVED)])
    capsys.readouterr()
    main(["verify", str(PROVED), "--json"])
    assert document(capsys)["kernels"][0]["cost"]["smt"] == 0


def test_what_a_file_prints_stays_out_of_the_document(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "loud.py").write_text(f"{PROVED.read_text(encoding='utf-8')}\nprint('loud')\n", encoding="utf-8")

    assert main(["verify", "loud.py", "--json"]) == 0
    assert document(capsys)["exit_code"] == 0


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_gets_one_diagnostic_and_code_3(name: str, tmp_path: Path, capsys: Captured) -> None:
    text, code = BAD_FILES[name]
    (tmp_path / "bad.py").write_text(text, encoding="utf-8")

    refused(["verify", "bad.py", "--load-seconds", "0.3"], code, capsys)
    refused(["build", "bad.py", "--load-seconds", "0.3", "--target", "gfx942", "-o", "out"], code, capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("arguments", "code"), BAD_COMMANDS, ids=lambda value: " ".join(value)[-40:])
def test_a_bad_command_gets_one_diagnostic_and_code_3(arguments: list[str], code: str, capsys: Captured) -> None:
    refused(arguments, code, capsys)


def refused(arguments: list[str], code: str, capsys: Captured) -> None:
    assert main(arguments) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"error[{code}]: ")
    assert err.count("error[") == 1
    assert "Traceback" not in err

    if arguments:
        assert main([*arguments, "--json"]) == 3
        found = document(capsys)
        assert (found["exit_code"], [each["code"] for each in found["diagnostics"]]) == (3, [code])


@pytest.mark.parametrize("bug", [InternalError("two answers\nsecond line"), KeyError("surprise")])
def test_an_internal_error_is_saved_and_shown_without_traceback(
    bug: Exception, own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def broken(*_given: object, **_named: object) -> None:
        raise bug

    monkeypatch.setattr(verify_command.ExportVerifier, "report", broken)

    assert main(["verify", str(PROVED)]) == 4
    err = capsys.readouterr().err
    assert err.startswith("internal error: ")
    assert "Traceback" not in err
    (saved,) = (own_cache / "internal-errors").iterdir()
    assert str(saved) in err
    text = saved.read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "def matmul" in text

    assert main(["verify", str(PROVED), "--json"]) == 4
    assert document(capsys)["exit_code"] == 4


def test_an_internal_error_is_reported_even_if_it_cannot_be_saved(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def broken(*_given: object, **_named: object) -> None:
        raise InternalError("two answers")

    own_cache.touch()
    monkeypatch.setattr(verify_command.ExportVerifier, "report", broken)

    assert main(["verify", str(PROVED)]) == 4
    assert "not saved" in capsys.readouterr().err


# -- the process ---------------------------------------------------------------------------------------------


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:  # noqa: ANN401 reason: options of Popen
    command = (sys.executable, "-m", "argus", *arguments)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, **options)  # noqa: S603 reason: ours


@pytest.mark.share(6, among="ends of a process")
def test_a_reader_that_leaves_gets_no_traceback() -> None:
    with start("verify", str(PROVED), "-v", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        err = process.stderr.read() if process.stderr else ""

    assert (process.returncode, err) == (141, "")


@pytest.mark.share(6, among="ends of a process")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_reported() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full, start("verify", str(PROVED), stdout=full) as process:
        err = process.stderr.read() if process.stderr else ""

    assert process.returncode == 3
    assert err.startswith("argus: cannot write to the output: ")


@pytest.mark.share(6, among="ends of a process")
def test_an_interrupt_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "from pathlib import Path\nPath('started').touch()\nwhile True: pass\n", encoding="utf-8"
    )

    def heeding() -> None:
        """Tests that run in the background of a shell ignore interrupts, and so would what they start."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with start("verify", "slow.py", stdout=subprocess.PIPE, preexec_fn=heeding) as process:
        while not (tmp_path / "started").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read() if process.stderr else ""

    assert (process.returncode, err) == (130, "argus: interrupted\n")


def test_a_closed_output_is_no_fault() -> None:
    code = "import sys; sys.stdout = None; from argus.cli.main import main; sys.exit(main(['--version']))"
    done = subprocess.run(  # noqa: S603 reason: our own interpreter
        (sys.executable, "-c", code),
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


# -- the other commands --------------------------------------------------------------------------------------


def test_the_version_and_the_help_are_printed(capsys: Captured) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"argus {argus.__version__}\n"
    assert main(["verify", "--help"]) == 0
    assert "--solver" in capsys.readouterr().out


def test_the_doctor_prints_a_table_and_a_document(capsys: Captured) -> None:
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.startswith("packages\n")
    assert main(["doctor", "--json"]) == 0
    assert document(capsys)["schema"] == "argus.doctor/1"


def test_build_writes_the_files_that_it_names(tmp_path: Path, capsys: Captured) -> None:
    assert main(["build", str(PROVED), "--target", "gfx942", "-o", "out", "--json"]) == 0

    (kernel,) = document(capsys)["kernels"]
    assert sorted(kernel["files"]) == sorted(str(Path("out") / path.name) for path in (tmp_path / "out").iterdir())
    assert kernel["report"]["vgpr_spills"] == 0


def test_build_reads_the_machine_code_of_sm_90a(capsys: Captured) -> None:
    """At the lines of the program: the rows of its loop, and what the compiler added."""
    file = str(ROOT / "tests" / "corpus" / "unknown" / "loops_of_no_trip.py")
    assert main(["build", file, "--target", "sm_90a", "-o", "out"]) == 0

    out = capsys.readouterr().out
    assert "warning[E306]" in out
    assert "loops_of_no_trip.py:36" in out
    assert "  loop            loops_of_no_trip.py:32: " in out
    assert main(["build", file, "--target", "sm_90a", "-o", "out", "--json"]) == 0
    (kernel,) = document(capsys)["kernels"]
    assert kernel["machine_code"]["loops"][0]["products"] == 1
    assert kernel["machine_code"]["added_waits"][0][0].endswith("loops_of_no_trip.py:36")


def test_build_says_that_no_machine_code_was_read(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("argus.emit.build.disassembler", lambda: None)
    assert (
        main(
            [
                "build",
                str(ROOT / "tests" / "corpus" / "unknown" / "loops_of_no_trip.py"),
                "--target",
                "sm_90a",
                "-o",
                "out",
            ]
        )
        == 0
    )

    assert "machine code not read: no disassembler (pip install 'argus[sm90a]')" in capsys.readouterr().out


@pytest.mark.share(4)
def test_the_demo_shows_both_targets(tmp_path: Path, capsys: Captured) -> None:
    code = main(["demo", "-o", "made"])

    out = capsys.readouterr().out
    assert all(f"[{step}/8]" in out for step in range(1, 9))
    assert "gemm_cdna3 (gfx942): proved" in out
    assert "gemm (gfx942): refuted by I5" in out
    assert "gemm (sm_90a): refuted by I10" in out
    assert out.count("20,400 elements with the sum over K of A * B in float64") == 2
    assert out.count("outside         0 elements") == 2
    assert (tmp_path / "made" / "gemm_cdna3.hsaco").is_file()
    assert (tmp_path / "made" / "gemm_pingpong.cubin").is_file()
    assert code == (0 if "gemm_pingpong (sm_90a): proved" in out else demo.CODES["open"])


def test_the_demo_goes_on_without_compilers_and_says_which_extra_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("argus.emit.hip.toolchain.compiler_present", lambda: False)
    monkeypatch.setattr("argus.emit.cuda.nvrtc.bindings", lambda: None)
    monkeypatch.setattr(demo, "_prove", passed)
    monkeypatch.setattr(demo, "_refute", passed)

    assert demo.run(Screen(), Path("made")) == 3
    out = capsys.readouterr().out
    assert out.count("error[E303]") == 2
    assert "argus[gfx942]" in out
    assert "argus[sm90a]" in out


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [(["good"], 0), (["open", "good"], 2), (["open", "not done"], 3), (["not done", "wrong"], 1)],
)
def test_the_worst_step_of_the_demo_decides(
    monkeypatch: pytest.MonkeyPatch, outcomes: list[demo.Outcome], code: int
) -> None:
    def steps(_screen: Screen, _directory: Path) -> list[demo.Outcome]:
        return outcomes

    monkeypatch.setattr(demo, "_outcomes", steps)

    assert demo.run(Screen(), Path("made")) == code


def passed(_screen: Screen, _side: demo.Side) -> demo.Outcome:
    return "good"
