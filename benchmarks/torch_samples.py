"""Runs torch's own sample inputs through `torch.compile(backend="argus")` on the CPU: `benchmarks/torch_samples.py`.

torch ships inputs for each of its operations, for its own tests (`torch.testing._internal`, which needs the package
`expecttest`). Each is compiled here, by itself, and compared with eager torch. Prints what differs, what ends in an
error of Argus, and how many samples had kernels; operations that eager torch runs as a whole are not counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import random
import signal
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

_TORCH: Any = torch
"""torch, of whose inner modules nothing is typed."""
TYPES = ("float32", "int64", "bfloat16", "bool")
SECONDS = 30
"""For one sample."""
LARGEST = 20_000
"""Elements of a sample; larger ones take the interpreter too long."""
_BOUNDS = {torch.float32: (2e-5, 1e-5), torch.bfloat16: (2e-2, 1e-2)}


class LateError(Exception):
    """A sample took too long."""


def operations() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db  # noqa: PLC0415 reason: it imports for seconds

    return {f"{each.name}.{each.variant_test_name}".rstrip("."): each for each in op_db}


def tensors(found: object) -> list[Any]:
    leaves: list[object] = _TORCH.utils._pytree.tree_leaves(found)
    return [each for each in leaves if isinstance(each, torch.Tensor)]


def given_of(sample: Any) -> tuple[object, ...]:  # noqa: ANN401 reason: torch's
    return sample.input, sample.args, sample.kwargs


def difference(found: object, wanted: object) -> str:
    """The first result that is not eager torch's; empty if there is none."""
    for one, other in zip(tensors(found), tensors(wanted), strict=True):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{one.dtype} {tuple(one.shape)} for {other.dtype} {tuple(other.shape)}"
        rtol, atol = _BOUNDS.get(other.dtype, (0, 0))
        if not torch.allclose(one.double(), other.double(), rtol=rtol, atol=atol, equal_nan=True):
            wrong = ((one != other) & ~(one.isnan() & other.isnan())).flatten().nonzero().flatten()[:3]
            return f"{one.flatten()[wrong].tolist()} for {other.flatten()[wrong].tolist()}"
    return ""


def compared(operation: Any, sample: Any) -> str | None:  # noqa: ANN401 reason: torch's
    """What is wrong with one sample; None if it has no kernel of ours, or is none for eager torch."""
    import argus.torch  # noqa: PLC0415 reason: in a process of its own

    try:
        wanted = operation.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:  # noqa: BLE001 reason: torch's samples of errors
        return None
    torch.compiler.reset()
    argus.torch.clear_report()

    def function(given: Any, args: Any, named: Any) -> Any:  # noqa: ANN401 reason: torch's
        return operation.op(given, *args, **named)

    made = _TORCH.compile(function, backend="argus")
    signal.alarm(SECONDS)
    try:
        said = difference(made(sample.input, sample.args, sample.kwargs), wanted)
    except LateError:
        return f"not compiled in {SECONDS} s"
    except Exception as problem:  # noqa: BLE001 reason: the errors are what is looked for
        signal.alarm(0)
        text = str(problem)
        late = "LateError" in text
        return f"not compiled in {SECONDS} s" if late else text[:300].replace("\n", " ") if "argus" in text else None
    finally:
        signal.alarm(0)
    return said if said or any(each.kernels for each in argus.torch.report()) else None


def samples(operation: Any, kind: torch.dtype, most: int) -> Iterator[Any]:  # noqa: ANN401 reason: torch's
    if kind not in operation.dtypes or operation.name.startswith("empty"):  # nothing says what these hold
        return
    try:
        given = list(operation.sample_inputs("cpu", kind, requires_grad=False))
    except Exception:  # noqa: BLE001 reason: some need libraries that are not there
        return
    small = [each for each in given if sum(one.numel() for one in tensors(given_of(each))) <= LARGEST]
    yield from small[:: max(1, len(small) // most)][:most]


def work(jobs: Any, results: Any, most: int, deadline: float) -> None:  # noqa: ANN401 reason: queues
    def late(*_: object) -> None:
        raise LateError

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    torch.set_num_threads(1)
    known = operations()
    while (job := jobs.get()) is not None and time.time() < deadline:
        name, kind = job
        for sample in samples(known[name], getattr(torch, kind), most):
            said = compared(known[name], sample)
            if said is not None:
                shapes = [tuple(one.shape) for one in tensors(given_of(sample))]
                results.put((name, kind, said, f"{shapes} {sample.kwargs}"))
    results.put(None)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--most", type=int, default=4, help="samples of an operation and a type")
    parser.add_argument("names", nargs="*", help="operations; all by default")
    chosen = parser.parse_args()
    names = [each for each in operations() if not chosen.names or each in chosen.names]
    random.Random(0).shuffle(names)  # noqa: S311 reason: an order
    context = multiprocessing.get_context("spawn")
    jobs, results = context.Queue(), context.Queue()
    for job in [*((name, kind) for kind in TYPES for name in names), *[None] * chosen.jobs]:
        jobs.put(job)
    deadline = time.time() + chosen.seconds
    args = (jobs, results, chosen.most, deadline)
    running = [context.Process(target=work, args=args, daemon=True) for _ in range(chosen.jobs)]
    for each in running:
        each.start()
    ended, seen, wrong = 0, Counter[str](), 0
    while ended < len(running) and time.time() < deadline + SECONDS:
        try:
            found = results.get(timeout=5)
        except queue.Empty:
            continue
        ended += found is None
        if found is not None:
            name, kind, said, of = found
            seen[name] += 1
            wrong += bool(said)
            if said:
                print(f"{name} {kind} {of}: {said}", flush=True)
    print(f"{seen.total()} samples of {len(seen)} operations had kernels, {wrong} of them differ or end in an error")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
