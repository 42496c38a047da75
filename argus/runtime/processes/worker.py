"""The worker process, which runs one launch, or those of a program: `python -m argus.runtime.processes.worker FOLDER`.

`argus.runtime.processes.request` defines the folder's files. A kernel that hangs or faults affects only this process.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from argus.core.diagnostic import ArgusError
from argus.runtime.gpu.device import Device
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.find import open_gpu
from argus.runtime.gpu.launch import load
from argus.runtime.processes.request import Request, Result, read_request, write_result
from argus.runtime.programs import LoadedProgram, load_program

POISON = 0xFF
"""The value of every byte of an output and a workspace before the launch: NaN in every float type that has one."""


def run(folder: Path, driver: GpuDriver | None = None) -> None:
    """Run the launch that the folder requests, and write the result or the diagnostic there."""
    try:
        result = _launch(read_request(folder), folder, open_gpu(driver))
    except ArgusError as problem:
        result = problem.diagnostic
    write_result(folder, result)


def _launch(request: Request, folder: Path, device: Device) -> Result:
    device.check_runs(request.target)
    description = Path(request.description)
    kernel = load_program(description, device.driver) if request.program else load(description, device.driver)
    memory = {each.name: device.allocate(each.shape, each.size) for each in request.tensors}
    for each in request.tensors:
        if each.read:
            memory[each.name].write(np.fromfile(each.file(folder), np.uint8))
        else:
            memory[each.name].fill(POISON)
    if isinstance(kernel, LoadedProgram):
        for each in kernel.prepare(request.sizes).workspaces:
            memory[each.name] = device.allocate(each.shape, each.element)
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
