"""Serves Argus as tools for coding agents, over the Model Context Protocol."""

from __future__ import annotations

from argus.cli.mcp_server.serving import server
from argus.cli.mcp_server.tools import Tools

__all__ = ["Tools", "server"]
