"""Untrusted Python in a process of its own: no network, no files but its own, bounded in all it uses, ended whole."""

from __future__ import annotations

from atropos_tui.sandbox.limits import SandboxLimits
from atropos_tui.sandbox.runner import Sandbox, SandboxError, SandboxResult

__all__ = ["Sandbox", "SandboxError", "SandboxLimits", "SandboxResult"]
