"""The MCP tools end to end: the client of the package `mcp`, with a real server as its child process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from argus.cli.mcp_server import Tools, server
from argus.core.diagnostic import ArgusError
from argus.report.json_document import SCHEMA
from argus.runtime.sandbox.isolation import NAMES, probe_isolation
from tests.documents import complaints
from tests.runtime.sandbox.hostile import KERNEL, WRONG

ROOT = Path(__file__).parents[3]
isolated = pytest.mark.skipif(
    all(probe_isolation(name) is not None for name in NAMES),
    reason="nothing isolates a process here: texts are refused",
)


def talk(say: Callable[[Client], Awaitable[None]], *options: str) -> None:
    """Start `argus mcp` and speak with it."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "argus", "mcp", *options],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )

    async def conversation() -> None:
        with anyio.fail_after(240):
            async with Client(stdio_client(parameters)) as client:
                await say(client)

    anyio.run(conversation)


async def answer(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, dict(arguments))
    assert not result.is_error, result
    content: object = result.structured_content
    assert isinstance(content, dict)
    return cast("dict[str, Any]", content)


def without_text(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "shown"}


@pytest.mark.share(8, among="services")
def test_an_agent_sees_the_tools_and_what_they_take() -> None:
    async def say(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {"verify", "interpret", "build", "suggest_invariants", "search_knowledge", "optimise"}
        assert tools["verify"].input_schema["required"] == ["text"]
        assert all(tool.description for tool in tools.values())
        page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
        assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == tools.keys()

    talk(say)


@pytest.mark.nightly
@isolated
def test_a_wrong_kernel_is_refuted_and_repaired() -> None:
    async def say(client: Client) -> None:
        refuted = await answer(client, "verify", text=WRONG)
        assert refuted["schema"] == SCHEMA
        assert complaints(without_text(refuted)) == []
        (kernel,) = refuted["kernels"]
        assert (refuted["exit_code"], kernel["verdict"]) == (1, "refuted")
        assert kernel["counterexample"]["code"] == "I4"
        assert kernel["counterexample"]["at"]["file"] == "kernel.py"
        assert "X.tile((256,), (b + 1,))" in refuted["shown"]
        proved = await answer(client, "verify", text=KERNEL, solver="cvc5")
        assert (proved["exit_code"], proved["kernels"][0]["verdict"]) == (0, "proved")
        wrong = await answer(client, "interpret", text=WRONG, sizes={"M": 64}, reference=KERNEL)
        assert wrong["exit_code"] == 1
        assert wrong["kernels"][0]["compared"]["outside"] > 0
        right = await answer(client, "interpret", text=KERNEL, sizes={"M": 64}, reference=KERNEL)
        assert right["exit_code"] == 0
        assert right["kernels"][0]["compared"]["with_what"] == "the reference `doubled`"
        assert right["kernels"][0]["outputs"]["Y"]["shape"] == [64]

    talk(say)


@pytest.mark.share(8, among="services")
@isolated
def test_claims_are_suggested_and_code_is_built() -> None:
    bare = "\n".join(line for line in KERNEL.splitlines() if "tag(" not in line and "assert_" not in line)

    async def say(client: Client) -> None:
        suggested = await answer(client, "suggest_invariants", text=bare)
        assert suggested["exit_code"] == 0
        assert any("assert_written_once(Y" in each["code"] for each in suggested["kernels"][0]["found"])
        built = await answer(client, "build", text=KERNEL, with_code=True)
        if built["exit_code"] == 3:
            assert built["diagnostics"][0]["code"] == "E303"  # no compiler here
            return
        (kernel,) = built["kernels"]
        assert "extern" in kernel["sources"]["doubled.hip"]
        assert kernel["files"]["doubled.hsaco"] > 0
        assert kernel["code"]["doubled.hsaco"]

    talk(say)


@pytest.mark.nightly
@isolated
def test_a_hostile_text_gets_an_answer_and_the_server_goes_on() -> None:
    async def say(client: Client) -> None:
        ended = await answer(client, "verify", text="import posix\nposix._exit(0)")
        assert (ended["exit_code"], ended["diagnostics"][0]["code"]) == (3, "E944")
        assert complaints(without_text(ended)) == []
        broken = await answer(client, "verify", text="def (")
        assert broken["diagnostics"][0]["code"] == "E002"
        out_of_bounds = await answer(client, "verify", text=KERNEL, seconds=-1)
        assert out_of_bounds["diagnostics"][0]["code"] == "E701"
        assert (await answer(client, "verify", text=KERNEL))["exit_code"] == 0

    talk(say, "--seconds", "120")


def test_without_the_package_the_diagnostic_names_the_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(ArgusError) as caught:
        server(Tools())
    assert caught.value.diagnostic.code == "E814"
    assert "argus[mcp]" in caught.value.diagnostic.help
