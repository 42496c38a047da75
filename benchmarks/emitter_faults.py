"""Seeds faults into emitted texts and validates them: `python benchmarks/emitter_faults.py [--only WORD]`.

Each fault changes one place of the text of a proved kernel, as an error of the emitter would: a width, a name, an
offset, a swizzle constant, a dropped wait, fence or barrier, swapped operands, a lane mask, a predicate, a field of a
descriptor. `argus validate` must find each. Writes results/emitter_faults.json; fails below 97 %.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from time import perf_counter

from attrs import evolve, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.diagnostic import ArgusError
from argus.runtime.cpu.validate import Validation, emitted, validate
from argus.verifier.loader import load

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus" / "proved"
RESULTS = ROOT / "benchmarks" / "results" / "emitter_faults.json"
SEEDS = 12
SECONDS = 20.0
LEAST = 0.97
ENTRY = 'extern "C" __global__'


@frozen
class Fault:
    """One change: `old`, a pattern, becomes `new` at its first or last place, in the prelude or the kernel's body."""

    kind: str
    kernel: str
    old: str
    new: str
    last: bool = False
    prelude: bool = False

    def applied(self, text: str) -> str:
        """The text with the fault. Raises ValueError if it has no such place."""
        start = text.index(ENTRY)
        low, high = (0, start) if self.prelude else (start, len(text))
        found = list(re.finditer(self.old, text[low:high]))
        if not found:
            raise ValueError(f"`{self.kernel}` has no `{self.old}`")
        match = found[-1 if self.last else 0]
        return text[: low + match.start()] + match.expand(self.new) + text[low + match.end() :]


def faults() -> tuple[Fault, ...]:
    """All seeded faults."""
    made: list[Fault] = []

    def add(kernel: str, *each: tuple[str, str, str] | tuple[str, str, str, str]) -> None:
        for kind, old, new, *more in each:
            made.append(Fault(kind, kernel, old, new, last="last" in more, prelude="prelude" in more))

    wait_vmem, wait_lds = r"__builtin_amdgcn_s_waitcnt\(0x0F70\);", r"__builtin_amdgcn_s_waitcnt\(0xC07F\);"
    add(
        "scaled_output",
        ("dropped wait", wait_vmem, ";"),
        ("dropped wait", wait_vmem, ";", "last"),
        ("dropped wait", wait_lds, ";"),
        ("dropped wait", wait_lds, ";", "last"),
        ("dropped barrier", r"meet\(\);", ";"),
        ("dropped barrier", r"meet\(\);", ";", "last"),
        ("predicate", r"at1 < K_", "at1 <= K_"),
        ("predicate", r"at0 < M_", "at0 <= M_"),
        ("predicate", r"at1 < N_\) store", "at1 <= N_) store", "last"),
        ("predicate", r"if \(at0 < M_ && at1 < K_\)", "if (at1 < K_)"),
        ("offset", r"64 \* block_0_", "32 * block_0_"),
        ("offset", r"\+ 32;", "+ 40;"),
        ("offset", r"2048 \* \(k_ & 1\)", "1024 * (k_ & 1)"),
        ("name", r"&lds_b_\[base0\]", "&lds_a_[base0]"),
        ("name", r"&next_b_\[0\], &B_", "&next_b_[0], &A_"),
        ("swizzle", r">> 3\) & 3\)", ">> 2) & 3)"),
        ("swizzle", r"\^ 8 \*", "^ 16 *"),
        ("width", r"load_b128\(&a_", "load_b64(&a_"),
        ("width", r"store_b128\(&lds_a_", "store_b64(&lds_a_"),
        ("swapped operands", r"operand\(&a_(.*?)\), operand\(&b_(.*?)\)", r"operand(&b_\2), operand(&a_\1)"),
        ("lane mask", r"32 \* \(thread_ & 31\)", "32 * (thread_ & 15)"),
        ("lane mask", r"8 \* \(\(thread_ >> 5\) & 1\)", "8 * ((thread_ >> 4) & 1)"),
        ("loop bound", r"k_ < \(\(K_ \+ 31\) >> 5\)", "k_ < (K_ >> 5)"),
        ("initial value", r"if \(k_ == 0\)", "if (k_ == 1)"),
        ("extent of LDS", r"lds_b_\[4096\]", "lds_b_[1024]"),
    )
    add(
        "own_rows_by_direct_loads",
        ("dropped wait", r"__builtin_amdgcn_s_waitcnt\(0x0F\w+\);", ";"),
        ("buffer descriptor", r"_buffer = descriptor\((\w+), ", r"_buffer = descriptor(\1, -16 + "),
        ("predicate", r"guard\(at0 < M_ ", r"guard(at0 < M_ - 1 "),
    )
    add(
        "groups_fetch_apart",
        ("buffer descriptor", r"bytes > 0xFFFFFFF0u \? 0xFFFFFFF0u : \(unsigned\)bytes", "16", "prelude"),
        ("guard", r"inside \? offset : 0xFFFFFFF0u", "inside ? 0xFFFFFFF0u : offset", "prelude"),
        ("dropped barrier", r"meet\(\);", ";"),
    )
    add(
        "cluster_shares_b",
        ("dropped wait", r"wgmma_wait<0>\(\);", ";"),
        ("dropped wait", r"await_parity\(ring_full_.*?;", ";"),
        ("dropped wait", r"await_parity\(ring_empty_.*?;", ";"),
        ("count of a wait", r"wgmma_wait<0>", "wgmma_wait<1>"),
        ("count of a wait", r"wgmma_wait<1>", "wgmma_wait<2>"),
        ("dropped fence", r"wgmma_fence\(\);", ";"),
        ("dropped fence", r"fence_barrier_init\(\);", ";"),
        ("dropped barrier", r"cluster_arrive\(\); cluster_wait\(\);", ";"),
        ("bytes", r"ring_use_ & 1\), 4608\)", "ring_use_ & 1), 4096)"),
        ("parity", r">> 1\)\) & 1\)", ">> 1) + 1) & 1)"),
        ("multicast mask", r"tma_load_2d_to\(3,", "tma_load_2d_to(1,"),
        ("offset", r"ring_b_ = base \+ 8192", "ring_b_ = base + 4096"),
        ("offset", r"256 \* block_0_ \+ 512", "0 * block_0_ + 512"),
        ("box coordinates", r"16 \* k_, 128 \* block_0_", "128 * block_0_, 16 * k_"),
        ("matrix descriptor", r"descriptor<32>", "descriptor<64>"),
        ("matrix descriptor", r"\(8 \* SPAN >> 4\)", "(4 * SPAN >> 4)", "prelude"),
        ("matrix descriptor", r"SPAN == 32 \? 3", "SPAN == 32 ? 2", "prelude"),
        ("matrix descriptor", r"0x3FFFF\) >> 4", "0x3FFFF) >> 3", "prelude"),
        ("swapped operands", r"acc_, a \+ 2 \* kk, b \+ 2 \* kk", "acc_, b + 2 * kk, a + 2 * kk"),
        ("initial value", r"keep = !\(k_2_ == 0\)", "keep = (k_2_ == 0)"),
        ("arrivals", r"barrier_init\(ring_empty_ \+ 8 \* i, 4\)", "barrier_init(ring_empty_ + 8 * i, 5)"),
        ("arrivals", r"barrier_init\(ring_full_ \+ 8 \* i, 1\)", "barrier_init(ring_full_ + 8 * i, 2)"),
        ("rank", r"& 1\), 1, 1\);", "& 1), 0, 1);"),
        ("predicate", r"\(unsigned\)\(at1 \+ 8\) < ", "(unsigned)(at1 + 8) <= "),
        ("lane mask", r"math_thread_ & 3\)", "math_thread_ & 1)"),
        ("name", r"&B__map1, ring", "&A__map0, ring"),
        ("width", r"store_b32\(&C_", "store_b16(&C_"),
        ("base", r" \+ 1023 & ~1023u", " + 15 & ~15u"),
        ("cluster", r"__cluster_dims__\(2, 1, 1\)", ""),
        ("tile order", r"floor_mod\(block_1_", "floor_div(block_1_"),
    )
    add(
        "branch_on_a_tile",
        (
            "dropped fence",
            r"fence_async_proxy\(\);\s*(// .*\s*)?if \(quotient0 >= 1\) \{\s*(// .*\s*)?fence_async_proxy\(\);",
            "if (false) {",
        ),
        ("dropped wait", r"bulk_wait_reads<0>\(\);", ";"),
        ("dropped barrier", r"meet\(1, 128\);", ";"),
        ("dropped barrier", r"meet\(1, 128\);", ";", "last"),
        ("swizzle", r"swizzled<1, 3, 3>", "swizzled<2, 3, 3>"),
        ("swizzle", r"BITS\) - 1 << BASE", "BITS) - 1 << BASE - 1", "prelude"),
        (
            "box coordinates",
            r"16 \* quotient1, 64 \* quotient0\);\n\s*(?:// .*\n\s*)?bulk",
            "64 * quotient0, 16 * quotient1); bulk",
        ),
        ("lane mask", r"math_thread_ & 15\) \+ 256", "math_thread_ & 7) + 256"),
        ("barrier's threads", r"meet\(1, 128\)", "meet(1, 256)"),
        ("register order", r"&value_40_\[2\], &value_40_\[4\]", "&value_40_[4], &value_40_[2]"),
        ("dropped release", r"arrive\(ring_empty_[^;]*;", ";"),
    )
    add(
        "residual_held_beside_the_operands",
        ("swizzle", r"held_r_ \+ 2 \* swizzled<1, 3, 3>\(at0\)", "held_r_ + 2 * (at0)"),
        ("early release", r"meet\(1 \+ wg_, 128\);", ";"),
        ("barrier's number", r"meet\(1 \+ wg_, 128\)", "meet(1, 128)"),
        ("dropped wait", r"await_parity\(held_full_[^;]*;", ";"),
    )
    add(
        "cp_async_two_groups_ahead",
        ("dropped wait", r"cp_async_wait<\d>\(\);", ";"),
        ("count of a wait", r"cp_async_wait<1>", "cp_async_wait<2>"),
        ("dropped fence", r"fence_async_proxy\(\);", ";"),
        ("dropped commit", r"cp_async_commit\(\);", ";"),
        ("predicate", r"\? 16 : 0", "? 16 : 16"),
        ("width", r"cp_async_16\(", "cp_async_8("),
    )
    add(
        "row_softmax",
        ("lane mask", r"part\[row\] \+ lane_xor<1>", "part[row] + lane_xor<2>"),
        ("lane mask", r"lane_xor<(\d+)>", "lane_xor<32>", "last"),
    )
    return tuple(made)


def judged(fault: Fault) -> tuple[str, Validation | None]:
    """How a fault was found ("" if it was not)."""
    kernel = load(str(CORPUS / f"{fault.kernel}.py"))[0].trace()
    made = emitted(kernel)
    try:
        changed = evolve(made, text=fault.applied(made.text))
        found = validate(kernel, seeds=SEEDS, seconds=SECONDS, made=changed, stop=True)
    except ArgusError as error:
        return f"compiler: {error}", None
    wrong = next((trial for trial in found.trials if not trial.right), None)
    if wrong is None:
        return "", found
    if wrong.findings:
        return f"{wrong.findings[0].kind}: {wrong.findings[0].what}", found
    return ("differs" if wrong.difference is not None else wrong.ended), found


def main() -> int:
    """Judge every fault and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="judge the faults whose kind or kernel has this word")
    chosen = parser.parse_args()
    rows: list[dict[str, object]] = []
    for fault in faults():
        if chosen.only not in f"{fault.kind} {fault.kernel}":
            continue
        start = perf_counter()
        try:
            how, _ = judged(fault)
        except ValueError as missing:
            print(f"a fault without its place: {missing}")
            return 1
        rows.append({"kind": fault.kind, "kernel": fault.kernel, "old": fault.old, "new": fault.new, "found": how})
        seconds = perf_counter() - start
        print(f"{fault.kernel:34}{fault.kind:20}{how[:60] or 'SURVIVES'} ({seconds:.1f} s)", flush=True)
    caught = sum(bool(row["found"]) for row in rows)
    print(f"{caught} of {len(rows)} faults found")
    if not chosen.only:
        RESULTS.write_text(json.dumps({"faults": len(rows), "found": caught, "rows": rows}, indent=1) + "\n", "utf-8")
    return 0 if caught >= LEAST * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
