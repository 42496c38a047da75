"""Every row of the opcode table against LLVM's assembler for gfx942: opcode, encoding, operands, size."""

from __future__ import annotations

from argus.interp.gfx942.decode import decode
from argus.interp.gfx942.instruction import ACC, M0, VCC, Constant, Instruction, Operand, Scalar, Vector
from argus.interp.gfx942.row import IMPLICIT, Row, dwords
from argus.interp.gfx942.table import ROWS
from tests.interp.gfx942.assembled import encoded
from tests.interp.gfx942.referenced import NAMES

Case = tuple[str, tuple[Operand, ...], tuple[Operand, ...], int]
MODES: dict[str, Case] = {
    "s_getreg_b32": ("s_getreg_b32 s8, hwreg(HW_REG_MODE, 4, 2)", (Scalar(8),), (), 0x901),
    "s_setreg_b32": ("s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s8", (), (Scalar(8),), 0x901),
    "s_setreg_imm32_b32": ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0x64", (), (Constant(255, 0x64),), 0x901),
}
SCALAR_FORMS = {"SOP1", "SOP2", "SOPC", "SOPK"}


def places(row: Row) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """Operands, each in registers of its own, aligned as pairs and quadruples have to be."""
    make = Scalar if row.form in SCALAR_FORMS else Vector
    results = tuple(make(8 if make is Scalar else 10, dwords(t)) for t in explicit(row.results)[:1] if t != "mask")
    at, found = (16 if make is Scalar else 40), list[Operand]()
    for label in explicit(row.sources):
        if label == "k":
            found.append(Constant(255, 0x42000000))
            continue
        found.append(make(at, dwords(label)))
        at += 8 if make is Scalar else 32
    return results, tuple(found)


def places_of_result(row: Row) -> tuple[Operand, ...]:
    return tuple(Vector(10, dwords(label)) for label in explicit(row.results))


def explicit(tokens: tuple[str, ...]) -> list[str]:
    return [each for each in tokens if each not in IMPLICIT]


def written(row: Row) -> list[Case]:
    """Assembly lines of a row, with the results, sources and the immediate that decoding must give."""
    results, sources = places(row) if row.form != "MUBUF" else (places_of_result(row), ())
    match row.form:
        case "SOPP":
            value = "" if row.name in {"s_endpgm", "s_barrier", "s_icache_inv", "s_wakeup"} else "3"
            return [(f"{row.name} {value}", (), (), 3 if value else 0)]
        case "SOPK" if row.name in MODES:
            return [MODES[row.name]]
        case "SOPK":
            register = (*results, *sources)[:1]
            return [(f"{row.name} {register[0]}, 0x123", results, sources, 0x123)]
        case "SMEM":
            if not row.results:
                return [(row.name, (), (), 0)]
            loaded, base = Scalar(8, dwords(row.results[0])), Scalar(40, dwords(row.sources[0]))
            return [(f"{row.name} {loaded}, {base}, 0x10", (loaded,), (base,), 16)]
        case "DS":
            paired = "2_b" in row.name or "2st64" in row.name
            offset, value = ("offset0:5 offset1:6", 5) if paired else ("offset:260", 260)
            return [(f"{row.name} {listed(results, sources)} {offset}", results, sources, value)]
        case "GLOBAL":
            return _global(row, results, sources)
        case "FLAT":
            shown = () if "atomic" in row.name else results
            return [(f"{row.name} {listed(shown, sources)} offset:260", shown, sources, 260)]
        case "SCRATCH":
            return _scratch(row, results, sources)
        case "MUBUF":
            return _buffer(row, results) if explicit(row.sources) else [(row.name, (), (), 0)]
        case "VOP1" | "VOP2" | "VOPC":
            return _short(row, results, sources)
        case "VOP3":
            return [_long(row, results, sources, "")]
        case _:
            return [_moves(row, results, sources)]


def listed(*operands: tuple[Operand, ...]) -> str:
    return ", ".join(str(each) for group in operands for each in group)


def _moves(row: Row, results: tuple[Operand, ...], sources: tuple[Operand, ...]) -> Case:
    """Matrix and packed instructions; two of them move to and from AccVGPRs."""
    if row.name == "v_accvgpr_read_b32":
        sources = (Vector(ACC + 40),)
    if row.name == "v_accvgpr_write_b32":
        results = (Vector(ACC + 10),)
    return f"{row.name} {listed(results, sources)}", results, sources, 0


def _global(row: Row, results: tuple[Operand, ...], sources: tuple[Operand, ...]) -> list[Case]:
    address, *data = sources
    assert isinstance(address, Vector)
    atomic = "atomic" in row.name
    shown = (address, *data)
    plain = f"{row.name} {listed(() if atomic else results, shown)}, off offset:-16"
    based = f"{row.name} {listed(() if atomic else results, (Vector(address.first), *data))}, s[20:21] offset:16"
    returned = () if atomic else results
    return [
        (plain, returned, shown, -16),
        (based, returned, (Vector(address.first), *data, Scalar(20, 2)), 16),
    ]


def _scratch(row: Row, results: tuple[Operand, ...], sources: tuple[Operand, ...]) -> list[Case]:
    """Addressed by a register of either kind, by both, or by none."""
    address, *data = sources
    found: list[Case] = []
    for vector, scalar in ((True, False), (False, True), (True, True), (False, False)):
        first = (address,) if vector else ()
        base = (Scalar(30),) if scalar else ()
        where = [str(address) if vector else "off", "s30" if scalar else "off"]
        shown = [str(each) for each in results] + where if results else [where[0], *map(str, data), where[1]]
        found.append((f"{row.name} {', '.join(shown)} offset:-16", results, (*first, *data, *base), -16))
    return found


def _buffer(row: Row, results: tuple[Operand, ...]) -> list[Case]:
    named = [each for each in explicit(row.sources) if each != "v#"]
    data = tuple(Vector(72, dwords(label)) for label in named)
    register = data or results
    fixed = (Scalar(20, 4), Scalar(30))
    line = f"{row.name} {register[0]}, v5, s[20:23], s30 offen offset:16"
    returned = results if not data else ()
    return [(line, returned, (Vector(5), *fixed, *data), 16)]


def _short(row: Row, results: tuple[Operand, ...], sources: tuple[Operand, ...]) -> list[Case]:
    if row.name == "v_nop":
        return [(row.name, (), (), 0)]
    if row.name == "v_accvgpr_mov_b32":
        return [(f"{row.name} a10, a40", (Vector(ACC + 10),), (Vector(ACC + 40),), 0)]
    if row.name == "v_readfirstlane_b32":
        return [(f"{row.name} s10, v40", (Scalar(10),), (Vector(40),), 0)]
    carry, plain = Scalar(VCC, 2), tuple(s for s, t in zip(sources, explicit(row.sources), strict=True) if t != "mask")
    masks = (carry,) * row.results.count("mask")
    first = () if row.form == "VOPC" else results
    read = (*plain, *(carry,) * row.sources.count("mask"))
    end = "" if "k" in row.sources else "_e32"
    found = [(f"{row.name}{end} {listed((*first, *masks), read)}", (*first, *masks), read, 0)]
    return [*found, *([] if "k" in row.sources else [_long(row, first, sources, "_e64")])]


def _long(row: Row, results: tuple[Operand, ...], sources: tuple[Operand, ...], end: str) -> Case:
    if row.name == "v_readlane_b32":
        return f"{row.name} s10, v40, s7", (Scalar(10),), (Vector(40), Scalar(7)), 0
    if row.name == "v_writelane_b32":
        return f"{row.name} v10, s7, m0", (Vector(10),), (Scalar(7), Scalar(M0)), 0
    mask = VCC if row.name.startswith("v_div_scale") else 30
    masks = (Scalar(mask, 2),) * row.results.count("mask")
    read = tuple(Scalar(34, 2) if t == "mask" else s for s, t in zip(sources, explicit(row.sources), strict=True))
    suffix = end if row.form != "VOP3" else ""
    return f"{row.name}{suffix} {listed((*results, *masks), read)}", (*results, *masks), read, 0


def cases() -> list[tuple[Row, str, tuple[Operand, ...], tuple[Operand, ...], int]]:
    return [(row, *each) for row in ROWS for each in written(row)]


def decoded(code: bytes, count: int) -> list[Instruction]:
    found: list[Instruction] = []
    at = 0
    for _ in range(count):
        found.append(decode(code, at, at))
        at += found[-1].size
    return found


def test_every_row_decodes_from_what_the_assembler_makes_of_it() -> None:
    wanted = cases()
    found = decoded(encoded([line for _, line, *_ in wanted]), len(wanted))

    for (row, line, results, sources, immediate), each in zip(wanted, found, strict=True):
        assert each.row is row, (line, each)
        assert (each.results, each.sources) == (results, sources), (line, each)
        assert each.immediate == immediate, line


def test_every_row_is_compared_with_a_reference() -> None:
    assert {row.name for row in ROWS} == NAMES
