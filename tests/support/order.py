"""The order of a parallel run: whole modules go to the workers, so that what takes long to set up is set up once, and
long ones first, so that none is left alone at the end."""

import re
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from .soak import SOAK

TESTS = Path(__file__).parents[1]
SECONDS = {
    "e2e/test_docs.py": 205,
    "gke": 155,
    "aws": 135,
    "test_make_again.py": 115,
    "engine/test_permissions.py": 90,
    "jobs/backends/test_aws_batch_faults.py": 100,
    "engine/test_permissions_google.py": 60,
    "jobs/backends/test_vertex_submit.py": 70,
    "engine/test_takeover.py": 70,
    "both": 110,
    "services": 120,
    "engine/test_recover_kills.py": 60,
    "examples/test_train.py": 55,
    "engine/test_replacement.py": 55,
    "e2e/test_vms.py": 50,
    "sandbox/test_nodes.py": 50,
    "control-plane": 60,
    "laws": 40,
    "e2e/test_queued_tpus.py": 40,
    "sandbox/test_google_tpu_queue.py": 40,
    "sandbox/test_control_plane.py": 30,
    "engine/test_life.py": 30,
    "jobs/backends/test_vms_faults.py": 30,
    "sandbox/test_explain_waiting.py": 30,
    "engine/test_recover.py": 25,
    "engine/test_report.py": 25,
    "sandbox/test_plugin_gcp.py": 25,
    "test_makefile.py": 25,
    "docs/test_pairs.py": 25,
    "engine/test_drift.py": 25,
    "engine/test_budget.py": 25,
    "jobs/backends/test_local_crashes.py": 25,
    "sandbox/test_batch_faults.py": 25,
    "engine/test_upgrade.py": 20,
    "sandbox/test_looking_after.py": 20,
    "jobs/test_cli.py": 20,
    "e2e/test_google_permissions.py": 20,
    "jobs/test_api_runs.py": 20,
    "jobs/backends/test_local.py": 20,
    "stacks/test_environment.py": 20,
    "jobs/test_records_of_before.py": 20,
    "jobs/test_api_page.py": 20,
    "test_soak.py": 20,
    "e2e/test_report_google.py": 20,
    "test_house.py": 20,
    "sandbox/test_plugin_providers.py": 20,
    "jobs/agent/test_agent.py": 20,
    "jobs/backends/test_vms_ssh.py": 20,
    "jobs/backends/test_local_damaged.py": 15,
    "test_workflows.py": 15,
    "sandbox/test_google_instances.py": 15,
    "jobs/test_cli_process.py": 15,
    "jobs/backends/test_vms_explain.py": 15,
    "stacks/test_online_aws.py": 15,
    "laws/test_faults.py": 15,
    "sandbox/test_plugin_life.py": 15,
    "stacks/test_permissions_google.py": 15,
    "engine/test_faults.py": 15,
    "sandbox/test_google_tpu.py": 15,
    "engine/test_google_services.py": 15,
    "sandbox/test_provisioning_watch.py": 15,
    "jobs/runtime/test_checkpoints_killed.py": 15,
    "jobs/agent/test_agent_hosts.py": 15,
    "engine/test_drift_google.py": 15,
    "sandbox/test_plugin_gcp_tpu.py": 15,
    "sandbox/test_google_container.py": 15,
    "sandbox/test_processes.py": 15,
    "sandbox/test_google_vertex_runs.py": 15,
    "jobs/backends/test_vms_killed.py": 15,
    "stacks/test_permissions.py": 15,
    "engine/test_adopt.py": 15,
}
"""About how long a unit takes, of those that take long. A wrong figure costs idle seconds at the end."""
TOGETHER = {
    "aws": (
        f"e2e/test_{name}.py"
        for name in ("access", "guide", "html_report", "imports", "jobs", "queues", "quota", "wheel")
    ),
    "both": (f"e2e/test_{name}.py" for name in ("deadline", "reclaims", "stops")),
    "control-plane": (
        "jobs/backends/test_gke_api.py",
        *(f"sandbox/test_{name}.py" for name in ("manifests", "plugin_kubernetes", "pod_security")),
    ),
    "services": (f"e2e/test_{name}.py" for name in ("api", "code", "google_jobs")),
    "laws": (
        f"laws/test_{name}.py"
        for name in ("aws_functions", "aws_permissions", "boundaries", "buckets", "components", "partitions")
    ),
    "gke": (
        *(f"e2e/test_{name}.py" for name in ("gke", "google_budget", "report_gke")),
        *(f"engine/test_{name}.py" for name in ("consumer", "drift_gke", "gke_driver", "gke_layers", "gke_watchdog")),
        "engine/test_half_made.py",
    ),
}
"""Modules that share a deployed stack, a control plane, or what the components register."""
SPLIT = {"engine/test_recover_kills.py": re.compile(r"\[\w+-\w+(?=-\d+\])")}
"""Modules that `make soak` gives to several workers, by the part of a test's name that tells them apart: their counts
are too long for one."""
_UNITS = {module: unit for unit, modules in TOGETHER.items() for module in modules}


def unit(module: str) -> str:
    """What goes to one worker with this module, a path below tests/."""
    return _UNITS.get(module, module)


def scope(nodeid: str, soak: bool) -> str:
    """What goes to one worker with this test."""
    module = nodeid.partition("::")[0].removeprefix(f"{TESTS.name}/")
    part = SPLIT[module].search(nodeid) if soak and module in SPLIT else None
    return f"{unit(module)}{part[0]}" if part else unit(module)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long units first; within a unit, and among the others, the order stays."""
    items.sort(key=lambda item: -_seconds(item.path))


@cache
def _seconds(module: Path) -> int:
    return SECONDS.get(unit(str(module.relative_to(TESTS))), 0)


class ByUnit(LoadScopeScheduling):
    """Gives a worker that has almost done with its units the next one of the list."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid, SOAK)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByUnit:
    config.option.loadscopereorder = False
    return ByUnit(config, log)  # pyright: ignore[reportArgumentType]
