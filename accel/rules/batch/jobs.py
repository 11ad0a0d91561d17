"""A job on Google Batch: its tasks, run time and retries."""

from collections.abc import Collection, Mapping, Sequence

from accel.diagnostics.findings import Finding
from accel.rules.jobs import exit_codes as exits
from accel.rules.jobs.variables import of_platform
from accel.rules.table import rule

TASKS = rule("google-batch.tasks")
PARALLELISM = rule("google-batch.parallelism")
VMS = rule("google-batch.vms")
IN_ORDER = rule("google-batch.in-order")
HOSTS = rule("google-batch.hosts")
ALONE = rule("google-batch.node-alone")
RUN_TIME = rule("google-batch.run-time")
RETRIES = rule("google-batch.retries")
ADDED = rule("google-batch.retries-added")
POLICY = rule("google-batch.exit-codes")
TIMEOUT = rule("google-batch.retry-after-timeout")
ENV = rule("google-batch.env")
SIZE = rule("google-batch.size")
GROUPS = rule("google-batch.one-group")
PRIORITY = rule("google-batch.priority")
PREEMPTIBLE = rule("google-batch.preemptible")

MOST_TASKS, MOST_PARALLEL, MOST_HOSTS, MOST_RETRIES, MOST_BYTES = 100_000, 5_000, 1_000, 10, 1_000_000
MOST_VMS = {"one": 2_000, "several": 4_000}
LONGEST_S, FLEX_LONGEST_S = 14 * 86_400, 7 * 86_400
LOST_VM = (50001, 50002, 50003, 50004, 50006)
"""Exit codes of a task whose VM was preempted, became unresponsive, rebooted, could not be stopped, or was
recreated."""
LOST = (*exits.LOST, *LOST_VM)
"""LOST_VM, and the codes with which commands report a lost machine themselves."""
OUT_OF_TIME = 50005
_OURS = ("PET_NNODES", "PET_NODE_RANK", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")


def tasks(count: int, parallelism: int | None, *, in_order: bool = False, nodes: int = 1) -> list[Finding]:
    """Check tasks. `parallelism` None: as many as Batch runs; `nodes` of one job all run at once."""
    found: list[Finding] = []
    if count > MOST_TASKS:
        fix = f"write at most {MOST_TASKS}, or submit several jobs"
        found.append(TASKS.finding("tasks", f"is {count}, and a job has at most {MOST_TASKS}", fix))
    if parallelism is not None and parallelism > MOST_PARALLEL:
        message = f"is {parallelism}, and Batch runs at most {MOST_PARALLEL} tasks of a job at once"
        found.append(PARALLELISM.finding("parallelism", message, f"write at most {MOST_PARALLEL}, or leave it out"))
    if in_order and parallelism not in (None, 1):
        message = f"is {parallelism}, and tasks that begin in order run one at a time"
        found.append(IN_ORDER.finding("parallelism", message, "write 1, or leave in_order out"))
    if in_order and nodes > 1:
        message = f"are {nodes}, and tasks that begin in order run one at a time"
        found.append(IN_ORDER.finding("nodes", message, "leave in_order out"))
    return found


def vms(at_once: int, per_vm: int, zones: int) -> list[Finding]:
    """Check the VMs that `at_once` tasks need. `zones` 0: those of a region."""
    most = MOST_VMS["one" if zones == 1 else "several"]
    needed = -(-at_once // per_vm)
    if needed <= most:
        return []
    message = (
        f"needs {needed} VMs at once, of which a job has {most} in {'one zone' if zones == 1 else 'several zones'}"
    )
    return [VMS.finding("parallelism", message, "expect fewer at once, or let more tasks share a VM (tasks_per_vm)")]


def hosts(count: int, field: str = "nodes") -> list[Finding]:
    if count <= MOST_HOSTS:
        return []
    message = f"is {count}, and Batch lists at most {MOST_HOSTS} hosts"
    return [HOSTS.finding(field, message, f"write at most {MOST_HOSTS}")]


def run_time(seconds: int | None, *, flex_start: bool = False, field: str = "timeout_s") -> list[Finding]:
    most = FLEX_LONGEST_S if flex_start else LONGEST_S
    if seconds is None or seconds <= most:
        return []
    what = "a flex-start job" if flex_start else "a job"
    message = f"is {seconds} s, and Batch ends {what} after {most // 86_400} days ({most} s)"
    return [RUN_TIME.finding(field, message, f"write at most {most}, and save checkpoints")]


def retries(failures: int | None, lost: int | None, nodes: int = 1) -> list[Finding]:
    """Check further attempts: after failures of the command itself, and after lost VMs."""
    total = (failures or 0) + (lost or 0)
    found: list[Finding] = []
    if total > MOST_RETRIES:
        field = "retries" if failures else "lost_retries"
        message = f"is {failures or lost}, and Batch tries a task again at most {MOST_RETRIES} times"
        if failures and lost:
            message = f"is {failures} beside lost_retries {lost}, and Batch has one count, of at most {MOST_RETRIES}"
        found.append(RETRIES.finding(field, message, f"write at most {MOST_RETRIES} in all"))
    elif failures and lost:
        message = f"is {lost} beside retries {failures}; Batch has one count, so that {total} serve both kinds"
        found.append(ADDED.finding("lost_retries", message, "expect that either kind uses them all"))
    if nodes > 1 and total:
        message = f"is {nodes}, and Batch tries a node that failed or was lost again alone"
        fix = "its command must be able to join the others again (torchrun with --max-restarts)"
        found.append(ALONE.finding("nodes", message, fix))
    return found


def exit_codes(
    retried: Collection[int], failed: Collection[int], attempts: int | None, field: str = "exit_codes"
) -> list[Finding]:
    """Check exit codes, of which Batch accepts one list. `attempts` None: unspecified."""
    found: list[Finding] = []
    if both := sorted(set(retried) & set(failed)):
        message = f"have {', '.join(map(str, both))} under retry and under fail"
        found.append(POLICY.finding(field, message, "keep one of the two"))
    if OUT_OF_TIME in retried:
        message = f"have {OUT_OF_TIME} under retry, with which a task ends that ran out of its time"
        found.append(TIMEOUT.finding(field, message, "write a longer timeout_s, and save checkpoints"))
    if (retried or failed) and not attempts:
        message = f"say which failures are tried again, and retries is {'missing' if attempts is None else attempts}"
        found.append(POLICY.finding(field, message, "write retries: 1 to 10 beside them"))
    return found


def environment(variables: Mapping[str, object], field: str = "env") -> list[Finding]:
    return of_platform(ENV, [name for name in variables if name.startswith("BATCH_") or name in _OURS], field)


def size(length: int) -> list[Finding]:
    if length <= MOST_BYTES:
        return []
    message = f"has {length} bytes, of which Batch takes {MOST_BYTES} (1 MB)"
    return [SIZE.finding("request", message, "put scripts and long values into the image, or into a mounted bucket")]


def one(count: int, field: str = "taskGroups") -> list[Finding]:
    """Check a list of which Batch accepts one entry: `taskGroups`, `allocationPolicy.instances`."""
    if count == 1:
        return []
    return [GROUPS.finding(field, f"has {count} entries, and Batch takes one", "split it into several jobs")]


def priority(value: int) -> list[Finding]:
    if 0 <= value <= 99:
        return []
    return [PRIORITY.finding("priority", f"is {value}, and Batch knows 0 to 99", "write 0 to 99")]


def provisioning(model: str) -> list[Finding]:
    if model != "PREEMPTIBLE":
        return []
    return [PREEMPTIBLE.finding("provisioningModel", "is PREEMPTIBLE, an older name", "write SPOT", "SPOT")]


def lifecycle(retried: Sequence[int], failed: Sequence[int]) -> dict[str, object]:
    """Return Batch's single policy. Codes that it does not name get the opposite action, so RETRY_TASK wins if both
    lists are given. Source: https://docs.cloud.google.com/batch/docs/automate-task-retries"""
    action, codes = ("RETRY_TASK", retried) if retried else ("FAIL_TASK", failed)
    return {"action": action, "actionCondition": {"exitCodes": sorted(set(codes))}}
