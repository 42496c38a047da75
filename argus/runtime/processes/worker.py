"""The worker process, which runs one launch: `python -m argus.runtime.processes.worker FOLDER`.

`argus.runtime.processes.request` defines the folder's files. A kernel that hangs or faults affects only this process.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from argus.core.diagnostic import ArgusError
from argus.runtime.cuda.device import Device, open_gpu
from argus.runtime.cuda.driver import Driver
from argus.runtime.cuda.launch import load
from argus.runtime.processes.request import Request, Result, read_request, write_result

POISON = 0xFF
"""The value of every byte of an output before the launch: NaN in every floating-point type that has one."""


def run(folder: Path, driver: Driver | None = None) -> None:
    """Run the launch that the folder requests, and write the result or the diagnostic there."""
    try:
        result = _launch(read_request(folder), folder, open_gpu(driver))
    except ArgusError as problem:
        result = problem.diagnostic
    write_result(folder, result)


def _launch(request: Request, folder: Path, device: Device) -> Result:
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
