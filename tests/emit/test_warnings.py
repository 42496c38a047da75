"""Compiler warnings that mean a mistake in emitted text fail the build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.cuda import nvrtc
from argus.emit.cuda.prelude import PRELUDE as CUDA
from argus.emit.cuda.text import cuda_text
from argus.emit.hip import toolchain
from argus.emit.hip.prelude import PRELUDE as HIP
from argus.emit.hip.text import hip_text
from argus.verifier.loader import load

CORPUS = Path(__file__).parents[1] / "corpus" / "proved"
OF_BOTH = {
    "used before it is set": ("const int a = a + 1; out[0] = a;", "used before|uninitialized"),
    "never set": ("int a; out[0] = a;", "used before|uninitialized"),
}
OF_CLANG = {
    "shadowed": ("int a = out[1]; { int a = out[2]; out[0] = a; } out[3] = a;", "shadows"),
    "narrowed": ("const int a = x * 2; out[0] = a;", "loses integer precision"),
    "set on some path": ("int a; if (x > 3) a = 1; out[0] = a;", "uninitialized"),
}


def of_clang(body: str, folder: Path) -> Diagnostic:
    text = f'{HIP}extern "C" __global__ void made(int* out, long x) {{ {body} }}\n'
    with pytest.raises(ArgusError) as caught:
        toolchain.compile_hip(text, "made", folder, 60)
    return caught.value.diagnostic


@pytest.mark.skipif(not toolchain.compiler_present(), reason="compiles with clang")
@pytest.mark.parametrize("what", [*OF_BOTH, *OF_CLANG])
def test_clang(what: str, tmp_path: Path) -> None:
    body, words = (OF_BOTH | OF_CLANG)[what]
    found = of_clang(body, tmp_path)

    assert found.code == "E307"
    assert any(word in found.message for word in words.split("|"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not nvrtc.compiler_present(), reason="compiles with NVRTC")
@pytest.mark.parametrize("what", OF_BOTH)
def test_nvrtc(what: str) -> None:
    body, words = OF_BOTH[what]
    with pytest.raises(ArgusError) as caught:
        nvrtc.compile_cuda(f'{CUDA}extern "C" __global__ void made(int* out, long x) {{ {body} }}\n', "made")

    found = caught.value.diagnostic
    assert found.code == "E307"
    assert any(word in found.message for word in words.split("|"))
    assert "expected no warning" in found.message


DEAD = "int a[2]; a[0] = x > 3; a[1] = out[1]; int b; b = out[2]; const int c = out[3];"


def test_a_dead_value_of_the_user_is_no_mistake(tmp_path: Path) -> None:
    entry = f'extern "C" __global__ void made(int* out, long x) {{ {DEAD} }}\n'
    if nvrtc.compiler_present():
        assert nvrtc.compile_cuda(CUDA + entry, "made").cubin[:4] == b"\x7fELF"
    if toolchain.compiler_present():
        assert toolchain.compile_hip(HIP + entry, "made", tmp_path, 60).code.is_file()
    assert nvrtc.compiler_present() or toolchain.compiler_present()


@pytest.mark.skipif(not nvrtc.compiler_present(), reason="compiles with NVRTC")
def test_a_captured_name_fails_the_build() -> None:
    """The text of a kernel whose tensor `a` has the name of the emitter's local."""
    made = cuda_text(next(iter(load(str(CORPUS / "barriers_by_hand.py")))).trace())
    nvrtc.compile_cuda(made.text, made.symbol)

    with pytest.raises(ArgusError, match=r"E307: .*\"a\" is used before its value is set"):
        nvrtc.compile_cuda(re.sub(r"\ba_\b", "a", made.text), made.symbol)


@pytest.mark.skipif(not toolchain.compiler_present(), reason="compiles with clang")
@pytest.mark.share(160)
@pytest.mark.parametrize("file", sorted(path.stem for path in CORPUS.glob("*.py")))
def test_the_corpus_has_no_warnings(file: str, tmp_path: Path) -> None:
    for exported in load(str(CORPUS / f"{file}.py")):
        made = exported.trace()
        if made.target.name == "gfx942":
            assert toolchain.compile_hip(hip_text(made), "made", tmp_path, 120).code.is_file()
        else:
            text = cuda_text(made)
            assert nvrtc.compile_cuda(text.text, text.symbol).cubin[:4] == b"\x7fELF"
