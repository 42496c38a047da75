"""Guards of promises on a GPU: `python benchmarks/guards.py build`, then on an H200 `python benchmarks/guards.py run`.

build: compiles the grouped product of tests/corpus/traced/grouped_gemm.py into build/guards, its guard beside it; needs
no GPU. run: experts that keep the promise give right numbers, launched and captured in a graph, replayed on others;
one that breaks it is told at the next synchronisation; a guard that stops the GPU ends its process's work and no
other's. Each check is right or WRONG, which the exit status tells too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any

from argus.core.diagnostic import ArgusError
from argus.runtime.cuda.guards import Promises
from argus.runtime.cuda.launch import LoadedKernel, load
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
    """Operands on the GPU, the kernel, and what it should give."""

    def __init__(self) -> None:
        self.torch: Any = import_module("torch")
        torch = self.torch
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        (path,) = FOLDER.glob("*.json")
        self.kernel: LoadedKernel = load(path)
        rows, depth, columns = 128 * BLOCKS, DEPTH // 128, COLUMNS // 128
        # One group more than is told, so that a kernel that follows a broken promise reads memory of ours.
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
        """Whether any row of an expert is not what float64 makes of it; rows of none must be left alone."""
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


def kept() -> bool:
    """Launched beside its guard, then captured and replayed on other experts."""
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


def told() -> bool:
    """One broken promise, in a replayed graph: told once, with its place and value; then all is well again."""
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


def stopping() -> Generator[str, None, bool]:
    """In a process of its own, whose context the guard ends. C must not have been written."""
    yield "a guard that stops"
    problem = Problem()
    problem.use((GROUPS, *EXPERTS[1:]))
    problem.torch.cuda.synchronize()
    problem.launch("stop")()
    problem.kernel.synchronise()
    return False


def working() -> Generator[str, None, bool]:
    yield "a process after it"
    return kept()


def stopped() -> bool:
    with WatchedProcess(120.0) as child:
        try:
            child.call(stopping)
        except ArgusError as broken:
            print(f"  {broken}")
            return broken.diagnostic.code == "E402" and child.call(working)
    return False


def run() -> bool:
    checks = {"promises that are kept": kept, "a promise that is broken, told": told, "one that stops": stopped}
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
