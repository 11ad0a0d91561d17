"""The order of a parallel run. pytest-xdist gives each worker a piece of the list, and to a worker that has done with
its own the end of another's: so each piece begins with long tests and ends with short ones."""

from collections.abc import Sequence
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SECONDS = {
    "engine": 13.0,
    "e2e": 4.0,
    "sandbox/test_plugin_life.py": 13.0,
    "sandbox/test_plugin_providers.py": 4.0,
    "jobs/backends/test_aws_batch_faults.py": 3.0,
    "test_makefile.py": 3.0,
    "examples": 1.0,
    "sandbox": 0.3,
    "gke": 8.0,
    "sandbox/test_plugin_gcp.py": 6.0,
    "sandbox/test_plugin_kubernetes.py": 6.0,
    "sandbox/test_control_plane.py": 4.0,
    "sandbox/test_nodes.py": 0.8,
    "sandbox/test_nodes_of_a_pool.py": 0.8,
    "sandbox/test_manifests.py": 1.0,
    "jobs/backends/test_gke_api.py": 1.5,
    "vms": 10.0,
    "e2e/test_vms_smoke.py": 20.0,
    "sandbox/test_plugin_gcp_tpu.py": 8.0,
    "sandbox/test_plugin_gcp_vms.py": 14.0,
    "sandbox/test_google_groups.py": 0.8,
    "sandbox/test_google_instance_changes.py": 0.9,
    "sandbox/test_guests.py": 0.8,
    "jobs/agent/test_agent.py": 0.9,
    "jobs/agent/test_agent_hosts.py": 0.9,
    "jobs/agent/test_agent_over.py": 0.9,
    "jobs/backends/test_gce_instances.py": 0.3,
    "jobs/backends/test_tpu_vm_queued.py": 0.4,
    "jobs/backends/test_tpu_vm_jobs.py": 4.0,
    "jobs/backends/test_gce_groups.py": 1.2,
    "jobs/backends/test_vms_explain.py": 0.4,
    "jobs/backends/test_vms_faults.py": 1.8,
    "jobs/backends/test_vms_killed.py": 1.7,
    "jobs/backends/test_vms_ssh.py": 1.0,
    "sandbox/test_explain_vms_command.py": 2.0,
    "engine/test_google_vms.py": 20.0,
}
"""About how long a test of a module, or else of a folder, takes with what it sets up; others take next to nothing.

A wrong figure costs a worker some idle seconds at the end, and nothing else.
"""
TOGETHER = {
    "e2e/test_gke.py": "gke",
    "engine/test_gke_driver.py": "gke",
    "engine/test_gke_layers.py": "gke",
    "engine/test_gke_watchdog.py": "gke",
    "engine/test_half_made.py": "gke",
    "e2e/test_vms.py": "vms",
    "e2e/test_vms_smoke.py": "e2e/test_vms_smoke.py",
    "e2e": "e2e",
}
"""Modules and folders that share what takes long to set up, once for each worker."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = dealt(items, workers)


def dealt(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """The items in as many pieces as there are workers, of xdist's sizes; the tests of a module stay in their order."""
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        path = item.path.relative_to(TESTS)
        units.setdefault(TOGETHER.get(str(path)) or TOGETHER.get(path.parts[0]) or str(path), []).append(item)
    costs = {
        unit: len(found) * SECONDS.get(unit, SECONDS.get(Path(unit).parts[0], 0.0)) for unit, found in units.items()
    }
    long = sorted((unit for unit in units if costs[unit]), key=lambda unit: -costs[unit])
    shares: list[list[str]] = [[] for _ in range(workers)]
    for unit in long:
        min(shares, key=lambda share: sum(costs[each] for each in share)).append(unit)
    short = [item for unit, found in units.items() if not costs[unit] for item in found]
    pieces: list[pytest.Item] = []
    for index, share in enumerate(shares):
        begin = [item for unit in share for item in units[unit]]
        left = len(items) - len(pieces)
        fill = max(0, left // (workers - index) - len(begin))
        pieces += begin + short[:fill]
        del short[:fill]
    return pieces + short
