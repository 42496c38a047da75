"""`torch.compile(model, backend="argus")`: graphs become nests, nests proved kernels; what is not covered is said."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from operator import getitem
from time import perf_counter
from typing import Any, Literal, cast

import torch
from attrs import frozen
from torch._dynamo.backends.common import aot_autograd

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.torch.captured import own_attention_in_functions, with_own_functions
from argus.torch.compiled import Compiled
from argus.torch.decompositions import decompositions
from argus.torch.planner import PROOF_SECONDS, Planner
from argus.torch.recorded import Recorded
from argus.torch.report import EagerEntry, GraphEntry, fallback_text, record
from argus.torch.rewrites import Rewrites
from argus.torch.steps import EagerStep

Fallback = Literal["eager", "error"]
_WARNED: set[str] = set()


@frozen
class Options:
    """fallback: what happens to operations that are not covered: eager torch runs them, or E418 is raised.

    proof_seconds: of the processor, for the proofs of a graph; a kernel without a proof by then is not used. rewrites:
    whether sums are computed in another order, proved equal over the reals, where that takes less. cuda_graphs: whether
    the launches of graphs without gradients are recorded as one CUDA graph (`argus.torch.recorded`).
    """

    fallback: Fallback = "eager"
    proof_seconds: float = PROOF_SECONDS
    rewrites: bool = True
    cuda_graphs: bool = False


def argus_backend(module: Any, inputs: Sequence[Any], **given: Any) -> Callable[..., Any]:  # noqa: ANN401 reason: torch's
    """The backend that `torch.compile(model, backend="argus", options={...})` calls with each graph.

    options: `fallback`, "eager" (the default) or "error"; `proof_seconds`; `rewrites`; `cuda_graphs`, which the mode
    "reduce-overhead" sets. Raises ArgusError (E418) for operations that are not covered, if they are errors, and for
    other options and modes.
    """
    options = _options({**_of_mode(given.get("mode")), **cast("Mapping[str, Any]", given.get("options") or {})})

    def compiler(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:  # noqa: ANN401 reason: torch's
        return _boxed(compiled(graph, options))

    def without_gradients(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:  # noqa: ANN401 reason: torch's
        return _boxed(Recorded(compiled(graph, options)))

    return captured(module, inputs, compiler, without_gradients if options.cuda_graphs else compiler)


def captured(
    module: Any,  # noqa: ANN401 reason: torch's
    inputs: Sequence[Any],
    compiler: Callable[..., Any],
    without_gradients: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """What AOTAutograd makes of a graph of dynamo's.

    compiler: of the graphs of aten operations, and inputs. without_gradients: of those that need none, if another.
    """
    with_own_functions(module.graph)
    module.recompile()
    made: Any = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=without_gradients or compiler,
        decompositions=decompositions(),
    )
    with own_attention_in_functions():
        return made(module, inputs)


def _boxed(run: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """The graph as a function that empties the list of its inputs, by which AOTAutograd passes them."""

    def boxed(inputs: list[Any]) -> Any:  # noqa: ANN401 reason: torch's
        given = tuple(inputs)
        inputs.clear()
        return run(*given)

    vars(boxed)["_boxed_call"] = True
    return boxed


def _options(given: dict[str, Any]) -> Options:
    fallback, seconds = given.pop("fallback", "eager"), given.pop("proof_seconds", PROOF_SECONDS)
    rewrites, graphs = given.pop("rewrites", True), given.pop("cuda_graphs", False)
    if fallback not in ("eager", "error") or given:
        found = f"`fallback` is {fallback!r}" if fallback not in ("eager", "error") else f"there is no option {given!r}"
        raise _refusal(f"{found}", "write `options={'fallback': 'eager'}` or `'error'`")
    if not isinstance(seconds, int | float) or not seconds >= 0:
        raise _refusal(f"`proof_seconds` is {seconds!r}", "write a number of seconds")
    if not isinstance(rewrites, bool):
        raise _refusal(f"`rewrites` is {rewrites!r}", "write `True` or `False`")
    if not isinstance(graphs, bool):
        raise _refusal(f"`cuda_graphs` is {graphs!r}", "write `True` or `False`")
    return Options(fallback, float(seconds), rewrites, graphs)


def _of_mode(mode: object) -> Mapping[str, Any]:
    """The options that a mode of `torch.compile` stands for. Raises ArgusError (E418) for others."""
    if mode in (None, "default"):
        return {}
    if mode != "reduce-overhead":
        raise _refusal(f"there is no mode {mode!r}", 'write `mode="reduce-overhead"`, or leave it out')
    return {"cuda_graphs": True}


def _refusal(message: str, repair: str) -> ArgusError:
    return ArgusError(Diagnostic("E418", "error", f'`torch.compile(backend="argus")`: {message}', help=repair))


def compiled(module: Any, options: Options) -> Compiled:  # noqa: ANN401 reason: a module of torch.fx
    """A graph of aten operations that is ready to run, and its entry in the report. Raises ArgusError (E418)."""
    start = perf_counter()
    hints = _hints(module.graph)
    rewrites = Rewrites(hints) if options.rewrites else None
    planner = Planner(hints, options.proof_seconds, _is_on_gpu(module.graph), rewrites=rewrites)
    graph, steps = planner.planned(module)
    calls = [step for step in graph.steps if isinstance(step, EagerStep) and not step.allocates]
    eager = tuple(EagerEntry(step.operation, step.node, step.why) for step in calls if not step.is_proved)
    operators = tuple(str(step.called) for step in calls if step.is_proved)
    failed, seconds = tuple(planner.failed.values()), perf_counter() - start
    count = sum(node.op == "call_function" and node.target is not getitem for node in module.graph.nodes)
    rewritten = () if rewrites is None else tuple(rewrites.entries.values())
    in_proofs = planner.in_proofs + (0.0 if rewrites is None else rewrites.seconds)
    record(GraphEntry(planner.entries, eager, operators, seconds, failed, in_proofs, count, rewritten))
    if eager and options.fallback == "error":
        raise _refusal(
            f"{len(eager)} operations are not covered: {fallback_text(eager)}",
            "leave `fallback` out, and eager torch runs them",
        )
    _warn(eager)
    return Compiled.of(graph, steps, module)


def _warn(eager: Sequence[EagerEntry]) -> None:
    """A warning for operations that were not in one before."""
    new = [each for each in eager if each.operation not in _WARNED]
    if new:
        _WARNED.update(each.operation for each in new)
        said = (
            f"argus: eager torch runs {len(eager)} operations of a graph ({fallback_text(new)}); argus.torch.report()"
        )
        warnings.warn(said, UserWarning, stacklevel=2)


def _is_on_gpu(graph: Any) -> bool:  # noqa: ANN401 reason: a graph of torch.fx
    values = (node.meta.get("val") for node in graph.nodes if node.op == "placeholder")
    return any(isinstance(each, torch.Tensor) and each.is_cuda for each in values)


def _hints(graph: Any) -> dict[str, int]:  # noqa: ANN401 reason: a graph of torch.fx
    """The values of symbolic sizes in the call that is compiled for."""
    found: dict[str, int] = {}
    for node in graph.nodes:
        value: Any = node.meta.get("val") if node.op == "placeholder" else None
        sizes: list[Any] = list(value.shape) if isinstance(value, torch.Tensor) else [value]
        for each in sizes:
            symbolic: Any = getattr(each, "node", None)
            if symbolic is not None and symbolic.expr.is_Symbol and symbolic.hint is not None:
                found[str(symbolic.expr)] = int(symbolic.hint)
    return found
