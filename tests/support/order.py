"""The order of a parallel run: whole modules go to the workers, so that what takes long to set up is set up once, and
long ones first, so that none is left alone at the end."""

import re
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from .soak import SOAK

TESTS = Path(__file__).parents[1]
SECONDS = {
    "aws": 300,
    "gke": 400,
    "jobs/backends/test_aws_batch_faults.py": 150,
    "engine/test_life.py": 90,
    "e2e/test_reclaims.py": 130,
    "e2e/test_google_jobs.py": 80,
    "e2e/test_vms.py": 70,
    "jobs/backends/test_vertex_submit.py": 65,
    "sandbox/test_plugin_life.py": 65,
    "engine/test_google_vms.py": 60,
    "engine/test_replacement.py": 60,
    "engine/test_budget.py": 60,
    "sandbox/test_plugin_kubernetes.py": 60,
    "examples/test_train.py": 55,
    "sandbox/test_nodes.py": 55,
    "engine/test_shapes.py": 50,
    "engine/test_drift.py": 50,
    "e2e/test_report_google.py": 50,
    "sandbox/test_batch_faults.py": 40,
    "sandbox/test_control_plane.py": 40,
    "sandbox/test_plugin_gcp.py": 40,
    "engine/test_monitoring.py": 40,
    "engine/test_recover.py": 40,
    "jobs/backends/test_vms_faults.py": 35,
    "laws/test_components.py": 35,
    "sandbox/test_looking_after.py": 30,
    "sandbox/test_plugin_gcp_tpu.py": 30,
    "engine/test_adopt.py": 30,
    "engine/test_google_jobs.py": 30,
    "engine/test_report.py": 30,
    "engine/test_drift_google.py": 30,
    "engine/test_upgrade.py": 30,
    "engine/test_takeover.py": 60,
    "jobs/test_records_of_before.py": 20,
    "sandbox/test_explain_waiting.py": 30,
    "jobs/agent/test_agent.py": 30,
    "jobs/backends/test_vms_ssh.py": 25,
    "sandbox/test_batch_health.py": 25,
    "sandbox/test_plugin_gcp_vms.py": 25,
    "sandbox/test_plugin_providers.py": 25,
    "stacks/test_environment.py": 25,
    "engine/test_google_capacity.py": 20,
    "jobs/backends/test_gke_submit.py": 20,
    "jobs/backends/test_vertex_observe.py": 20,
    "jobs/backends/test_vms_explain.py": 20,
    "jobs/agent/test_agent_hosts.py": 20,
    "sandbox/test_google_vertex_runs.py": 20,
    "sandbox/test_manifests.py": 20,
    "test_makefile.py": 20,
    "engine/test_allowances.py": 15,
    "engine/test_recover_google.py": 15,
    "engine/test_policy.py": 15,
    "e2e/test_vms_smoke.py": 15,
    "jobs/test_html.py": 15,
    "jobs/test_html_browser.py": 15,
    "jobs/backends/test_gke_api.py": 15,
    "jobs/backends/test_tpu_vm_walk.py": 15,
    "jobs/backends/test_vms_killed.py": 15,
    "sandbox/test_plugin_gcp_jobs.py": 15,
    "sandbox/test_processes.py": 15,
    "sandbox/test_provisioning_watch.py": 15,
}
"""About how long a unit takes, of those that take long. A wrong figure costs idle seconds at the end."""
TOGETHER = {
    "aws": (f"e2e/test_{name}.py" for name in ("access", "guide", "html_report", "jobs", "queues", "quota", "wheel")),
    "gke": (
        *(f"e2e/test_{name}.py" for name in ("gke", "google_budget", "report_gke")),
        *(f"engine/test_{name}.py" for name in ("consumer", "drift_gke", "gke_driver", "gke_layers", "gke_watchdog")),
        "engine/test_half_made.py",
    ),
}
"""Modules that share a deployed stack, or a sandbox with a control plane."""
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
    items.sort(key=lambda item: -SECONDS.get(unit(str(item.path.relative_to(TESTS))), 0))


class ByUnit(LoadScopeScheduling):
    """Gives a worker that has almost done with its units the next one of the list."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid, SOAK)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByUnit:
    config.option.loadscopereorder = False
    return ByUnit(config, log)  # pyright: ignore[reportArgumentType]
