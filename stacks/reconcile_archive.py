"""The files of the scheduled function: the reconciler of `jobs`, and what it imports, as they are in this project."""

from pathlib import Path

import accel
import jobs
from components.gcp.cloud_function import packages
from components.gcp.reconcile_function import ENTRY
from jobs.backends.vms.function import BUCKET

__all__ = ["BUCKET", "archive"]

_MODULES = (
    *("accel/contract/buckets", "accel/contract/variables", "accel/redaction", "accel/rules/exits"),
    *("jobs/bucket_targets", "jobs/errors", "jobs/google", "jobs/google_api"),
    *("jobs/keys", "jobs/kubernetes_answers", "jobs/timing"),
    *("jobs/agent/__init__", "jobs/backends/gce/bodies", "jobs/backends/gce/instances", "jobs/backends/gce/states"),
    *("jobs/backends/tpu_vm/queued", "jobs/backends/tpu_vm/states"),
    *(f"jobs/backends/vms/{each}" for each in ("advance", "compare", "control", "function", "marks")),
    *(f"jobs/backends/vms/{each}" for each in ("queues", "reconcile", "record", "records", "sent", "told")),
)
"""What jobs/backends/vms/function.py imports, and nothing that needs more than `requests`."""
_PACKAGES = (
    *("accel", "accel/contract", "accel/rules", "jobs", "jobs/backends"),
    *("jobs/backends/gce", "jobs/backends/tpu_vm", "jobs/backends/vms"),
)
"""Their own files import the clients of jobs too, which the function has no use for."""

_MAIN = f'''\
"""Where Cloud Run functions begin: jobs.backends.vms has what happens."""

import functions_framework

from jobs.backends.vms.function import handler

{ENTRY} = functions_framework.http(handler)
'''


def archive() -> dict[str, str]:
    """The files by their paths in the archive."""
    roots = {"accel": Path(accel.__file__).parent, "jobs": Path(jobs.__file__).parent}

    def file(path: str) -> str:
        first, _, rest = path.partition("/")
        return (roots[first] / rest).read_text(encoding="utf-8")

    agent = sorted((roots["jobs"] / "agent" / "program").glob("*.py"))
    return {
        "main.py": _MAIN,
        "requirements.txt": packages("reconcile-function"),
        # Pulumi's SDK cannot read an empty asset back.
        **{f"{package}/__init__.py": "# A package.\n" for package in _PACKAGES},
        **{f"{module}.py": file(f"{module}.py") for module in _MODULES},
        **{f"jobs/agent/program/{each.name}": each.read_text(encoding="utf-8") for each in agent},
        "jobs/agent/startup.sh": file("jobs/agent/startup.sh"),
    }
