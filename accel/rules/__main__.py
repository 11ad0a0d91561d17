"""All rules, and docs/rules.md, which `python -m accel.rules` prints.

Separate from the package itself, so that a caller that needs one topic does not load them all.
"""

import sys
from importlib import import_module

from accel.diagnostics.findings import Rule

_TOPICS = {
    "accel.rules.aws": (
        "names", "environments", "types", "images", "roles", "queues", "shares", "definitions", "fit", "retries",
        "jobs", "limits", "monitoring", "network", "existing", "places", "templates", "clusters", "reservations",
        "secrets", "keys", "storage", "nodes", "targets",
    ),
    "accel.rules": ("budgets",),
    "accel.rules.gcp": (
        "gpus", "machines", "zones", "tpu", "tpu_runtimes", "vms", "capacity", "commitments", "vm_targets",
        "gpu_vm_jobs", "images", "tpu_vms", "tpu_jobs", "job_services", "accounts", "budgets", "labels",
        "network", "existing",
    ),
    "accel.rules.gke": (
        "pools", "labels", "nodes", "capacity", "drivers", "sharing", "tpus", "access", "clusters", "maintenance",
        "drivers_daemonset", "names", "storage", "kueue", "jobs",
    ),
    "accel.rules.batch": ("jobs", "machines", "runnables"),
    "accel.rules.vertex": (
        "legacy", "machines", "tpus", "pools", "scheduling", "jobs", "images", "ai_platform", "ai_platform_programs",
    ),
    "accel.rules.jobs": ("containers", "entry_points", "launchers", "placeholders", "image_cuda", "imports"),
}  # fmt: skip

RULES: dict[str, Rule] = {
    rule.id: rule
    for package, topics in _TOPICS.items()
    for topic in topics
    for rule in import_module(f"{package}.{topic}").RULES
}
"""All rules by id, as listed in docs/rules.md."""

_HEAD = """\
# Rules

What is checked before any call to a cloud. `reject` stops; `translate` uses the newer value and warns; `warn`
goes on and says what is likely to go wrong. Strict checks make all three an error.

This page is written by `python -m accel.rules > docs/rules.md`.

| rule | what happens | what it says | source |
| --- | --- | --- | --- |
"""


def page() -> str:
    """Return the page as Markdown."""
    rows = [f"| `{rule.id}` | {rule.severity} | {rule.summary} | <{rule.source}> |" for rule in RULES.values()]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
