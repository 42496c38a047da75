"""The call path of every operator on torch tensors: configuration, launch gate, cached kernel, launch.

An operator checks its operands and describes the call as a `Plan`; `launch` does the rest. It also returns a `Product`
that runs later calls whose operands differ only in their addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, partial
from importlib import import_module
from typing import Any, NoReturn, TypeVar

from attrs import field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel, Program
from argus.runtime.gpu.guards import Promises
from argus.runtime.interpreted import interpret_on
from argus.runtime.launch_gate import Unproved, load_verified, require_verified
from argus.runtime.launches import Call, Product, Result, Schedule, bind_product, one_or_all, torch_device
from argus.runtime.programs import Workspace

_UNFIT = frozenset(("E106", "E107", "E108", "E109", "E302", "E303", "E304", "E307", "E401", "E405", "E413", "E501"))
"""Error codes for a configuration that is missing, not proved, or unsuited to the shape: try the next candidate."""
_TYPES = {
    "f32": "float32",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "bf16": "bfloat16",
    "f16": "float16",
    "e4m3": "float8_e4m3fn",
    "e4m3fnuz": "float8_e4m3fnuz",
}
"""torch's names of element types."""
Arrays = Mapping[str, Any]
T = TypeVar("T")
Traced = tuple[Kernel | Program, str]
"""A kernel or a program, and the name of the module that defines it."""


@frozen
class Candidate:
    """A configuration of a kernel family, by their names. traced: traces the kernel or program, on demand."""

    family: str
    config: str
    traced: Callable[[], Traced] = field(eq=False)


@frozen
class Plan:
    """One call of an operator.

    results: shape and dtype of each. sizes: of the kernel, by name. candidates: tried in order; a failure of the last
    is raised. named: maps operands and results, in order, to the kernel's tensors by name, operands first. strided:
    names of the tensors that need not be row-major. promises: how integers with a data contract are checked, of a
    kernel that takes such. ordered: the kernel's tensors, if they are the operands and results, in order.
    """

    results: Sequence[Result]
    sizes: tuple[tuple[str, int], ...]
    candidates: Sequence[Candidate]
    named: Callable[..., Arrays]
    strided: tuple[str, ...] = ()
    promises: Promises | None = None
    ordered: tuple[str, ...] = ()


def launch(plan: Plan, operands: tuple[Any, ...], unproved: Unproved) -> tuple[Any, Product | None]:
    """The result (a tuple, of several), and a function for later calls with equal shapes and strides; None where
    operands had to be copied, or integers are checked on the host.

    Raises ArgusError: E405 if no candidate supports the sizes, E406 to E409 for errors on the GPU, E413 for a kernel
    without a proof, E303 without a compiler.
    """
    if not operands[0].is_cuda:
        return _interpreted(plan, operands, unproved), None
    first, index = operands[0], operands[0].device.index
    used = torch_device(torch(), index)
    with nullcontext() if used.current() == index else used.on(index):
        outs = tuple(used.result(first, *each) for each in plan.results)
        arrays = plan.named(*operands, *outs)
        call = Call(plan.sizes, tuple(arrays[name].stride() for name in plan.strided), plan.promises)

        def launched(schedule: Schedule) -> None:
            given = {**arrays, **used.room(first, _typed(schedule.spaces(call)))}
            schedule.launch(call, tuple(each.data_ptr() for each in given.values()), lambda: given, used.stream(index))

        schedule = _first(plan.candidates, index, unproved, launched)
    copied = any(used_.data_ptr() != own.data_ptr() for used_, own in zip(arrays.values(), operands, strict=False))
    if copied or schedule.reads_to_bind(call):
        return one_or_all(outs), None
    spaces = _typed(schedule.spaces(call))
    move = schedule.bind_places(call, plan.ordered) if plan.ordered else None
    return one_or_all(outs), bind_product(schedule, call, used, plan.results, plan.named, spaces, move)


MOST_INTERPRETED = 1 << 22
"""Elements of operands and results on the CPU, where a kernel is interpreted."""


def is_placed(tensor: Any) -> bool:  # noqa: ANN401 reason: torch's
    """Whether operators take tensors of its device: GPUs, and the CPU, where kernels are interpreted.

    Tensors without memory have a result that has none, by the registered operators.
    """
    return tensor.is_cuda or getattr(tensor, "is_cpu", False) or getattr(tensor, "is_meta", False)


def _interpreted(plan: Plan, operands: tuple[Any, ...], unproved: Unproved) -> Any:  # noqa: ANN401 reason: torch's
    """The result on the CPU: kernels pass the same gate, and the interpreter runs them."""
    first = operands[0]
    refuse = refuser(plan.candidates[-1].family)
    if not first.is_cpu:
        refuse(f"operands are on {first.device}, where nothing is computed", "call `torch.ops.argus`")
    outs = tuple(first.new_empty(shape, dtype=dtype) for shape, dtype in plan.results)
    elements = sum(each.numel() for each in (*operands, *outs))
    if elements > MOST_INTERPRETED:
        message = f"{elements} elements on the CPU, where kernels are interpreted, expected at most {MOST_INTERPRETED}"
        refuse(message, "move the operands to a GPU: `.cuda()`")
    arrays = plan.named(*operands, *outs)

    def interpreted(candidate: Candidate) -> None:
        interpret_on(_proved(candidate, unproved), dict(plan.sizes), arrays, torch())

    _first_fit(plan.candidates, interpreted, _UNFIT | {"E402"})  # as the interpreter says of sizes
    return one_or_all(outs)


@cache
def _proved(candidate: Candidate, unproved: Unproved) -> Kernel | Program:
    """The candidate's kernel or program. Raises ArgusError (E413) like `load_verified`."""
    traced, module = candidate.traced()
    require_verified(traced, module, unproved)
    return traced


def _first(
    candidates: Sequence[Candidate], device: int, unproved: Unproved, launched: Callable[[Schedule], None]
) -> Schedule:
    """Launch the first candidate that exists and supports the shape."""

    def entered(candidate: Candidate) -> Schedule:
        schedule = load_candidate(candidate, device, unproved)
        schedule.enter()
        launched(schedule)
        return schedule

    return _first_fit(candidates, entered, _UNFIT)


def _first_fit(candidates: Sequence[Candidate], run: Callable[[Candidate], T], unfit: Collection[str]) -> T:
    """What the first candidate gives that exists, is proved and supports the shape; the failure of the last is raised.

    unfit: codes of failures after which the next one is tried.
    """
    *hints, last = candidates
    for hint in hints:
        try:
            return run(hint)
        except ArgusError as problem:
            if problem.diagnostic.code not in unfit:
                raise
    return run(last)


@cache
def load_candidate(candidate: Candidate, device: int, unproved: Unproved) -> Schedule:
    """The candidate's code, loaded on a device. Raises ArgusError like `load_verified`."""
    traced, module = candidate.traced()
    return Schedule(*load_verified(traced, module, device, torch().cuda.get_device_properties(device), unproved))


def _typed(spaces: Sequence[Workspace]) -> tuple[tuple[Workspace, object], ...]:
    """Each workspace with its torch dtype."""
    return tuple((each, getattr(torch(), _TYPES[each.dtype])) for each in spaces)


def torch() -> Any:  # noqa: ANN401 reason: an extra, which only its own tensors bring in
    return import_module("torch")


def refuser(operator: str) -> Callable[[str, str], NoReturn]:
    """A function of a message and a repair that raises ArgusError (E401) for an operator's unsupported operands."""
    return partial(_refuse, operator)


def _refuse(operator: str, message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic("E401", "error", f"{operator}: {message}", help=advice))
