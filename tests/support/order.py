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
    "e2e/test_docs.py": 125,
    "gke": 115,
    "aws": 110,
    "services": 90,
    "engine/test_permissions_google.py": 80,
    "both": 65,
    "engine/test_permissions.py": 55,
    "control-plane": 55,
    "e2e/test_vms.py": 55,
    "sandbox/test_nodes.py": 45,
    "engine/test_replacement.py": 45,
    "test_make_again.py": 40,
    "sandbox/test_explain_waiting.py": 30,
    "stacks/test_refresh_merge.py": 30,
    "sandbox/test_google_tpu_queue.py": 30,
    "jobs/test_newer_targets.py": 30,
    "examples/test_train.py": 25,
    "stacks/test_online_aws.py": 25,
    "e2e/test_queued_tpus.py": 25,
    "laws": 25,
    "sandbox/test_google_instances.py": 25,
    "e2e/test_google_permissions.py": 25,
    "engine/test_report.py": 25,
    "engine/test_recover.py": 25,
    "jobs/agent/test_agent.py": 25,
    "engine/test_drift.py": 25,
    "engine/test_budget.py": 25,
    "stacks/test_permissions_google.py": 25,
    "jobs/test_passwords_unprinted.py": 25,
    "jobs/backends/test_aws_batch_faults.py": 20,
    "stacks/test_environment.py": 20,
    "docs/test_pairs.py": 20,
    "test_makefile.py": 20,
    "stacks/test_permissions.py": 20,
    "jobs/test_records_of_before.py": 20,
    "jobs/test_api_page.py": 20,
    "sandbox/test_batch_faults.py": 20,
    "sandbox/test_control_plane.py": 20,
    "engine/test_life.py": 20,
    "sandbox/test_google_vertex_runs.py": 20,
    "jobs/test_cli.py": 20,
    "sandbox/test_plugin_gcp.py": 20,
    "test_house.py": 20,
    "e2e/test_planted_secrets.py": 20,
    "sandbox/test_google_container.py": 20,
    "jobs/backends/test_vertex_submit.py": 15,
    "test_packaging.py": 15,
    "jobs/test_credentials.py": 15,
    "jobs/backends/test_vms_ssh.py": 15,
    "jobs/imports/test_mutations.py": 15,
    "engine/test_adopt.py": 15,
    "laws/test_faults.py": 15,
    "engine/test_recover_kills.py": 15,
    "jobs/imports/test_samples.py": 15,
    "e2e/test_report_google.py": 15,
    "laws/test_judged_once.py": 15,
    "jobs/code/test_requirements.py": 15,
    "jobs/backends/test_local.py": 15,
    "jobs/test_cli_process.py": 15,
    "docs/test_schemas.py": 15,
    "engine/test_allowances.py": 15,
    "accel/test_redaction.py": 15,
    "engine/test_google_jobs.py": 15,
    "engine/test_drift_google.py": 15,
    "engine/test_upgrade.py": 15,
    "sandbox/test_processes.py": 15,
    "jobs/backends/test_vms_explain.py": 15,
    "jobs/test_api_runs.py": 15,
    "sandbox/test_google_tpu.py": 10,
    "sandbox/test_batch_health.py": 10,
    "jobs/backends/test_vms_faults.py": 10,
    "stacks/test_reference.py": 10,
    "jobs/test_completion.py": 10,
    "engine/test_google_vms.py": 10,
    "sandbox/test_looking_after.py": 10,
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
        *(
            f"sandbox/test_{name}.py"
            for name in ("manifests", "plugin_kubernetes", "pod_security", "provisioning_watch")
        ),
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
