"""The machine code of gfx942 kernels, executed on the CPU: `python benchmarks/machine_code.py COMMAND`.

opcodes   which instructions the shipped kernels contain, how many of them the interpreter has a row for, and how many
          of the rows are compared with a reference of their own in tests/interp/gfx942
shipped   every shipped gfx942 kernel, executed at two sizes under one seed, compared with the interpreter
corpus    the same for the proved corpus
faults    changes single words of machine code, as errors of a compiler or of hand-written assembly would, and counts
          those that are found
speed     wave-instructions a second of CPU time, of a matrix product and of attention

With `--store`, a command writes its part of results/machine_code.json. `opcodes` and `shipped` run in several processes
with `--processes`, stop at `--seconds`, say what they did not reach, and go on later with `--journal`.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

from attrs import evolve, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.interp.gfx942.step import Step, step_at
from argus.interp.gfx942.table import ROWS
from argus.runtime.cpu.validate import Trial, chosen_sizes, emitted, small_inputs, trial_of
from argus.runtime.machine.launch import MachineCode, compiled, run_code
from argus.runtime.machine.validate import validate_code
from argus.verifier.loader import load
from benchmarks.cases import (
    Answer,
    Limits,
    add_limits,
    digest_of,
    kernels_of,
    kernels_of_case,
    limits_of,
    over_cases,
    shipped_cases,
)
from benchmarks.shipped import families
from tests.interp.gfx942.referenced import NAMES

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus" / "proved"
RESULTS = ROOT / "benchmarks" / "results" / "machine_code.json"
NOP = 0xBF800000
LEAST = 0.95
Row = dict[str, Any]


def corpus_kernels() -> Iterator[tuple[str, Kernel]]:
    for path in sorted(CORPUS.glob("*.py")):
        if "gfx942" in path.read_text("utf-8"):
            for each in load(str(path)):
                made = each.trace() if each.program is None else each.program
                yield from ((path.stem, kernel) for kernel in kernels_of(made) if kernel.target.name == "gfx942")


def steps_of(made: MachineCode) -> list[Step]:
    """All instructions of a kernel. Raises ArgusError (E502) for one without a row."""
    described = made.code.kernel(made.info.symbol).descriptor
    found, at = list[Step](), described.entry
    while not found or found[-1].instruction.row.name != "s_endpgm":
        found.append(step_at(made.code, at))
        at = found[-1].after
    return found


def code_of(kernel: Kernel) -> MachineCode:
    text = emitted(kernel)
    return compiled(kernel, text.text, text.info)


# -- opcodes ---------------------------------------------------------------------------------------------------


def opcodes(limits: Limits) -> Row:
    """Counts of the instructions of all shipped kernels, which are decoded to their end."""
    done = over_cases(_opcodes, shipped_cases(), limits)
    count: Counter[str] = Counter()
    for row in done.rows:
        count.update(row["counts"])
    kernels, refused = len(done.rows), sorted(row["refused"] for row in done.rows if row["refused"])
    found = {
        "kernels": kernels,
        "instructions": count.total(),
        "opcodes": len(count),
        "refused": refused,
        "rows": len(ROWS),
        "rows with a reference": len(NAMES),
        "opcodes without a reference": sorted(count.keys() - NAMES),
        "counts": dict(count.most_common()),
        **done.counts(),
    }
    print(f"{kernels} shipped kernels: {count.total():,} instructions, {len(count)} opcodes, {len(refused)} refused")
    print(f"{len(ROWS)} rows, {len(NAMES)} compared with a reference")
    print("opcodes of shipped kernels without one:", ", ".join(sorted(count.keys() - NAMES)) or "none")
    return found


def _opcodes(case: str, known: str) -> Answer | None:
    kernels = kernels_of_case(case)
    digest = digest_of(kernels, "interp/gfx942", "emit/hip", without="interp/gfx942/timing")
    return None if digest == known else (digest, [_counted(case, kernel) for kernel in kernels])


def _counted(case: str, kernel: Kernel) -> Row:
    try:
        counts = Counter(step.instruction.row.name for step in steps_of(code_of(kernel)))
    except ArgusError as problem:
        return {"counts": {}, "refused": f"{case}: {problem.diagnostic.message}"}
    return {"counts": dict(counts), "refused": ""}


# -- validation ------------------------------------------------------------------------------------------------


def shipped(limits: Limits) -> Row:
    done = over_cases(_shipped, shipped_cases(), limits)
    return validated(done.rows, "shipped") | done.counts()


def _shipped(case: str, known: str) -> Answer | None:
    kernels = kernels_of_case(case)
    digest = digest_of(kernels, "interp", "runtime", "emit/hip", without="interp/gfx942/timing")
    return None if digest == known else (digest, [executed(case, kernel) for kernel in kernels])


def executed(stem: str, kernel: Kernel) -> Row:
    start = process_time()
    row: Row = {"stem": stem, "kernel": kernel.name, "trouble": ""}
    try:
        found = validate_code(kernel, chosen_sizes(kernel)[:2], seeds=1)
        bad = next((each for each in found.trials if not each.right), None)
        row["trouble"] = "" if bad is None else described(bad)
        row["elements"] = sum(each.elements for each in found.trials)
    except ArgusError as problem:
        row["trouble"] = str(problem).splitlines()[0]
    if row["trouble"]:
        print(f"{stem}, {kernel.name}: {row['trouble']}", flush=True)
    return row | {"seconds": round(process_time() - start, 2)}


def validated(rows: list[Row], what: str) -> Row:
    right = sum(not row["trouble"] for row in rows)
    print(f"{what}: {right} of {len(rows)} kernels right, {sum(row.get('elements', 0) for row in rows):,} elements")
    return {"kernels": len(rows), "right": right, "rows": rows}


def described(trial: Trial) -> str:
    what = str(trial.findings[0]) if trial.findings else str(trial.difference)
    return f"sizes {dict(trial.sizes)}, text {trial.text}: {what}"


# -- faults ----------------------------------------------------------------------------------------------------


@frozen
class Fault:
    """One changed word. kind: what it stands for. at: the address of the instruction."""

    kind: str
    at: int
    instruction: str
    words: tuple[int, int]


def words_at(made: MachineCode, at: int) -> tuple[int, int]:
    place = at - made.code.address
    first, second = struct.unpack("<II", made.code.text[place : place + 8])
    return first, second


def changed(made: MachineCode, fault: Fault) -> MachineCode:
    place = fault.at - made.code.address
    text = made.code.text[:place] + struct.pack("<II", *fault.words) + made.code.text[place + 8 :]
    return evolve(made, code=evolve(made.code, text=text))


def faults(made: MachineCode) -> Iterator[Fault]:
    """Every fault of each kind that the code has a place for."""
    for step in steps_of(made):
        name, at = step.instruction.row.name, step.instruction.address
        first, second = words_at(made, at)
        for prefix, kind, change in _CHANGES:
            if name.startswith(prefix) and (words := change(first, second)) is not None:
                yield Fault(kind, at, str(step.instruction), words)


_Words = tuple[int, int]


def _dropped(_first: int, second: int) -> _Words:
    return NOP, second


def _weaker_vector(first: int, second: int) -> _Words | None:
    count = first & 15 | (first >> 14 & 3) << 4
    return None if count == 63 else (first & ~0xC00F | (count + 1 & 15) | (count + 1 >> 4) << 14, second)


def _weaker_local(first: int, second: int) -> _Words | None:
    count = first >> 8 & 15
    return None if count == 15 else (first + (1 << 8), second)


def _fewer_states(first: int, second: int) -> _Words | None:
    return (first - 1, second) if first & 0xFFFF else None


def _swapped(first: int, second: int) -> _Words:
    return first, second & ~0x3FFFF | (second & 0x1FF) << 9 | second >> 9 & 0x1FF


def _offset(first: int, second: int) -> _Words:
    return first + 16 & 0xFFFFFFFF if first & 0xFFFF < 0xFF00 else first - 16, second


def _other_branch(first: int, second: int) -> _Words:
    return first ^ 1 << 16, second


def _shifted_constant(first: int, second: int) -> _Words | None:
    code = first & 0x1FF
    if code == 255:
        return first, second ^ 16
    value = code - 128
    return (first & ~0x1FF | 128 + (value ^ 1 << value.bit_length() - 1), second) if 1 <= value <= 64 else None


def _next_register(_first: int, second: int) -> _Words:
    return _first, second & ~0xFF | (second + 1 & 0xFF)


_CHANGES: tuple[tuple[str, str, Callable[[int, int], _Words | None]], ...] = (
    ("s_waitcnt", "dropped wait", _dropped),
    ("s_waitcnt", "weaker count of vector memory", _weaker_vector),
    ("s_waitcnt", "weaker count of LDS", _weaker_local),
    ("s_barrier", "dropped barrier", _dropped),
    ("s_nop", "fewer wait states", _fewer_states),
    ("v_mfma", "swapped operands of a product", _swapped),
    ("v_mfma", "another operand of a product", _next_register),
    ("ds_", "another LDS offset", _offset),
    ("v_xor_b32", "another swizzle constant", _shifted_constant),
    ("v_and_b32", "another mask", _shifted_constant),
    ("v_lshlrev_b32", "another shift", _shifted_constant),
    ("s_cbranch_scc", "inverted branch", _other_branch),
    ("s_cbranch_vcc", "inverted branch", _other_branch),
)
_SUBJECTS: tuple[tuple[str, Mapping[str, int]], ...] = (
    ("blocks_apart", {"M": 128, "K": 96, "N": 64}),
    ("mfma_16x16x16", {"M": 70, "K": 72, "N": 72}),
    ("attention_of_one_wave", {}),
    ("pingpong", {"M": 260, "K": 200, "N": 264}),
)
_MOST_OF_A_KIND = 6
_WAITED = "what it waits for has been waited for before"
_AGAIN = "a later wait comes before any use of what it waits for"
_BETWEEN = "another barrier lies between the same accesses"
_WITHOUT_EFFECT: Mapping[tuple[str, int], str] = {
    ("mfma_16x16x16", 0x1A6C): _WAITED,
    ("attention_of_one_wave", 0x172C): "nothing has been issued that it could wait for",
    ("attention_of_one_wave", 0x1738): "the register is computed again before it is used, unless there are no keys",
    ("pingpong", 0x17C0): "the other branch divides in 64 bits, with the same quotient",
    ("pingpong", 0x1C04): "the other half of the waves goes ahead",
    ("pingpong", 0x1C08): "the two halves of the waves then go in step",
    ("pingpong", 0x1D50): _AGAIN,
    ("pingpong", 0x1D64): _WAITED,
    ("pingpong", 0x1D74): _WAITED,
    ("pingpong", 0x1DA4): _BETWEEN,
    ("pingpong", 0x1DB0): _AGAIN,
    ("pingpong", 0x1DD0): _BETWEEN,
    ("pingpong", 0x1E58): _WAITED,
}
"""Faults that were read one by one, after no run had found them, and judged to change nothing that may be observed."""


def seeded() -> Row:
    """Seed faults into some kernels of the corpus; of each kind and kernel at most six, evenly spread."""
    kinds: dict[str, Counter[str]] = {}
    survivors: list[str] = []
    judged: dict[str, str] = {}
    for name, sizes in _SUBJECTS:
        path = CORPUS / f"{name}.py"
        if not path.exists():
            continue
        kernel = load(str(path))[0].trace()
        made, text = code_of(kernel), emitted(kernel)
        own = sizes or chosen_sizes(kernel)[1]
        arrays = small_inputs(kernel, own, 1)
        found, done = run_code(made, kernel, own, arrays, 0)
        assert not done.findings
        assert trial_of(text, own, 1, arrays, found, ()).right
        for fault in spread(list(faults(made))):
            count = kinds.setdefault(fault.kind, Counter())
            caught = is_caught(changed(made, fault), kernel, own, arrays, found)
            count.update({"seeded": 1, "caught": caught})
            if not caught:
                text_of_fault = f"{name}: {fault.kind}: `{fault.instruction}` at 0x{fault.at:x}"
                why = _WITHOUT_EFFECT.get((name, fault.at))
                judged |= {} if why is None else {text_of_fault: why}
                survivors += [text_of_fault] if why is None else []
    seeds, caught = (sum(count[key] for count in kinds.values()) for key in ("seeded", "caught"))
    for kind, count in kinds.items():
        print(f"{kind}: {count['caught']} of {count['seeded']}")
    print(
        f"{caught} of {seeds} faults found, {len(judged)} judged to have no effect; not found:", *survivors, sep="\n  "
    )
    counts = {kind: dict(count) for kind, count in kinds.items()}
    return {
        "seeded": seeds, "caught": caught, "kinds": counts, "without effect": judged, "survivors": survivors
    }  # fmt: skip


def spread(all_faults: list[Fault]) -> Iterator[Fault]:
    for kind in dict.fromkeys(each.kind for each in all_faults):
        own = [each for each in all_faults if each.kind == kind]
        step = max(1, len(own) / _MOST_OF_A_KIND)
        yield from (own[int(number * step)] for number in range(min(len(own), _MOST_OF_A_KIND)))


def is_caught(
    made: MachineCode, kernel: Kernel, sizes: Mapping[str, int], arrays: Mapping[str, Any], right: Mapping[str, Any]
) -> bool:
    """Whether a run reports something, is refused, or ends with other outputs."""
    try:
        found, done = run_code(made, kernel, sizes, arrays, 0, limit=100_000)
    except ArgusError:
        return True
    return bool(done.findings) or any((found[name] != right[name]).any() for name in found)


# -- speed -----------------------------------------------------------------------------------------------------


def speed() -> Row:
    known = dict(families())
    rows: Row = {}
    for family, config, sizes in (
        ("gemm", "cdna3", {"M": 512, "N": 512, "K": 256}),
        ("gemm", "cdna3", {"M": 1024, "N": 1024, "K": 4096}),
        ("gemm", "cdna3_pingpong", {"M": 2048, "N": 2048, "K": 512}),
        ("attention_128", "cdna3", {"B": 1, "H": 1, "S": 128, "T": 2048, "G": 1}),
        ("attention_128", "cdna3", {"B": 1, "H": 32, "S": 512, "T": 512, "G": 1}),
    ):
        kernel = known[family].trace(config)
        made = code_of(kernel)
        arrays = small_inputs(kernel, sizes, 0)
        start = process_time()
        _, done = run_code(made, kernel, sizes, arrays, 0)
        seconds = process_time() - start
        rows[f"{family}-{config} {', '.join(f'{n}={v}' for n, v in sizes.items())}"] = {
            "sizes": sizes,
            "wave instructions": done.instructions,
            "seconds": round(seconds, 2),
        }
        rate = done.instructions / seconds
        print(
            f"{family}-{config} {sizes}: {done.instructions:,} wave instructions, {seconds:.2f} s, {rate:,.0f} a second"
        )
    return rows


COMMANDS: Mapping[str, Callable[[Limits], Row]] = {
    "opcodes": opcodes,
    "shipped": shipped,
    "corpus": lambda _limits: validated([executed(*each) for each in corpus_kernels()], "corpus"),
    "faults": lambda _limits: seeded(),
    "speed": lambda _limits: speed(),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--store", action="store_true", help="write this part of the result file")
    add_limits(parser)
    given = parser.parse_args()
    found = COMMANDS[given.command](limits_of(given))
    if given.store:
        whole: Row = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**whole, given.command: found}, indent=1) + "\n", "utf-8")
    if given.command == "faults":
        return int(found["caught"] < LEAST * (found["seeded"] - len(found["without effect"])))
    wrong = any(map(found.get, ("refused", "failed", "not reached")))
    return int(wrong or found.get("right", 0) < found.get("kernels", 0) * ("right" in found))


if __name__ == "__main__":
    sys.exit(main())
