from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.dsl.kernel import Template
from argus.core.span import NOWHERE
from argus.kernels.gemm import gemm
from argus.verifier.limits import load_limit, time_limit
from argus.verifier.loader import Exported, load

KERNEL = """
from argus.language import Tensor, bf16, gfx942, kernel

@kernel(target=gfx942, threads=64)
def first(A: Tensor["M N", bf16]):
    pass

@kernel(target=gfx942, threads=64)
def second(A: Tensor["M N", bf16]):
    pass

alias = first
_hidden = kernel(target=gfx942, threads=64)(first.function)
"""


def refusal(what: str, seconds: float = 5.0) -> Diagnostic:
    try:
        traced = [exported.trace(seconds=seconds) for exported in load(what, seconds=seconds)]
    except ArgusError as error:
        return error.diagnostic
    pytest.fail(f"not refused: {traced}")


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def names(exported: tuple[Exported, ...]) -> list[str]:
    return [each.name for each in exported]


def test_a_file_exports_its_kernels_once_and_in_order(tmp_path: Path) -> None:
    assert names(load(written(tmp_path, KERNEL))) == ["first", "second"]


def test_one_kernel_is_named_after_the_colon(tmp_path: Path) -> None:
    assert names(load(written(tmp_path, KERNEL) + ":second")) == ["second"]


PROGRAMS = """
from argus.language import Tensor, block_id, copy, f32, kernel, load, program, sm_90a, spread

@kernel(target=sm_90a, threads=32)
def move(X: Tensor["M 32", f32], Y: Tensor["M 32", f32]):
    (m,) = block_id((X.shape[0],))
    copy(load(X[m], spread((32,), threads=32, vector=1)), Y[m])

@program(configs={"one": 1, "two": 2})
def moves(X: Tensor["M 32", f32], Y: Tensor["M 32", f32], *, cfg):
    for _ in range(cfg):
        move(X, Y)
"""


def test_a_family_of_programs_is_named_as_a_whole_or_by_a_configuration(tmp_path: Path) -> None:
    file = written(tmp_path, PROGRAMS)
    every = [("moves_one_move", "one"), ("moves_two_move", "two"), ("moves_two_move_2", "two")]

    assert [(each.name, each.config) for each in load(file)] == every
    assert names(load(f"{file}:moves")) == [name for name, _ in every]
    assert names(load(f"{file}:moves_two")) == [name for name, config in every if config == "two"]


def test_a_module_may_be_named_and_a_family_exports_its_instances() -> None:
    assert names(load("argus.kernels.gemm")) == [f"gemm_{config}" for config in gemm.instances()]
    assert names(load("argus.kernels.gemm:gemm")) == [f"gemm_{config}" for config in gemm.instances()]
    assert load("argus.kernels.gemm:gemm_cdna3")[0].trace().name == "gemm_cdna3"


def test_a_file_that_exists_is_not_split_at_its_colon(tmp_path: Path) -> None:
    assert names(load(written(tmp_path, KERNEL, "odd:name"))) == ["first", "second"]


def test_the_folder_of_the_file_is_on_the_path_only_while_it_loads(tmp_path: Path) -> None:
    written(tmp_path, "SIZE = 64\n", "settings_of_mine.py")
    file = written(tmp_path, "from settings_of_mine import SIZE\n" + KERNEL)

    assert names(load(file)) == ["first", "second"]
    assert str(tmp_path) not in sys.path


def test_imported_kernels_are_not_exported_but_constructed_ones_are(tmp_path: Path) -> None:
    written(
        tmp_path,
        KERNEL + "def made():\n    return kernel(target=gfx942, threads=64)(first.function)\n",
        "library_of_kernels.py",
    )
    file = written(tmp_path, "from library_of_kernels import first, made\nlarge = made()\n")

    exported = load(file)

    assert names(exported) == ["large"]
    assert exported[0].trace().name == "large"


def test_a_traced_kernel_is_exported_too(tmp_path: Path) -> None:
    file = written(tmp_path, "from argus.kernels.gemm import gemm\nmine = gemm.trace('cdna3')\n")

    (exported,) = load(file)

    assert not isinstance(exported.source, Template)
    assert exported.trace().name == "mine"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("x = (\n", "E002", 1),
        ("x = 1\n  y = 2\n", "E002", 2),
        ("\0", "E002", None),
        ("(" * 300 + ")" * 300, "E002", 1),
        ("def go():\n    raise ValueError('no')\ngo()\n", "E003", 2),
        ("import sys\nsys.exit(0)\n", "E003", 2),
        ("import os\nos._exit(0)\n", "E003", 2),
        ("class Odd(BaseException): pass\nraise Odd\n", "E003", 2),
        ("import no_such_module_anywhere\n", "E003", 1),
        ("x = 1\n", "E004", None),
        ("", "E004", None),
        ("from argus.kernels.gemm import gemm\n", "E004", None),
        ("x = 1\nwhile True:\n    pass\n", "E006", 2),
        ("while True:\n  try:\n    while True: pass\n  except BaseException: pass\n", "E006", 3),
        ("from time import sleep\nsleep(60)\n", "E006", 2),
    ],
)
def test_a_bad_file_gets_one_diagnostic_at_its_line(text: str, code: str, line: int | None, tmp_path: Path) -> None:
    found = refusal(written(tmp_path, text), seconds=0.2 if code == "E006" else 5.0)

    frame = found.primary.span.frame
    assert found.code == code
    assert found.help
    # An endless loop may be stopped at its head or in its body.
    assert frame is None if line is None else frame is not None and line <= frame.line <= line + (code == "E006")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("raise ValueError('no')", "E103"),
        ("import sys; sys.exit(2)", "E103"),
        ("while True: pass", "E006"),
        ("f()", "E105"),
    ],
)
def test_a_bad_kernel_gets_one_diagnostic_at_its_line(body: str, code: str, tmp_path: Path) -> None:
    header = 'from argus.language import *\n@kernel(target=gfx942, threads=64)\ndef f(A: Tensor["M N", bf16]):\n'
    found = refusal(written(tmp_path, f"{header}    {body}\n"), seconds=0.2 if code == "E006" else 5.0)

    frame = found.primary.span.frame
    assert found.code == code
    assert frame is not None
    assert frame.line == 4


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    written(tmp_path, KERNEL)

    assert "is a folder" in refusal(str(tmp_path)).message
    assert "did you mean" in refusal(str(tmp_path / "mien.py")).help
    assert refusal(str(tmp_path / "none" / "mine.py")).code == "E001"
    assert "regular file" in refusal("/dev/null").message
    assert "neither a file nor a module" in refusal("argus.kernels.nope").message
    assert "neither a file nor a module" in refusal("no_such_package_anywhere.gemm").message


def test_a_binary_file_does_not_parse(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_bytes(bytes(range(255, 0, -1)))

    assert refusal(str(path)).code == "E002"


def test_an_unknown_kernel_gets_the_nearest_name(tmp_path: Path) -> None:
    file = written(tmp_path, KERNEL)

    assert refusal(f"{file}:secnd").help == f"did you mean `{file}:second`?"
    assert "no kernel after the colon" in refusal(f"{file}:").message


def test_a_fault_of_the_language_at_module_level_keeps_its_own_code(tmp_path: Path) -> None:
    file = written(tmp_path, "from argus.language import sync\nsync()\n")

    assert refusal(file).code == "E105"


def test_an_interrupt_passes_and_nothing_stays_behind(tmp_path: Path) -> None:
    before = set(sys.modules)
    with pytest.raises(KeyboardInterrupt):
        load(written(tmp_path, "raise KeyboardInterrupt\n"))

    assert not {name for name in set(sys.modules) - before if name.startswith("_argus_file")}


def test_off_the_main_thread_there_is_no_time_limit_but_all_else(tmp_path: Path) -> None:
    file = written(tmp_path, KERNEL)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(names(load(file))))
    thread.start()
    thread.join()

    assert found == ["first", "second"]


@pytest.mark.parametrize(("body", "code"), [("while True: pass", "E006"), ("import sys; sys.exit(2)", "E103")])
def test_a_bad_program_gets_one_diagnostic_at_its_line(body: str, code: str, tmp_path: Path) -> None:
    header = 'from argus.language import *\n@program\ndef f(A: Tensor["M N", bf16]):\n'
    found = refusal(written(tmp_path, f"{header}    {body}\n"), seconds=0.2 if code == "E006" else 5.0)

    frame = found.primary.span.frame
    assert (found.code, frame and frame.line) == (code, 4)
    assert "program `f`" in found.message


def test_time_in_which_others_have_the_processor_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock by which the process has a tenth of a processor, 0.3 s of wall time are 0.03 s of the limit."""
    start = time.monotonic()
    monkeypatch.setattr(time, "process_time", lambda: 0.1 * (time.monotonic() - start))
    with load_limit(0.1, "loading", NOWHERE):
        time.sleep(0.3)

    with pytest.raises(ArgusError, match=r"took longer than 0\.1 s"), time_limit(0.1, "asking", NOWHERE):
        time.sleep(0.3)


@pytest.mark.nightly
@pytest.mark.parametrize("endless", ["while True:\n    pass\n", "from time import sleep\nsleep(600)\n"])
def test_a_file_has_five_seconds_by_default(endless: str, tmp_path: Path) -> None:
    before = time.process_time()
    with pytest.raises(ArgusError, match="took longer than 5 s"):
        load(written(tmp_path, endless))

    assert time.process_time() - before < 10.0


HALF_MADE = """
import time

class Context:
    def __init__(self):
        time.sleep(0.3)
        self.owner = True

    def __del__(self):
        assert self.owner
        time.sleep(0.3)
"""


def stopped(seconds: float) -> str:
    """The code that making an object, dropping it and then waiting for long ends with."""
    names: dict[str, Any] = {"__name__": "z3.z3"}
    exec(HALF_MADE, names)  # noqa: S102 reason: the text above
    try:
        with time_limit(seconds, "asking", NOWHERE):
            made = names["Context"]()
            del made
            time.sleep(60.0)
    except ArgusError as problem:
        return problem.diagnostic.code
    return ""


@pytest.mark.parametrize("seconds", [0.1, 0.4])
def test_a_time_limit_never_interrupts_a_solvers_constructor(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """It falls where one is made, and where it goes."""
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    before = time.monotonic()

    assert stopped(seconds) == "E006"
    assert time.monotonic() - before < 20.0
    assert not lost
