"""A graph's launches as one CUDA graph: recorded at the second call, replayed afterwards, with little of the host.

The first call runs as it is, so that kernels are loaded. At the second, inputs that lie where they lay before (weights)
stay where they are, and others (activations) get a place of their own, into which later calls copy them. If one of the
first kind lies elsewhere later, it joins the second, and the graph is recorded again. Results are copied: those of
one call stay as they are when the next one is replayed.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import torch
from attrs import define, field

from argus.core.diagnostic import ArgusError
from argus.torch.compiled import Compiled, KernelStep
from argus.torch.steps import EagerStep

_MOST = 8
"""Recordings of a graph, each of which holds memory: of other shapes, streams and threads, calls run as they are."""
_AGAIN = 4
"""Recordings for one kind of call, after which it runs as it is."""
_FLOATS = frozenset(("f32", "bf16", "f16"))
_WARNED: set[str] = set()
_cuda: Any = torch.cuda
T = TypeVar("T")


class Recorder(Protocol):
    """What records launches. device: the type of tensors whose launches it records."""

    device: str

    def stream(self) -> int:
        """The stream of this thread's launches."""
        ...

    def is_bound(self, step: KernelStep) -> bool:
        """Whether later launches of a step that has run depend on addresses alone."""
        ...

    def record(self, call: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """The launches of a call, which do not run yet, as a function, and the results of it, which they fill.

        Raises RuntimeError if the call does what cannot be recorded.
        """
        ...


class CudaGraphs:
    """Launches as a CUDA graph of torch's."""

    device = "cuda"

    def stream(self) -> int:
        return int(_cuda.current_stream().cuda_stream)

    def is_bound(self, step: KernelStep) -> bool:
        return bool(step.ready) or all(each.empty for each in step.prepared.values())

    def record(self, call: Callable[[], T]) -> tuple[Callable[[], None], T]:
        graph = _cuda.CUDAGraph()
        with _cuda.graph(graph, capture_error_mode="thread_local"):
            results = call()
        return graph.replay, results


def _cuda_graphs() -> Recorder:
    return CudaGraphs()


@define
class _Recording:
    """places: addresses at the call before. moved: the inputs that are copied. held: their places, by number."""

    places: tuple[int, ...]
    moved: set[int] = field(factory=set[int])
    held: dict[int, torch.Tensor] = field(factory=dict[int, torch.Tensor])
    replay: Callable[[], None] | None = None
    results: tuple[Any, ...] = ()
    times: int = 0


@define
class Recorded:
    """A graph that is recorded, where it can be. recordings: by what a call has in common with others but addresses."""

    compiled: Compiled
    recorder: Recorder = field(factory=_cuda_graphs)
    recordings: dict[object, _Recording] = field(factory=dict[object, _Recording])
    why: str | None = None
    """Why it is not recorded; empty if it may be, None before the first call has ended."""

    def __call__(self, *given: Any) -> tuple[Any, ...]:  # noqa: ANN401 reason: torch's
        tensors = [each for each in given if isinstance(each, torch.Tensor)]
        if self.why or not _are_recorded(tensors, self.recorder.device):
            return self.compiled(*given)
        key = self._key(given)
        places = tuple(each.data_ptr() for each in tensors)
        known = self.recordings.get(key)
        if known is None:
            results = self.compiled(*given)
            if self.why is None:
                self._decide()
            if not self.why and len(self.recordings) < _MOST:
                self.recordings[key] = _Recording(places)
            return results
        return self._replayed(known, given, tensors, places)

    def _key(self, given: Sequence[Any]) -> object:
        kinds = (
            (tuple(each.shape), each.stride(), each.dtype, each.device) if isinstance(each, torch.Tensor) else each
            for each in given
        )
        return tuple(kinds), self.recorder.stream(), threading.get_ident()

    def _decide(self) -> None:
        """Whether all steps may be recorded, once they have run."""
        self.why = next((why for step in self.compiled.steps if (why := self._why_not(step))), "")
        self._warn()

    def _warn(self) -> None:
        """A warning, once for each reason."""
        if self.why and self.why not in _WARNED:
            _WARNED.add(self.why)
            warnings.warn(f"argus: a graph is not recorded as a CUDA graph: {self.why}", UserWarning, stacklevel=4)

    def _why_not(self, step: object) -> str:
        match step:
            case KernelStep():
                bound = self.recorder.is_bound(step)
                return "" if bound else f"`{step.family.name}` checks what it reads on the host at each launch"
            case EagerStep() if not step.allocates:
                types = self.compiled.graph.types
                kinds = {types[name].dtype if name in types else "" for name in step.reads}
                own = step.is_proved and step.called is step.target and kinds <= _FLOATS
                return "" if own else f"`{step.operation}` may need the host, or other numbers at each call"
            case _:
                return ""

    def _replayed(
        self, of: _Recording, given: Sequence[Any], tensors: Sequence[torch.Tensor], places: tuple[int, ...]
    ) -> tuple[Any, ...]:
        elsewhere = {k for k, (old, own) in enumerate(zip(of.places, places, strict=True)) if old != own} - of.moved
        if of.replay is None or elsewhere:
            if of.times == _AGAIN:
                return self.compiled(*given)
            of.times += 1
            of.moved |= elsewhere
            of.places = places
            if not self._record(of, given, tensors):
                return self.compiled(*given)
        for k in of.moved:
            of.held[k].copy_(tensors[k])
        assert of.replay is not None
        of.replay()
        return tuple(each.clone() if isinstance(each, torch.Tensor) else each for each in of.results)

    def _record(self, of: _Recording, given: Sequence[Any], tensors: Sequence[torch.Tensor]) -> bool:
        """Whether the call could be recorded."""
        of.replay, of.results = None, ()
        of.held = {
            k: torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device)
            for k, each in enumerate(tensors)
            if k in of.moved
        }
        inputs = iter(of.held.get(k, each) for k, each in enumerate(tensors))
        own = [next(inputs) if isinstance(each, torch.Tensor) else each for each in given]
        try:
            of.replay, of.results = self.recorder.record(lambda: self.compiled(*own))
        except (RuntimeError, ArgusError) as problem:
            self.why = f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"
            self._warn()
            return False
        return True


def _are_recorded(tensors: Sequence[torch.Tensor], device: str) -> bool:
    """Whether tensors lie on one device of this type, and each element by itself."""
    places = {each.device for each in tensors}
    apart = all(step or size <= 1 for each in tensors for size, step in zip(each.shape, each.stride(), strict=True))
    return apart and len(places) == 1 and next(iter(places)).type == device
