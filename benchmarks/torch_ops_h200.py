"""Registered operators on an H200: direct, compiled, differentiated, captured; and what a call costs on the host.

`benchmarks/torch_ops_h200.py`: for each public operator the direct call is compared with the registered operator, with
one graph of `torch.compile(fullgraph=True)` (warnings are errors, but for what torch deprecates of its own), by
`aot_eager` and by Inductor, whose `mode="reduce-overhead"` replays CUDA graphs, with an exported program, and with a
captured call that is replayed on other operands; bit for bit, and so are gradients. `opcheck` is torch's own check of
the registered operator, and under autocast a product has the type that torch's has. Then the time of a call on the
host: of the function alone, of the public operator, of the registered one, and of a compiled graph. Exits with status 1
if a result differs or a step fails. `--device cpu` does all but Inductor, graphs and times, by the interpreter.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from inspect import unwrap
from multiprocessing import get_context
from statistics import median
from time import perf_counter
from typing import Any

import torch
from attrs import frozen
from torch.utils._pytree import tree_leaves

import argus
import argus.torch.calls  # pyright: ignore[reportUnusedImport]  # registers the operators

TORCH: Any = torch
"""Whose types are open in part."""
ROUNDS, CALLS = 7, 300  # of measurements, and calls of one


@frozen
class Case:
    """A call of a public operator. differentiable: places of operands with gradients. inductor: it is compiled so, too.

    exact: the result in float64, or the first one of several.
    """

    operator: Callable[..., Any]
    operands: tuple[Any, ...]
    differentiable: tuple[int, ...] = ()
    inductor: bool = False
    exact: Callable[..., Any] | None = None

    def __call__(self, *operands: Any) -> Any:  # noqa: ANN401 reason: the operator's
        return self.operator(*operands)

    def others(self) -> tuple[Any, ...]:
        """Operands of other contents: floats are turned around, integers are the same."""
        return tuple(
            each.flip(-1) if each.dtype in (torch.bfloat16, torch.float32) and each.ndim else each.clone()
            for each in self.operands
        )

    def requiring(self) -> tuple[Any, ...]:
        copies = (each.detach().clone() for each in self.operands)
        return tuple(each.requires_grad_(place in self.differentiable) for place, each in enumerate(copies))


def cases(device: str) -> dict[str, Callable[[], Case]]:
    """The cases of all operators, small ones for the CPU."""
    small = device == "cpu"
    extent, experts, tokens = (64, 4, 6) if small else (512, 16, 256)
    random = torch.Generator(device).manual_seed(0)

    def normal(*shape: int, dtype: Any = torch.bfloat16, scale: float = 1.0) -> Any:  # noqa: ANN401 reason: torch's
        return (torch.randn(shape, generator=random, device=device) * scale).to(dtype)

    def integers(*values: Any) -> Any:  # noqa: ANN401 reason: torch's
        return torch.tensor(values, dtype=torch.int32, device=device)

    def matrices(*batch: int, dtype: Any = torch.bfloat16) -> Case:  # noqa: ANN401 reason: torch's
        a, b = normal(*batch, extent, extent, dtype=dtype), normal(extent, extent // 2, dtype=dtype)
        return Case(argus.matmul, (a, b), (0, 1), inductor=True, exact=torch.matmul)

    def rows(name: str, *weights: Any, **options: Any) -> Case:  # noqa: ANN401 reason: the operator's
        return Case(partial(getattr(argus, name), **options), (normal(64, extent, dtype=torch.float32), *weights))

    def eight() -> Case:
        a, b = normal(extent, extent), normal(extent, extent)
        scales = torch.tensor(0.5, device=device), torch.tensor(2.0, device=device)
        return Case(argus.scaled_matmul, (a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).T, *scales))

    def grouped() -> Case:
        ends = [tokens * each // experts for each in range(experts + 1)]
        given = normal(tokens, extent), normal(experts, extent, 64), integers(*ends)
        return Case(argus.grouped_matmul, given, (0, 1))

    def heads(**options: Any) -> Case:  # noqa: ANN401 reason: the operator's
        call = partial(argus.attention, **options)
        operands = tuple(normal(1, 2, extent, 64) for _ in range(3))
        return Case(call, operands, () if "window" in options else (0, 1, 2), inductor="window" not in options)

    def packed(q: Any, k: Any, v: Any, starts: Any) -> Any:  # noqa: ANN401 reason: torch's
        return argus.attention_varlen(q, k, v, starts, starts, max_seqlen_q=extent)

    def sequences() -> Case:
        return Case(packed, (*(normal(extent, 2, 64) for _ in range(3)), integers(0, 8, extent)), (0, 1, 2))

    def pages() -> Case:
        held = normal(4, 16, 2, 64), normal(4, 16, 2, 64), integers([0, 1], [2, 3]), integers(20, 9)
        return Case(partial(argus.attention_decode, scale=0.07), (normal(2, 4, 1, 64), *held))

    def layer() -> Case:
        ids = torch.randint(experts, (tokens, 2), generator=random, device=device)
        weights = torch.rand(tokens, 2, generator=random, device=device)
        held = normal(experts, 128, extent, scale=0.05), normal(experts, extent, 64, scale=0.05)
        return Case(experts_of, (normal(tokens, extent), *held, weights, ids), (0, 1, 2, 3), inductor=True)

    def ordered() -> Case:
        def order(ids: Any) -> Any:  # noqa: ANN401 reason: torch's
            return tuple(argus.expert_order(ids, experts, height=64))

        return Case(order, (torch.randint(experts, (tokens, 2), generator=random, device=device),))

    weights = partial(normal, extent, dtype=torch.float32)
    return {
        "matmul": matrices,
        "matmul of a batch with two axes": partial(matrices, 2, 3),
        "matmul of f32": partial(matrices, dtype=torch.float32),
        "scaled_matmul": eight,
        "grouped_matmul": grouped,
        "attention": partial(heads, causal=True, scale=0.11, deterministic=True),
        "attention with a window": partial(heads, window=(4, 0), softcap=20.0, return_lse=True),
        "attention_varlen": sequences,
        "attention_decode": pages,
        "softmax": lambda: rows("softmax"),
        "log_softmax": lambda: rows("log_softmax"),
        "rms_norm": lambda: rows("rms_norm", weights(), eps=3e-5),
        "layer_norm": lambda: Case(
            partial(argus.layer_norm, eps=2e-5), (normal(64, extent, dtype=torch.float32),), inductor=True
        ),
        "group_norm": lambda: Case(partial(argus.group_norm, groups=4), (normal(8, 8, 64, dtype=torch.float32),)),
        "row_sum": lambda: rows("row_sum"),
        "row_mean": lambda: rows("row_mean"),
        "cumsum": lambda: rows("cumsum"),
        "cross_entropy": lambda: rows("cross_entropy", torch.arange(64, device=device) % extent),
        "route": lambda: Case(partial(argus.route, k=2), (normal(tokens, 64, dtype=torch.float32),)),
        "expert_order": ordered,
        "received_order": lambda: Case(received, (integers([1, 2], [2, 1]),)),
        "moe": layer,
    }


def experts_of(x: Any, w: Any, v: Any, weights: Any, ids: Any) -> Any:  # noqa: ANN401 reason: torch's
    return argus.moe(x, w, v, ids, weights)


def received(counts: Any) -> Any:  # noqa: ANN401 reason: torch's
    return tuple(argus.received_order(counts, 64)[:3])


# -- checks --------------------------------------------------------------------------------------------------


def require(*, same: bool, what: str) -> None:
    if not same:
        raise AssertionError(what)


def equal(found: Any, wanted: Any) -> bool:  # noqa: ANN401 reason: tensors in any structure
    pairs = list(zip(tree_leaves(found), tree_leaves(wanted), strict=True))
    return all(one.dtype == other.dtype and torch.equal(one, other) for one, other in pairs)


def gradients(call: Callable[..., Any], case: Case) -> tuple[Any, list[Any]]:
    """A result, and the gradients of the operands for a gradient of the result that depends on it."""
    given = case.requiring()
    found = call(*given)
    first = tree_leaves(found)[0]
    first.backward((first.detach() * 0.25).contiguous())
    return found, [given[place].grad for place in case.differentiable]


def direct(case: Case, device: str) -> None:
    del device
    found = case(*case.operands)
    if case.exact is not None:
        exact = case.exact(*(each.double() for each in case.operands))
        error = ((found.double() - exact).abs().max() / exact.abs().max()).item()
        require(same=error < (1e-5 if found.dtype == torch.float32 else 2.0**-7), what=f"{error:.1e} from float64")
    if not case.differentiable or case.exact is None:
        return
    _, own = gradients(case, case)
    doubled = Case(case.exact, tuple(each.double() for each in case.operands), case.differentiable)
    given = doubled.requiring()
    exact = case.exact(*given)
    exact.backward(found.double() * 0.25)
    for place, each in zip(case.differentiable, own, strict=True):
        wanted = given[place].grad
        error = ((each.double() - wanted).abs().max() / wanted.abs().max()).item()
        require(same=error < (1e-5 if each.dtype == torch.float32 else 2.0**-6), what=f"a gradient {error:.1e} off")


def compiled(case: Case, device: str, **how: Any) -> None:  # noqa: ANN401 reason: of torch.compile
    del device
    TORCH._dynamo.reset()
    call = TORCH.compile(case, fullgraph=True, **how)
    for operands in (case.operands, case.others(), case.operands):
        found = [each.clone() for each in tree_leaves(call(*operands))]
        require(same=equal(found, tree_leaves(case(*operands))), what="a compiled call differs")
    if case.differentiable:
        wanted = gradients(case, case)
        for _ in range(3):
            found = gradients(call, case)
            require(same=equal(found, wanted), what="a gradient of a compiled call differs")
        with torch.no_grad():
            require(same=equal(call(*case.operands), wanted[0]), what="a compiled call without gradients differs")


def captured(case: Case, device: str) -> None:
    require(same=device != "cpu", what="no graphs on the CPU")
    held = tuple(each.clone() for each in case.operands)
    case(*held)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with TORCH.cuda.graph(graph):
        found = case(*held)
    for operands in (case.others(), case.operands):
        for into, each in zip(held, operands, strict=True):
            into.copy_(each)
        graph.replay()
        require(same=equal(found, case(*operands)), what="a replayed graph differs")


def registered_calls(case: Case) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """The calls of registered operators that a public one makes, with operands that require gradients."""
    found: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def keep(graph: Any, example: list[Any]) -> Callable[..., Any]:  # noqa: ANN401 reason: a module of torch.fx
        given = iter(example)
        held: dict[Any, Any] = {}
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                held[node] = next(given)
            elif str(node.target).startswith("argus."):
                found.append((node.target, TORCH.fx.map_arg(node.args, held.__getitem__), dict(node.kwargs)))
        return graph.forward

    TORCH._dynamo.reset()
    TORCH.compile(case, backend=keep, fullgraph=True)(*case.requiring())
    return found


def checked_by_torch(case: Case, device: str) -> None:
    del device
    calls = registered_calls(case)
    require(same=bool(calls), what="no registered operator is called")
    for target, operands, options in calls:
        eight = any(getattr(each, "dtype", None) == torch.float8_e4m3fn for each in operands)
        checks = ("test_autograd_registration", "test_faketensor")  # torch compares no 8-bit floats
        found = TORCH.library.opcheck(target, operands, options, **({"test_utils": checks} if eight else {}))
        require(same=set(found.values()) == {"SUCCESS"}, what=str(found))


class Exported(torch.nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, *operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(tree_leaves(self.case(*operands)))


def exported(case: Case, device: str) -> None:
    del device
    program = torch.export.export(Exported(case), case.operands, strict=False)
    for operands in (case.operands, case.others()):
        wanted = tuple(tree_leaves(case(*operands)))
        require(same=equal(program.module()(*operands), wanted), what="an exported program differs")


def autocast(case: Case, device: str) -> None:
    """Products of f32 operands have the type of autocast, and the bits of a call with operands of that type."""
    single = tuple(each.float() if each.dtype == torch.bfloat16 else each for each in case.operands)
    half = tuple(each.bfloat16() if each.dtype == torch.float32 else each for each in single)
    with torch.autocast(device, dtype=torch.bfloat16):
        found = case(*single)
    require(same=equal(found, case(*half)), what="a call under autocast differs")


def steps(case: Case, device: str) -> Iterator[tuple[str, Callable[[Case, str], None]]]:
    yield "direct", direct
    yield "aot_eager", partial(compiled, backend="aot_eager")
    yield "opcheck", checked_by_torch
    yield "exported", exported
    if case.exact is torch.matmul:
        yield "autocast", autocast
    if device != "cpu":
        yield "captured", captured
        if case.inductor:
            yield "inductor", compiled
            yield "reduce-overhead", partial(compiled, mode="reduce-overhead")


def checked(device: str, solver: str, name: str) -> tuple[bool, str]:
    try:
        with argus.use_solver(solver):
            return checked_by(device, name)
    except argus.ArgusError as problem:
        return False, f"{name}: {problem}"


def checked_by(device: str, name: str) -> tuple[bool, str]:
    """Whether all steps of an operator are right, and a line on them."""
    said: list[str] = []
    right = True
    began = perf_counter()
    try:
        case = cases(device)[name]()
    except Exception as problem:  # noqa: BLE001 reason: the other operators are checked all the same
        return False, f"{name}: {problem}"
    for step, check in steps(case, device):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.filterwarnings("ignore", module=r"torch\._inductor")  # about the GPU, not about operators
                warnings.filterwarnings("ignore", "The CUDA Graph is empty")  # by which torch keeps its own memory
                for kind in (DeprecationWarning, FutureWarning):
                    warnings.filterwarnings("ignore", category=kind, module=r"torch\.")  # of torch in torch
                check(case, device)
            said.append(f"{step} right")
        except Exception as problem:  # noqa: BLE001 reason: the other steps are made all the same
            right = False
            said.append(f"{step} WRONG ({type(problem).__name__}: {str(problem)[:300]})")
    return right, f"{name}: {', '.join(said)}; {perf_counter() - began:.1f} s"


# -- times ---------------------------------------------------------------------------------------------------


def host_microseconds(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Of each call on the host, the median of rounds that alternate."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            for _ in range(20):
                call()
            torch.cuda.synchronize()
            began = perf_counter()
            for _ in range(CALLS):
                call()
            found[name].append((perf_counter() - began) / CALLS * 1e6)
            torch.cuda.synchronize()
    return {name: median(each) for name, each in found.items()}


def times() -> Iterator[str]:
    """The function alone has no decorator; a registered operator is called by its overload."""
    a, b = (torch.randn(256, 256, device="cuda").bfloat16() for _ in range(2))
    x = torch.randn(64, 512, device="cuda")
    q, k, v = (torch.randn(1, 2, 128, 64, device="cuda").bfloat16() for _ in range(3))
    operators: Any = torch.ops.argus
    given = {
        "matmul": (argus.matmul, (a, b), operators.matmul.default, torch.matmul),
        "softmax": (argus.softmax, (x,), operators.softmax.default, partial(torch.softmax, dim=-1)),
        "attention": (argus.attention, (q, k, v), operators.attention.default, None),
    }
    for name, (public, operands, registered, peer) in given.items():
        TORCH._dynamo.reset()
        graph = TORCH.compile(public, backend="aot_eager", fullgraph=True)
        alone: Any = unwrap(public)
        calls = {
            "function alone": partial(alone, *operands),
            "public": partial(public, *operands),
            "registered": partial(registered, *operands),
            "one graph": partial(graph, *operands),
        }
        if peer is not None:
            calls["torch"] = partial(peer, *operands)
        found = host_microseconds(calls)
        yield f"{name}: " + ", ".join(f"{each} {microseconds:.2f} us" for each, microseconds in found.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--jobs", type=int, default=8, help="processes that share the GPU")
    parser.add_argument("--solver", default="portfolio", help="which verifies the kernels")
    parser.add_argument("--named", default="", help="only operators with this in their name")
    asked = parser.parse_args()
    print(f"torch {torch.__version__}", flush=True)
    wrong = 0
    names = [name for name in cases(asked.device) if asked.named in name]
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        for right, line in pool.map(partial(checked, asked.device, asked.solver), names):
            wrong += not right
            print(line, flush=True)
    for line in times() if asked.device != "cpu" else ():
        print(line, flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
