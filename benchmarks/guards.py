"""Tests the guards of data contracts on a GPU: `python benchmarks/guards.py build`, then `... guards.py run` on an
H200.

build: compiles the grouped GEMM of tests/corpus/traced/grouped_gemm.py and its guard into build/guards; needs no GPU.
run: experts that satisfy the contract give correct results, launched and replayed from a graph with other experts; a
violation is reported at the next synchronisation; a guard that traps ends the work of its own process only. Each check
prints right or WRONG; exit status 1 if any is WRONG.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any

from argus.core.diagnostic import ArgusError
from argus.runtime.gpu.guards import Promises
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.runtime.processes.watchdog import WatchedProcess

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "guards"
LISTING = ROOT / "tests" / "corpus" / "traced" / "grouped_gemm.py"
BLOCKS, GROUPS, COLUMNS, DEPTH = 12, 4, 512, 1024
EXPERTS = (0, 3, -1, 1, 1, 2, -1, 0, 3, 3, 2, 0)
OTHERS = (3, 3, 0, -1, 2, 1, 1, 0, -1, 2, 0, 0)
CLOSE = 2.0**-6


def build() -> None:
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.verifier.loader import load as exported  # noqa: PLC0415 reason: as above

    for each in exported(str(LISTING)):
        artifact = compiled(each.trace(), "sm_90a", FOLDER)
        print(artifact.name, artifact.report, *(contract.guard for contract in artifact.launch.contracts))


class Problem:
    """Operands on the GPU, the kernel, and the expected result."""

    def __init__(self) -> None:
        self.torch: Any = import_module("torch")
        torch = self.torch
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        (path,) = FOLDER.glob("*.json")
        self.kernel: LoadedKernel = load(path)
        rows, depth, columns = 128 * BLOCKS, DEPTH // 128, COLUMNS // 128
        # One group more than declared, so that a kernel with a violated contract reads memory that we own.
        self.scales = torch.rand(GROUPS + 1, columns, depth, device="cuda") + 0.5
        weights = torch.randn(GROUPS + 1, COLUMNS, DEPTH, device="cuda").to(torch.float8_e4m3fn)
        self.given: dict[str, Any] = {
            "A": torch.randn(rows, DEPTH, device="cuda").to(torch.float8_e4m3fn),
            "SA": torch.rand(depth, rows, device="cuda") + 0.5,
            "W": weights[:GROUPS],
            "SW": self.scales[:GROUPS],
            "expert": torch.tensor(EXPERTS, device="cuda", dtype=torch.int32),
            "C": torch.empty(rows, COLUMNS, device="cuda", dtype=torch.bfloat16),
        }
        sizes = {"M": rows, "K": DEPTH, "KB": depth, "G": GROUPS, "N": COLUMNS, "NB": columns, "MB": BLOCKS}
        self.prepared = self.kernel.prepare(sizes)

    def launch(self, promises: Promises) -> Callable[[], None]:
        return self.prepared.bind(self.given, self.torch.cuda.current_stream().cuda_stream, promises)

    def use(self, experts: tuple[int, ...]) -> None:
        self.given["expert"].copy_(self.torch.tensor(experts, dtype=self.torch.int32))
        self.given["C"].fill_(float("nan"))

    def wrong(self) -> bool:
        """Whether any row of an expert differs from float64; rows of no expert must be unchanged."""
        torch, given = self.torch, self.given
        a = given["A"].double() * given["SA"].double().T.repeat_interleave(128, 1)
        scale = given["SW"].double().repeat_interleave(128, 1).repeat_interleave(128, 2)
        w = given["W"].double() * scale
        for block, expert in enumerate(given["expert"].tolist()):
            here = slice(128 * block, 128 * (block + 1))
            found = given["C"][here].double()
            if expert < 0:
                if not bool(torch.isnan(found).all()):
                    return True
                continue
            exact, share = a[here] @ w[expert].T, a[here].abs() @ w[expert].abs().T
            if not bool(((found - exact).abs() <= CLOSE * (exact.abs() + share / 16)).all()):
                return True
        return False


def satisfies_contract() -> bool:
    """Launch with the guard, then capture, and replay on other experts."""
    problem = Problem()
    problem.use(EXPERTS)
    problem.launch("stop")()
    problem.kernel.synchronise()
    wrong = problem.wrong()
    torch = problem.torch
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        problem.launch("stop")()
    for experts in (EXPERTS, OTHERS):
        problem.use(experts)
        graph.replay()
        problem.kernel.synchronise()
        wrong = wrong or problem.wrong()
    return not wrong


def reports_violation() -> bool:
    """One violation in a replayed graph is reported once, with its place and value; later replays are correct."""
    problem = Problem()
    problem.launch("tell")()
    problem.kernel.synchronise()
    torch = problem.torch
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        problem.launch("tell")()
    problem.use((*EXPERTS[:5], GROUPS, *EXPERTS[6:]))
    graph.replay()
    try:
        problem.kernel.synchronise()
    except ArgusError as broken:
        print(f"  {broken}")
        facts = broken.diagnostic.facts
        if broken.diagnostic.code != "E402" or facts != (("expert[5]", str(GROUPS)),):
            return False
    else:
        return False
    problem.use(EXPERTS)
    graph.replay()
    problem.kernel.synchronise()
    return not problem.wrong()


def trapping_process() -> Generator[str, None, bool]:
    """In a separate process, whose CUDA context the guard's trap ends. C must not have been written."""
    yield "a guard that stops"
    problem = Problem()
    problem.use((GROUPS, *EXPERTS[1:]))
    problem.torch.cuda.synchronize()
    problem.launch("stop")()
    problem.kernel.synchronise()
    return False


def other_process() -> Generator[str, None, bool]:
    yield "a process after it"
    return satisfies_contract()


def stops_its_process() -> bool:
    own = import_module(Path(__file__).stem)  # by its name, as the child does not run this file as `__main__`
    with WatchedProcess(120.0) as child:
        try:
            child.call(own.trapping_process)
        except ArgusError as broken:
            print(f"  {broken}")
            return broken.diagnostic.code == "E402" and child.call(own.other_process)
    return False


def run() -> bool:
    checks = {
        "a satisfied contract": satisfies_contract,
        "a reported violation": reports_violation,
        "a guard that traps": stops_its_process,
    }
    bad: list[str] = []
    for name, check in checks.items():
        try:
            fine = check()
        except Exception as problem:  # noqa: BLE001 reason: one check must not hide the others
            print(f"  {type(problem).__name__}: {problem}")
            fine = False
        print(f"{name}: {'right' if fine else 'WRONG'}", flush=True)
        bad += [] if fine else [name]
    return not bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "run"))
    if parser.parse_args().part == "build":
        build()
    else:
        raise SystemExit(0 if run() else 1)
