"""One launch in a process of its own: `python -m argus.runtime.processes.worker FOLDER`.

The folder is as `argus.runtime.processes.request` says. A kernel that hangs or faults takes this process with it, and
no other.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from argus.core.diagnostic import ArgusError
from argus.runtime.cuda.device import Device, opened
from argus.runtime.cuda.driver import Driver
from argus.runtime.cuda.launch import load
from argus.runtime.processes.request import Request, Result, read_request, write_result

POISON = 0xFF
"""Every byte of an output before the launch: not a number, in every floating type that has one."""


def run(folder: Path, driver: Driver | None = None) -> None:
    """Launch what the folder asks for, and leave the result or the diagnostic there."""
    try:
        result = _launched(read_request(folder), folder, opened(driver))
    except ArgusError as problem:
        result = problem.diagnostic
    write_result(folder, result)


def _launched(request: Request, folder: Path, device: Device) -> Result:
    device.check_runs(request.target)
    kernel = load(Path(request.description), device.driver)
    memory = {each.name: device.allocate(each.shape, each.size) for each in request.tensors}
    for each in request.tensors:
        if each.read:
            memory[each.name].write(np.fromfile(each.file(folder), np.uint8))
        else:
            memory[each.name].fill(POISON)
    launch = kernel.bind(memory, request.sizes)
    launch()
    device.synchronise()
    for each in request.tensors:
        if each.written:
            memory[each.name].read().tofile(each.file(folder))
    return Result(device.name, tuple(device.timed(launch, request.repeats)))


if __name__ == "__main__":
    run(Path(sys.argv[1]))
