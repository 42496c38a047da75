from __future__ import annotations

import errno
import importlib.util
import json
import subprocess
from pathlib import Path

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import TRUE, const, coord, sym
from argus.core.atom import Atom
from argus.core.atoms import gfx942 as isa
from argus.core.diagnostic import ArgusError, InternalError
from argus.core.dtype import f32
from argus.core.ir import Alloc, Copy, Get, Kernel, Lit, Map, Mma, Op, Stmt, Sync, Wait, whole
from argus.core.target import Target, gfx942, sm_90a
from argus.core.tiling import TiledMma
from argus.emit.artifact import Artifact, spill_warnings
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport, parse_report
from argus.emit.hip.toolchain import compile_hip, write_files
from argus.kernels.gemm import gemm as family
from tests.emit.handmade import K, M, N, gemm, kernel, registers, shared, stage, tensor, tile, vector_tv
from tests.emit.test_numbers import copying

TINY = kernel("tiny", (), (Sync(),), threads=64)


def cdna(artifact: Artifact) -> ResourceReport:
    assert isinstance(artifact.report, ResourceReport)
    return artifact.report


def test_the_shipped_gemm(tmp_path: Path) -> None:
    made = build(family.trace(), "gfx942", tmp_path)
    report = cdna(made)
    assert not report.spills
    assert report.sgpr_spills == 0
    assert made.warnings == ()
    assert report.lds_bytes == 2 * 2 * 128 * 32 * 2
    assert 64 < report.vgprs <= 128
    assert report.registers == report.vgprs + report.agprs
    assert report.occupancy == 2
    for opcode in ("v_mfma_f32_32x32x8_bf16", "ds_read_b128", "ds_write_b128", "buffer_load_dwordx4", "s_barrier"):
        assert report.count(opcode) > 0, opcode
    assert report.count("scratch") == report.count("flat") == report.count("v_accvgpr") == 0
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".hip", ".hsaco", ".json", ".s"]
    assert made.code.read_bytes()[:4] == b"\x7fELF"
    assert repr(made) == f"<Artifact {made.name} (gfx942): {made.code}>"
    assert made.source.read_text() == made.source_text


def test_launch_information(tmp_path: Path) -> None:
    made = build(gemm(), gfx942, tmp_path)
    launch = made.launch
    assert (launch.symbol, launch.threads) == ("gemm_", 256)
    assert launch.grid == ("(M + 127) // 128", "(N + 127) // 128")
    assert [(a.name, a.kind, a.written) for a in launch.arguments] == [
        ("A", "pointer", False),
        ("B", "pointer", False),
        ("C", "pointer", True),
        ("M", "int", False),
        ("N", "int", False),
        ("K", "int", False),
    ]
    conditions = [check.condition for check in launch.checks]
    assert {"K >= 1", "K % 8 == 0", "2*K*M <= 4294967280", "2*K*N <= 4294967280"} <= set(conditions)
    sizes = {"M": 4, "N": 4, "K": 8}
    assert all(eval(condition, {}, dict(sizes)) for condition in conditions)  # noqa: S307 reason: our own text
    assert [eval(extent, {}, dict(sizes)) for extent in launch.grid] == [1, 1]  # noqa: S307 reason: our own text
    data = json.loads(made.description.read_text())
    assert data["schema"] == "argus.artifact/1"
    assert data["report"]["lds_bytes"] == cdna(made).lds_bytes
    assert data["launch"]["grid"] == list(launch.grid)
    assert made.assembly is not None
    assert str(tmp_path) not in made.description.read_text() + made.assembly.read_text()


@pytest.mark.share(6, among="files of builds")
def test_equal_kernels_give_equal_files(tmp_path: Path) -> None:
    first, second = (build(gemm(), None, tmp_path / name) for name in "ab")
    for left, right in ((first.source, second.source), (first.assembly, second.assembly), (first.code, second.code)):
        assert left is not None
        assert right is not None
        assert left.read_bytes() == right.read_bytes()


@pytest.mark.parametrize("kind", ["global", "buffer"])
def test_loads_and_stores_of_every_width(kind: str, tmp_path: Path) -> None:
    loads, stores = (getattr(isa, f"{kind}_{way}") for way in ("load", "store"))
    found = dict(cdna(build(copying(loads, stores, 0.0), None, tmp_path)).instructions)
    for way in ("load", "store"):
        small = "ushort" if way == "load" else "short"
        for suffix in (small, "dword", "dwordx2", "dwordx4"):
            opcodes = (f"{kind}_{way}_{suffix}", f"{kind}_{way}_{suffix}_d16_hi", f"{kind}_{way}_{suffix}_d16")
            assert any(opcode in found for opcode in opcodes), (way, suffix, found)


@pytest.mark.parametrize(("write", "read"), list(zip(isa.ds_write, isa.ds_read, strict=True)), ids=str)
def test_shared_memory(write: Atom, read: Atom, tmp_path: Path) -> None:
    tv = vector_tv(256, write.vector_bits // 16, 32)
    rows = tv.tile[0]
    x, y = tensor("X", sym(M), const(32)), tensor("Y", sym(M), const(32))
    lds, held, back = shared("lds", (1, rows, 32)), registers("held", tv), registers("back", tv)
    width = {32: 1, 64: 2, 128: 3}[write.vector_bits]
    first = (const(0), const(0))
    turned = type(whole(lds))(lds, (const(rows), const(32)), (const(0), algebra.sub(rows - 1, coord(0)), coord(1)))
    body = (
        *(Alloc(buffer) for buffer in (lds, held, back)),
        Copy(isa.global_load[width], tile(x, (rows, 32), first), whole(held), tv),
        Wait("vmem", 0),
        Copy(write, whole(held), stage(lds, const(0)), tv),
        Wait("lds", 0),
        Sync(),
        Copy(read, turned, whole(back), tv),
        Wait("lds", 0),
        Copy(isa.global_store[width], whole(back), tile(y, (rows, 32), first), tv),
    )
    report = cdna(build(kernel("shared", (x, y), body), None, tmp_path))
    assert (report.count(write.name), report.count(read.name), report.count("s_barrier")) == (1, 1, 1)


def multiplying(atom: Atom) -> Kernel:
    """One execution of a matrix instruction by one wave."""
    m, n, k = atom.mnk or (0, 0, 0)
    mm = TiledMma(atom, (1, 1), (m, n), 4, k)
    a_, b_, c_ = tensor("A", sym(M), sym(K)), tensor("B", sym(N), sym(K)), tensor("C", sym(M), sym(N), f32)
    a, b, acc = registers("a", mm.A), registers("b", mm.B), registers("acc", mm.C, f32)
    first = (const(0), const(0))
    body: tuple[Stmt, ...] = (
        *(Alloc(buffer) for buffer in (a, b, acc)),
        Copy(isa.global_load[2], tile(a_, (m, k), first), whole(a), mm.A),
        Copy(isa.global_load[2], tile(b_, (n, k), first), whole(b), mm.B),
        Mma(atom, mm.tiling, whole(acc), whole(a), whole(b), TRUE),
        Copy(isa.global_store[1], whole(acc), tile(c_, (m, n), first), mm.C),
    )
    return kernel("multiplying", (a_, b_, c_), body, threads=64)


@pytest.mark.parametrize("atom", [isa.mfma_f32_32x32x8_bf16, isa.mfma_f32_16x16x16_bf16], ids=str)
def test_matrix_instructions(atom: Atom, tmp_path: Path) -> None:
    report = cdna(build(multiplying(atom), None, tmp_path))
    assert report.count(f"v_{atom.name}") == report.count("v_mfma") == 1
    assert not report.spills


@pytest.mark.share(6, among="files of builds")
def test_spilled_registers_are_a_warning(tmp_path: Path) -> None:
    tv = vector_tv(1024, 8, 8)
    wide = type(tv)(tv.threads, type(tv.values)((8, 24), (1024, 8192)), (1024, 192))
    x, y = tensor("X", const(1024), sym(K), f32), tensor("Y", const(1024), sym(K), f32)
    held = registers("held", wide, f32)
    first, second = ((const(0), const(i)) for i in (0, 1))
    got = Get(whole(held), (coord(0), coord(1)))
    body = (
        Alloc(held),
        Copy(isa.global_load[3], tile(x, (1024, 192), first), whole(held), wide),
        Sync(),
        Map(whole(held), Op("mul", (got, Lit(0.3)))),
        Sync(),
        Copy(isa.global_store[3], whole(held), tile(y, (1024, 192), second), wide),
    )
    made = build(kernel("wide", (x, y), body, threads=1024), None, tmp_path)
    assert cdna(made).spills
    assert [(w.code, w.severity) for w in made.warnings] == [("E305", "warning")]
    assert spill_warnings(TINY, evolve(cdna(made), vgpr_spills=0, scratch_bytes=0)) == ()


# -- failures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [sm_90a, "sm_90a", "gfx90a"])
def test_another_target(target: Target | str, tmp_path: Path) -> None:
    with pytest.raises(ArgusError, match="E301"):
        build(TINY, target, tmp_path)


def test_the_compiler_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(_: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", absent)
    with pytest.raises(ArgusError) as caught:
        build(TINY, None, tmp_path)
    assert caught.value.diagnostic.code == "E303"
    assert caught.value.diagnostic.help == "pip install 'argus[gfx942]'"
    assert list(tmp_path.iterdir()) == []


def test_the_compiler_rejects_the_text(tmp_path: Path) -> None:
    with pytest.raises(ArgusError) as caught:
        compile_hip("this is no C;\n", "broken", tmp_path, 60)
    found = caught.value.diagnostic
    assert found.code == "E304"
    assert (
        "error: unknown type name 'this'" in dict(found.facts)["compiler"] or "error:" in dict(found.facts)["compiler"]
    )
    assert list(tmp_path.iterdir()) == []


def test_the_compiler_takes_too_long(tmp_path: Path) -> None:
    with pytest.raises(ArgusError, match=r"E304: .* did not finish within 1e-05 s"):
        compile_hip("", "slow", tmp_path, 1e-5)
    assert list(tmp_path.iterdir()) == []


def test_the_output_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for place in (file, file / "below"):
        with pytest.raises(ArgusError) as caught:
            build(TINY, None, place)
        assert caught.value.diagnostic.code == "E302"
        assert str(place) in caught.value.diagnostic.message
    assert file.read_text() == "kept"


def test_the_disk_is_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = "error: unable to open output file: 'No space left on device'"

    def run(_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", full)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ArgusError, match=r"E302: .*No space left on device"):
        build(TINY, None, tmp_path)
    assert list(tmp_path.iterdir()) == []

    def replace(_: Path, __: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(ArgusError, match="E302"):
        write_files({"a.json": "{}"}, tmp_path, "a")
    assert list(tmp_path.iterdir()) == []


# -- reports -------------------------------------------------------------------------------------------------

REMARKS = """\
k.hip:8:1: remark: Function Name: k [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     TotalSGPRs: 18 [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     VGPRs: 24 [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     AGPRs: 8 [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     ScratchSize [bytes/lane]: 76 [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     Dynamic Stack: False [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     Occupancy [waves/SIMD]: 6 [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     SGPRs Spill: 1 [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     VGPRs Spill: 18 [-Rpass-analysis=kernel-resource-usage]
k.hip:8:1: remark:     LDS Size [bytes/block]: 4096 [-Rpass-analysis=kernel-resource-usage]
"""
ASSEMBLY = """\
; ds_read_b128 in a comment
\tds_read_b128 v[92:95], v66
\tds_read_b128 v[96:99], v66 offset:16
\ts_barrier
\tv_mfma_f32_32x32x8_bf16 v[0:15], v[20:21], v[22:23], 0
\tv_add_u32_e32 v1, v2, v3
    .vgpr_count:     32
"""


def test_a_report_is_read() -> None:
    report = parse_report(REMARKS, ASSEMBLY)
    assert (report.sgprs, report.vgprs, report.agprs, report.registers) == (18, 24, 8, 32)
    assert (report.scratch_bytes, report.occupancy, report.lds_bytes) == (76, 6, 4096)
    assert (report.sgpr_spills, report.vgpr_spills, report.spills) == (1, 18, True)
    assert report.instructions == (("ds_read_b128", 2), ("s_barrier", 1), ("v_mfma_f32_32x32x8_bf16", 1))
    assert (report.count("ds_"), report.count("v_mfma"), report.count("global")) == (2, 1, 0)


MOVING = """\
; %bb.0:
\tv_accvgpr_write_b32 a0, 0
.LBB0_1:
\tv_accvgpr_read_b32 v1, a1
\tv_mfma_f32_16x16x16_bf16 v[0:3], v[20:21], v[22:23], v[0:3]
\ts_nop 4
\tscratch_store_dword off, v1, off offset:8
\tv_mfma_f32_16x16x16_bf16 a[0:3], v[20:21], v[22:23], a[0:3]
; %bb.2:
\ts_nop 1
    .vgpr_count:     32
"""


def test_moves_per_matrix_instruction_are_counted() -> None:
    report = parse_report(REMARKS, MOVING)
    assert report.beside == (1 + 5 + 1) / 2  # of the block with two products, and of no other
    assert report.count("v_accvgpr") == 2
    assert parse_report(REMARKS, ASSEMBLY).beside == 0


def test_a_report_without_a_figure_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError, match="VGPRs Spill"):
        parse_report(REMARKS.replace("VGPRs Spill: 18", ""), ASSEMBLY)
