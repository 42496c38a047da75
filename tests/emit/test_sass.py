"""Machine code as text: instructions with their lines, control flow, and statements of the emitted lines."""

from __future__ import annotations

import pytest

from argus.core.diagnostic import ArgusError
from argus.core.ir import For, Mma, Wait, walk
from argus.emit.build import cuda_statements
from argus.emit.cuda import nvdisasm
from argus.emit.cuda.flow import flow_of
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.cuda.sass import Instruction, named, parse
from argus.emit.cuda.text import cuda_text
from tests.emit.broken_schedules import exponentials_under_products

TEXT = """\
        .global         work_
        .type           work_,@function
work_:
.text.work_:
	//## File "/x/work_.cu", line 7
        /*0000*/                   MOV R0, RZ ;
	//## File "/x/work_.cu", line 3 inlined at "/x/work_.cu", line 9
	//## File "/x/work_.cu", line 9
        /*0010*/                   ISETP.GE.AND P0, PT, R0, UR4, PT ;
        /*0020*/               @P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0030*/              @!P1 MUFU.EX2 R2, R2 ;
        /*0040*/               @P2 BRA `(.L_x_3) ;
	//## File "/x/work_.cu", line 12
        /*0050*/                   CALL.REL.NOINC `($__internal_0_$slow) ;
.L_x_3:
        /*0060*/                   BRA.U UP0, `(.L_x_1) ;
.L_x_2:
        /*0070*/                   EXIT ;
        .weak           $__internal_0_$slow
        .type           $__internal_0_$slow,@function
$__internal_0_$slow:
        /*0080*/                   RET.REL.NODEC R4 `(work_) ;
.L_x_4:
        /*0090*/                   BRA `(.L_x_4);
        /*00a0*/                   NOP;
"""


def test_instructions_have_the_line_of_the_outermost_call() -> None:
    work, slow = parse(TEXT)

    assert (work.name, slow.name) == ("work_", "$__internal_0_$slow")
    assert [each.line for each in work.instructions] == [7, 9, 9, 9, 9, 12, 12, 12]
    assert work.instructions[3] == Instruction("MUFU.EX2", "R2, R2", "@!P1", 9)
    assert [each.target for each in work.instructions if each.target] == [
        *(".L_x_2", ".L_x_3", "$__internal_0_$slow", ".L_x_1"),
    ]
    assert {each.line for each in slow.instructions} == {0}  # a subroutine has no line of the caller
    assert named((work, slow), "other").instructions == ()


def test_blocks_loops_and_dominators() -> None:
    flow = flow_of(parse(TEXT)[0])

    assert flow.blocks == (range(3), range(3, 5), range(5, 6), range(6, 7), range(7, 8))
    assert [(loop.head, loop.blocks) for loop in flow.loops] == [(1, {1, 2, 3})]
    assert flow.precedes(3, 6)  # the exponential, and the end of the loop
    assert not flow.precedes(6, 3)
    assert not flow.precedes(5, 6)  # the call may be jumped over
    assert flow.precedes(2, 7)
    assert not flow.precedes(3, 7)  # the loop may have no iteration
    assert flow.loop(flow.block(5)) is flow.loops[0]
    assert flow.loop(flow.block(7)) is None
    assert not flow.indirect


def test_a_jump_through_a_register_is_told() -> None:
    (first, *_) = parse(TEXT.replace("BRA.U UP0, `(.L_x_1)", "BRX R2 -0x90"))

    assert flow_of(first).indirect


def test_each_emitted_line_has_its_statement() -> None:
    kernel = exponentials_under_products.trace()
    lines, statements = cuda_text(kernel).text.splitlines(), cuda_statements(kernel)
    (product,) = (stmt for stmt in walk(kernel.body) if isinstance(stmt, Mma))
    (wait,) = (stmt for stmt in walk(kernel.body) if isinstance(stmt, Wait))
    (loop,) = (stmt for stmt in walk(kernel.body) if isinstance(stmt, For))

    assert len(lines) == len(statements)
    of = dict(zip(map(str.strip, lines), statements, strict=True))
    assert of["wgmma_wait<0>();"] is wait
    assert of["wgmma_commit();"] is product
    (head,) = (line for line in of if line.startswith("for (int") and "times" not in line and "T_" in line)
    assert of[head] is loop
    assert statements[lines.index("}")] is None
    assert all(stmt is None for stmt, line in zip(statements, lines, strict=True) if line.startswith("extern"))


def test_groups_and_waits_of_compiled_code_have_their_lines() -> None:
    """What the analysis of schedules relies on; the products themselves often lack a line of their own."""
    kernel = exponentials_under_products.trace()
    made = cuda_text(kernel)
    text = nvdisasm.disassemble(compile_cuda(made.text, made.symbol).cubin, kernel.name)
    statements = cuda_statements(kernel)
    of = {each.opcode: statements[each.line - 1] for each in named(parse(text), made.symbol).instructions}

    assert isinstance(of["WARPGROUP.ARRIVE"], Mma)
    assert isinstance(of["WARPGROUP.DEPBAR.LE"], Wait)


def test_without_the_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvdisasm, "_PACKAGE", "no-such-package")

    assert nvdisasm.disassembler() is None
    with pytest.raises(ArgusError, match=r"E303: no disassembler: the package `no-such-package` is not installed"):
        nvdisasm.disassemble(b"", "work")


def test_what_is_no_machine_code_is_refused() -> None:
    with pytest.raises(ArgusError, match=r"E304: `nvdisasm` failed on the machine code of `work`: nvdisasm"):
        nvdisasm.disassemble(b"text", "work")
