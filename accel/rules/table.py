"""Every rule. Apart from the package itself, so that who needs one topic does not load them all."""

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
        "legacy", "machines", "pools", "scheduling", "jobs", "images", "ai_platform", "ai_platform_programs",
    ),
    "accel.rules.jobs": ("containers", "entry_points", "launchers", "placeholders", "image_cuda", "imports"),
}  # fmt: skip

RULES: dict[str, Rule] = {
    rule.id: rule
    for package, topics in _TOPICS.items()
    for topic in topics
    for rule in import_module(f"{package}.{topic}").RULES
}
"""Every rule by its id. docs/rules.md is this table: `python -m accel.rules > docs/rules.md`."""
