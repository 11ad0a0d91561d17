"""An AWS Batch job queue over compute environments."""

from collections.abc import Mapping, Sequence

from accel.catalog import nearest
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.aws import types
from accel.rules.table import rule

ENVIRONMENT_COUNT = rule("aws.queue.environment-count")
DUPLICATE_ENVIRONMENT = rule("aws.queue.duplicate-environment")
ARCHITECTURES = rule("aws.queue.mixed-architecture")
PRIORITY = rule("aws.queue.priority")
TIME_LIMIT_SECONDS = rule("aws.queue.time-limit-seconds")
TIME_LIMIT_REASON = rule("aws.queue.time-limit-reason")
UNNAMED = rule("aws.queue.unnamed-environment")

MAX_ENVIRONMENTS = 3
TIME_LIMIT_RANGE = range(600, 86_401)
TIME_LIMIT_REASONS = (
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    "MISCONFIGURATION:EC2_INSTANCE_CONFIGURATION_UNSUPPORTED",
)
"""Reasons that Batch can cancel on; the last is on the newest edition of the page only. Batch also reports
MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS, ACTION_REQUIRED and UNDETERMINED, which accept no action. Sources:
https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_time_limit_actions.html
https://docs.aws.eu/batch/latest/userguide/job_stuck_in_runnable_time_limit_actions.html"""


def queue_membership(
    environment: str, queues: Mapping[str, Sequence[str]], field: str = "environments"
) -> list[Finding]:
    if any(environment in names for names in queues.values()):
        return []
    message = f"is in no queue ({', '.join(queues) or 'there is none'}), so no job runs in it"
    fix = "name it in environments of a queue, or leave it out"
    return [UNNAMED.finding(field, message, fix)]


def queue(*, environments: Sequence[str], priority: int) -> list[Finding]:
    found: list[Finding] = []
    if not 1 <= len(environments) <= MAX_ENVIRONMENTS:
        message = f"has {len(environments)} environments; a queue has 1 to {MAX_ENVIRONMENTS}"
        found.append(ENVIRONMENT_COUNT.finding("environments", message, "make several queues, or widen an environment"))
    for i, environment in enumerate(environments):
        if environment in environments[:i]:
            message = f'is "{environment}" a second time'
            found.append(DUPLICATE_ENVIRONMENT.finding(f"environments[{i}]", message, "name each environment once"))
    if priority < 0:
        found.append(PRIORITY.finding("priority", f"must be at least 0, is {priority}", "the higher number goes first"))
    return found


def architectures(types_by_environment: Mapping[str, Sequence[str]]) -> list[Finding]:
    first: dict[str, str] = {}
    for environment, instance_types in types_by_environment.items():
        for _, machine in types.find_machines(instance_types):
            first.setdefault(machine.cpu_arch, environment)
    if len(first) < 2:
        return []
    message = "mixes " + " and ".join(f"{arch} ({environment})" for arch, environment in first.items())
    return [ARCHITECTURES.finding("environments", message, "make a queue for each architecture")]


def time_limit(*, reason: str, max_time_s: int, field: str = "time_limit") -> list[Finding]:
    """Check the action on a job that heads the queue for too long."""
    found: list[Finding] = []
    if max_time_s not in TIME_LIMIT_RANGE:
        low, high = TIME_LIMIT_RANGE[0], TIME_LIMIT_RANGE[-1]
        message = f"must be {low} to {high} seconds, is {max_time_s}"
        fix = f"write {low if max_time_s < low else high}"
        found.append(TIME_LIMIT_SECONDS.finding(f"{field}.max_time_s", message, fix))
    if reason not in TIME_LIMIT_REASONS:
        fix = did_you_mean(nearest(reason, TIME_LIMIT_REASONS, 1), TIME_LIMIT_REASONS)
        message = f'is "{reason}", on which Batch takes no action'
        found.append(TIME_LIMIT_REASON.finding(f"{field}.reason", message, fix))
    return found
