"""The inference servers of a SLURM job, by upstream's rule: nodes after the training nodes, ports from 9000 on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from atropos_tui.errors import UsageError

GPUS_PER_NODE = 8
FIRST_PORT = 9000
LOCAL_URLS = tuple(f"http://localhost:{port}/v1" for port in range(9004, 9008))


def slurm_urls(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The servers' addresses; none when there is no SLURM job or it has a single node.

    Reads `SLURM_JOB_NODELIST`, `NUM_TRAINING_NODES` (how many nodes at the beginning run no servers) and `INFER_TP`
    (GPUs a server, 1 when unset). Raises UsageError when they are missing or no numbers.
    """
    node_list = environ.get("SLURM_JOB_NODELIST", "")
    nodes = _host_names(node_list) if node_list else []
    if len(nodes) < 2:
        return []
    training_nodes = _number(environ, "NUM_TRAINING_NODES", None)
    servers_per_node = GPUS_PER_NODE // max(1, _number(environ, "INFER_TP", 1))
    urls = [f"http://{node}:{FIRST_PORT + i}/v1" for node in nodes[training_nodes:] for i in range(servers_per_node)]
    if not urls:
        raise UsageError(
            f"no node is left for inference servers: {len(nodes)} nodes, NUM_TRAINING_NODES={training_nodes}, "
            f"{servers_per_node} servers a node",
            "lower NUM_TRAINING_NODES or INFER_TP",
        )
    return urls


def _host_names(node_list: str) -> list[str]:
    try:
        listed = subprocess.run(
            ["scontrol", "show", "hostnames", node_list], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(
            f"scontrol cannot name the nodes of {node_list!r}: {error}", "run inside the SLURM job"
        ) from error
    return listed.stdout.split()


def _number(environ: Mapping[str, str], name: str, default: int | None) -> int:
    text = environ.get(name, "")
    if not text and default is not None:
        return default
    if not text.isdigit():
        raise UsageError(f"{name} is {text!r}, which is no number", f"export {name}=<number> in the SLURM script")
    return int(text)
