"""Finds the GPUs of this machine through the driver libraries that are installed."""

from __future__ import annotations

import os

from argus.core.diagnostic import ArgusError
from argus.runtime.cuda.driver import find_driver as find_cuda
from argus.runtime.gpu.device import Device
from argus.runtime.gpu.driver import GpuDriver, no_gpu
from argus.runtime.hip.driver import find_driver as find_hip

VISIBLE = {"CUDA": "CUDA_VISIBLE_DEVICES", "HIP": "HIP_VISIBLE_DEVICES"}
"""The environment variable that names the GPUs a process sees, by driver library."""


def find_driver(target: str = "") -> GpuDriver:
    """The library that drives the GPUs of a target; of none: the CUDA driver, or else HIP, whichever sees a GPU.

    target: "gfx942" or "sm_90a": a machine may have GPUs of both makers. Raises ArgusError (E406) like `find_cuda`.
    """
    if target:
        return find_hip() if target.startswith("gfx") else find_cuda()
    try:
        found = find_cuda()
        if found.devices():
            return found
        problem = no_gpu("the driver sees none")
    except ArgusError as raised:
        problem = raised
    try:
        other = find_hip()
        if other.devices():
            return other
    except ArgusError:
        pass
    raise problem


def find_gpu(driver: GpuDriver | None = None) -> Device:
    """The first GPU, without creating a context on it. Raises ArgusError (E406) if there is none."""
    used = find_driver() if driver is None else driver
    if used.devices() == 0:
        raise no_gpu("the driver sees none")
    return Device(used, used.name_of(0), used.architecture_of(0), used.bus_of(0))


def visible_gpus(driver: GpuDriver | None = None) -> tuple[str, ...]:
    """GPUs of the first one's model, named as in `VISIBLE`. Raises ArgusError (E406) without a driver."""
    used = find_driver() if driver is None else driver
    named = [each.strip() for each in os.environ.get(VISIBLE[used.api], "").split(",") if each.strip()]
    models = [used.name_of(number) for number in range(used.devices())]
    return tuple(named[number] if named else str(number) for number, model in enumerate(models) if model == models[0])


def open_gpu(driver: GpuDriver | None = None) -> Device:
    """The first GPU, with its primary context current. Raises ArgusError (E406) if there is none."""
    device = find_gpu(driver)
    device.driver.enter(device.driver.context_of(0))
    return device
