"""Names in emitted text: users' names and the emitter's own never meet."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.emit import names as naming
from argus.emit.build import build
from argus.emit.cuda.prelude import PRELUDE as CUDA
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.prelude import PRELUDE as HIP
from argus.emit.hip.text import hip_text
from argus.emit.hip.toolchain import compiler_present
from argus.emit.names import assign_names
from argus.verifier.loader import load
from property_tests.renaming import dangerous_names, identifiers, renamed, structure
from tests.emit.handmade import gemm as handmade

CORPUS = Path(__file__).parents[1] / "corpus" / "proved"
FILES = sorted(path.stem for path in CORPUS.glob("*.py"))
CAPTURED = (
    *("barriers_by_hand", "cluster_by_hand", "cp_async_two_groups_ahead", "real_fbtriton_972", "real_rl_kernel_189"),
    *("slots_filled_under_a_product", "tiles_of_one_block", "two_consumers"),
)
"""Their tensors and barriers have names that locals of the emitter had too."""


def of(file: str) -> Kernel:
    return next(iter(load(str(CORPUS / f"{file}.py")))).trace()


def text_of(kernel: Kernel) -> str:
    return cuda_text(kernel).text if kernel.target.name == "sm_90a" else hip_text(kernel)


def differences(kernel: Kernel, other: Kernel) -> list[tuple[list[str], list[str]]]:
    """The lines in which the texts differ under the names of the first."""
    original = dict(zip(identifiers(assign_names(other)), identifiers(assign_names(kernel)), strict=True))
    lines, others = structure(text_of(kernel), {}), structure(text_of(other), original)
    return [(line, changed) for line, changed in zip(lines, others, strict=True) if line != changed]


def named(*names: str) -> tuple[str, ...]:
    """What the tensors of a kernel are called that have these names."""
    kernel = handmade()
    tensors = tuple(evolve(kernel.parameters[0], name=name) for name in names)
    assigned = assign_names(evolve(kernel, parameters=tensors, sizes=(), name="kernel"))
    return tuple(assigned.buffers[tensor] for tensor in tensors)


def test_a_name_ends_in_exactly_one_underscore() -> None:
    assert named("A", "block_0", "float", "memory") == ("A_", "block_0_", "float_", "memory_")
    assert named("__x__", "a__b", "3d", "é", "_") == ("x_", "a_b_", "n3d_", "unnamed_", "unnamed_2_")


def test_names_that_c_takes_for_one_are_numbered() -> None:
    assert named("A", "A_", "_A", "a", "A-", "A_2") == ("A_", "A_2_", "A_3_", "a_", "A_4_", "A_2_2_")
    assert named("kernel") == ("kernel_2_",)


@pytest.mark.parametrize("prelude", [CUDA, HIP], ids=["sm_90a", "gfx942"])
def test_no_name_of_a_prelude_is_of_a_users_form_or_of_a_derived_one(prelude: str) -> None:
    own = set(re.findall(r"[A-Za-z_]\w*", prelude))

    assert len(own) > 60
    assert [name for name in own if re.search(r"[^_]_$", name)] == []
    assert [name for name in own if re.search(r"[A-Za-z0-9]__[A-Za-z0-9]", name)] == []


@pytest.mark.skipif(not compiler_present(), reason="asks clang")
def test_no_macro_that_clang_defines_is_of_a_users_form() -> None:
    flags = ("-x", "hip", "--offload-arch=gfx942", "-nogpulib", "-nogpuinc", "--cuda-device-only", "-dM", "-E", "-")
    done = subprocess.run(  # noqa: S603 reason: a fixed command
        (sys.executable, "-m", "ziglang", "clang", *flags), input="", capture_output=True, text=True, check=True
    )
    macros = re.findall(r"^#define (\w+)", done.stdout, re.MULTILINE)

    assert len(macros) > 200
    assert [name for name in macros if re.search(r"[^_]_$", name)] == []


@pytest.mark.parametrize("file", CAPTURED)
def test_locals_of_the_emitter_are_not_a_users(file: str) -> None:
    assert differences(of(file), renamed(of(file), file)) == []


@pytest.mark.share(128, among="emit: names")
@pytest.mark.parametrize("file", FILES)
def test_other_names_change_nothing_else(file: str) -> None:
    made = of(file)
    for seed in range(3):
        assert differences(made, renamed(made, f"{file} {seed}")) == []


def test_names_as_they_are_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the underscore the text of a renamed kernel is another."""

    def plain(name: str, taken: set[str]) -> str:
        taken.add(name)
        return name

    monkeypatch.setattr(naming, "_fresh_name", plain)
    made = of("barriers_by_hand")

    assert any(differences(made, renamed(made, str(seed))) for seed in range(3))


@pytest.mark.share(128, among="emit: names")
@pytest.mark.parametrize(
    "file", [*CAPTURED, "grouped_experts", "pingpong", "own_rows_by_direct_loads", "rows_of_sequences"]
)
def test_dangerous_names_compile(file: str, tmp_path: Path) -> None:
    made = renamed(of(file), f"{file} compiled")

    assert build(made, directory=tmp_path).code.read_bytes()[:4] == b"\x7fELF"


def test_dangerous_names_are_many_and_unlike() -> None:
    names = dangerous_names()

    assert len(set(names)) == len(names) > 250
    assert {"linux", "threadIdx", "a", "b", "keep", "i", "memory", "base", "float", "hold", "guard"} <= set(names)
