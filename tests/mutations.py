"""Seeded faults: each is put into a copy of the product, and tests of `make test` have to fail.

    python -m tests.mutations [NUMBER...]

A wrong default, a lost condition, a swapped field, a missing permission, spread over all rooms. Prints the test that
caught each; exit code 1 where one was not caught.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.support.clone import copy_checkout

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mutation:
    """A text that a file has once, and what stands there instead. `tests`: folders or files that may catch it."""

    path: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "accel/rules/batch/machines.py",
        "if install is False and gpu_count and not own_image:",
        "if install is False and gpu_count:",
        ("tests/accel/rules",),
    ),
    Mutation("accel/rules/jobs/containers.py", 'tag in ("", "latest")', 'tag in ("latest",)', ("tests/accel/rules",)),
    Mutation("accel/rules/aws/definitions.py", "MIN_MEMORY_MIB = 4", "MIN_MEMORY_MIB = 0", ("tests/accel/rules",)),
    Mutation(
        "accel/clouds/aws/errors.py",
        "if code in THROTTLES or status == 429:",
        "if code in THROTTLES:",
        (
            "tests/jobs/backends/test_aws_batch_observe.py",
            "tests/jobs/backends/test_aws_batch_explain.py",
            "tests/jobs/backends/test_aws_batch_list.py",
        ),
    ),
    Mutation(
        "accel/clouds/kubernetes/client.py",
        'if parts.scheme == "http" and not _loopback(parts.hostname):',
        'if parts.scheme == "ftp":',
        ("tests/jobs/test_credentials.py", "tests/jobs/test_kubernetes.py"),
    ),
    Mutation(
        "accel/clouds/aws/roles.py",
        "if complete and any(",
        "if any(",
        ("tests/stacks/test_online_aws.py", "tests/jobs/backends/test_aws_batch_explain.py"),
    ),
    Mutation(
        "components/aws/submit_policy.py",
        '"batch:Privileged": "false", ',
        "",
        ("tests/components/aws",),
    ),
    Mutation(
        "components/aws/submit_policy.py",
        '    "Null": {"dynamodb:LeadingKeys": "false"},\n',
        "",
        ("tests/components/aws",),
    ),
    Mutation(
        "components/aws/draining.py",
        'ENDS = ("batch:TerminateJob",)',
        "ENDS = ()",
        ("tests/stacks/test_permissions.py",),
    ),
    Mutation(
        "components/gcp/budget_stop.py",
        '"tpu.nodes.delete", "aiplatform.customJobs.cancel"',
        '"aiplatform.customJobs.cancel"',
        ("tests/components/gcp",),
    ),
    Mutation(
        "stacks/operations/unwedge/removal.py",
        'if not stuck and diagnosis.environment["state"] != "DISABLED":',
        "if not stuck:",
        ("tests/stacks/test_unwedge_steps.py",),
    ),
    Mutation(
        "stacks/operations/report/preview.py",
        'if name == "version" and not change.type.startswith(VERSIONED):',
        'if name == "version":',
        ("tests/stacks/report",),
    ),
    Mutation(
        "policy/rules/machines.py",
        ' and not resource.view.true("enableAutopilot")',
        "",
        ("tests/policy",),
    ),
    Mutation(
        "jobs/client/deadline/plan.py",
        'if then_to is None and target.kind == "aws-batch":',
        "if then_to is None:",
        ("tests/jobs/test_deadline.py", "tests/jobs/test_deadline_gke.py"),
    ),
    Mutation(
        "jobs/client/allowances/reserve.py",
        "if hold is not None and (hold.ref is not None or not hold.open):",
        "if hold is not None and hold.ref is not None:",
        ("tests/jobs/spend",),
    ),
    Mutation(
        "jobs/backends/aws_batch/request.py",
        'submit["shareIdentifier"] = job.aws_batch.share_identifier',
        'submit["shareIdentifier"] = job.name',
        ("tests/jobs/backends/test_aws_batch_render.py", "tests/jobs/backends/test_aws_batch_submit.py"),
    ),
    Mutation(
        "jobs/backends/gke/status.py",
        "if job.suspended and not live:",
        "if job.suspended:",
        ("tests/jobs/backends/test_gke_observe.py", "tests/jobs/backends/test_gke_api.py"),
    ),
    Mutation(
        "jobs/runtime/checkpoints.py",
        "if name not in kept)",
        "if name in kept)",
        ("tests/jobs/runtime",),
    ),
    Mutation(
        "jobs/model/deadline.py",
        "CHANGEOVER_S = 15 * 60",
        "CHANGEOVER_S = 15",
        ("tests/jobs/test_deadline.py", "tests/docs/test_schemas.py"),
    ),
    Mutation(
        "jobs/client/code/inside/start.py",
        """ or ".." in each.name.split("/")""",
        "",
        ("tests/jobs/code",),
    ),
    Mutation(
        "jobs/client/waiting.py",
        "if moved or (self._counts and before and before.tasks != status.tasks):",
        "if moved:",
        ("tests/jobs/test_waiting.py",),
    ),
    Mutation(
        "jobs/client/machine_check/judge.py",
        "elif wanted and there > wanted:",
        "elif False:",
        ("tests/jobs/test_exec_check.py",),
    ),
    Mutation(
        "jobs/importers/sample_values.py",
        """ and "<" not in text""",
        "",
        ("tests/jobs/imports/test_placeholders.py", "tests/jobs/imports/test_originals.py"),
    ),
)


def caught_by(mutation: Mutation, folder: Path) -> str:
    """Return the first test that fails on a mutated copy; empty if all pass."""
    path = folder / mutation.path
    text = path.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.path}: {mutation.old!r} occurs {text.count(mutation.old)} times")
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        for tests in mutation.tests:
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", tests]
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True
            )
            if found := re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE):
                return found[1]
            if done.returncode:
                raise SystemExit(f"{mutation.path}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}")
    finally:
        path.write_text(text)
    return ""


def main(numbers: Iterable[int]) -> int:
    """Print a line for each mutation."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(Path(folder))
        (Path(folder) / ".venv").symlink_to(ROOT / ".venv")
        for number in numbers:
            mutation, started = MUTATIONS[number], time.monotonic()
            caught = caught_by(mutation, Path(folder))
            missed += not caught
            said = caught or "NOT CAUGHT"
            print(f"{number:2} {mutation.path}: {said} ({time.monotonic() - started:.0f} s)", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main([int(each) for each in sys.argv[1:]] or range(len(MUTATIONS))))
