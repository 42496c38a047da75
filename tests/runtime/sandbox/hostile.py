"""A valid kernel text, and helpers that run it with hostile lines in front."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from attrs import evolve

from argus.runtime.sandbox import Answer, Limits, Refused, Request, Task, Verified, Verify, run
from argus.runtime.sandbox.isolation import Name
from argus.runtime.sandbox.request import TRACING

KERNEL = """
from argus.language import *


@kernel(target=gfx942, threads=64)
def doubled(X: Tensor["M", f32], Y: Tensor["M", f32]):
    (M,) = X.shape
    tag(X, lambda m: dict(m=m))
    assume(M % 4 == 0)
    (b,) = block_id((ceil_div(M, 256),))
    x = registers(f32, spread((256,), threads=64, vector=4))
    copy(X.tile((256,), (b,)), x, via=global_load, edge=0)
    vmem.wait(0)
    copy(x * 2.0, Y.tile((256,), (b,)), edge=0)
    assert_written_once(Y, lambda m: dict(m=m))
"""

WRONG = KERNEL.replace("X.tile((256,), (b,))", "X.tile((256,), (b + 1,))")
"""Its output holds another row than it claims: refuted, if it is verified honestly."""

SHORT = evolve(TRACING, wall_seconds=4.0, cpu_seconds=4)


def ran(
    before: str, *, kernel: str = KERNEL, tracing: Limits = TRACING, tasks: tuple[Task, ...] = (Verify(),), on: Name
) -> Answer | Refused:
    """The sandbox's answer to a text that begins with some lines of Python."""
    return run(Request(f"{before}\n{kernel}", tasks, tracing=tracing), on)


def marked(token: str) -> str:
    """A line by which the text's process, and all that it forks, bear a name that is looked for afterwards."""
    return f"open('/proc/self/comm', 'w').write({token!r})"


def alive(token: str) -> list[str]:
    """Processes of this machine with a name, after killed ones have had time to end."""
    deadline = monotonic() + 5.0
    while (found := bearing(token)) and monotonic() < deadline:
        sleep(0.05)
    return found


def bearing(token: str) -> list[str]:
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if path.read_text(encoding="utf-8").strip() == token:
                found.append(path.parent.name)
    return found


def refused(answer: Answer | Refused, *codes: str) -> str:
    """The text of a refusal of one of these codes."""
    assert isinstance(answer, Refused), answer
    assert answer.diagnostic.code in codes, answer.text
    assert answer.diagnostic.help
    return answer.text


def verdict(answer: Answer | Refused) -> str:
    assert isinstance(answer, Answer), answer
    (kernel,) = answer.kernels
    (result,) = kernel.results
    assert isinstance(result, Verified), result
    return result.verdict


def token() -> str:
    return f"t{secrets.token_hex(5)}"
