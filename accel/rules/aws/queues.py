"""An AWS Batch job queue over compute environments."""

from collections import Counter
from collections.abc import Mapping, Sequence

from accel.catalog import nearest
from accel.diagnostics.findings import API, GUIDE, Finding, Rule, did_you_mean
from accel.rules.aws import names, types

_PAGE = f"{API}API_CreateJobQueue.html"
_LIMITS = f"{API}API_JobStateTimeLimitAction.html"

ENVIRONMENT_COUNT = Rule("aws.queue.environment-count", "reject", "A queue has one to three environments", _PAGE)
DUPLICATE_ENVIRONMENT = Rule(
    "aws.queue.duplicate-environment", "reject", "An environment is in a queue at most once", _PAGE
)
DUPLICATE_ORDER = Rule("aws.queue.duplicate-order", "reject", "No two environments of a queue share an order", _PAGE)
ARCHITECTURES = Rule(
    "aws.queue.mixed-architecture", "reject", "All environments of a queue share one CPU architecture", _PAGE
)
PRIORITY = Rule("aws.queue.priority", "reject", "A queue's priority is 0 or more; the higher goes first", _PAGE)
TIME_LIMIT_SECONDS = Rule(
    "aws.queue.time-limit-seconds", "reject", "A RUNNABLE time limit is 600 to 86,400 seconds", _LIMITS
)
TIME_LIMIT_ACTION = Rule(
    "aws.queue.time-limit-action", "reject", "The action of a RUNNABLE time limit is CANCEL", _LIMITS
)
TIME_LIMIT_STATE = Rule("aws.queue.time-limit-state", "reject", "A time limit is on the state RUNNABLE", _LIMITS)
TIME_LIMIT_REASON = Rule(
    "aws.queue.time-limit-reason",
    "reject",
    "The reason of a time limit is one that Batch acts on",
    f"{GUIDE}job_stuck_in_runnable_time_limit_actions.html",
)
UNNAMED = Rule("aws.queue.unnamed-environment", "warn", "Jobs reach an environment by a queue that names it", _PAGE)

RULES = (
    ENVIRONMENT_COUNT, DUPLICATE_ENVIRONMENT, DUPLICATE_ORDER, ARCHITECTURES, PRIORITY, TIME_LIMIT_SECONDS,
    TIME_LIMIT_ACTION, TIME_LIMIT_STATE, TIME_LIMIT_REASON, UNNAMED,
)  # fmt: skip

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
    """Check that an environment that accepts jobs is in a queue."""
    if any(environment in names for names in queues.values()):
        return []
    message = f"is in no queue ({', '.join(queues) or 'there is none'}), so no job runs in it"
    fix = "name it in environments of a queue, or leave it out"
    return [UNNAMED.finding(field, message, fix)]


def queue(
    *,
    environments: Sequence[str],
    priority: int,
    orders: Sequence[int] = (),
    name: str | None = None,
    types_by_environment: Mapping[str, Sequence[str]] | None = None,
) -> list[Finding]:
    """Check a queue over environments by name. `orders`: their order numbers, if given; otherwise the order of the list
    counts. `types_by_environment`: the instance types of the known environments."""
    found = names.queue(name) if name is not None else []
    if not 1 <= len(environments) <= MAX_ENVIRONMENTS:
        message = f"has {len(environments)} environments; a queue has 1 to {MAX_ENVIRONMENTS}"
        found.append(ENVIRONMENT_COUNT.finding("environments", message, "make several queues, or widen an environment"))
    for i, environment in enumerate(environments):
        if environment in environments[:i]:
            message = f'is "{environment}" a second time'
            found.append(DUPLICATE_ENVIRONMENT.finding(f"environments[{i}]", message, "name each environment once"))
    for order, count in Counter(orders).items():
        if count > 1:
            message = f"has the order {order} {count} times"
            found.append(DUPLICATE_ORDER.finding("environments", message, "give each environment an order of its own"))
    if priority < 0:
        found.append(PRIORITY.finding("priority", f"must be at least 0, is {priority}", "the higher number goes first"))
    return found + architectures(types_by_environment or {})


def architectures(types_by_environment: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Check that all environments of a queue have one CPU architecture."""
    first: dict[str, str] = {}
    for environment, instance_types in types_by_environment.items():
        for _, machine in types.find_machines(instance_types):
            first.setdefault(machine.cpu_arch, environment)
    if len(first) < 2:
        return []
    message = "mixes " + " and ".join(f"{arch} ({environment})" for arch, environment in first.items())
    return [ARCHITECTURES.finding("environments", message, "make a queue for each architecture")]


def time_limit(
    *,
    reason: str,
    max_time_s: int,
    action: str = "CANCEL",
    state: str = "RUNNABLE",
    field: str = "time_limit",
) -> list[Finding]:
    """Check the action on a job that heads the queue in RUNNABLE for too long."""
    found: list[Finding] = []
    if max_time_s not in TIME_LIMIT_RANGE:
        low, high = TIME_LIMIT_RANGE[0], TIME_LIMIT_RANGE[-1]
        message = f"must be {low} to {high} seconds, is {max_time_s}"
        fix = f"write {low if max_time_s < low else high}"
        found.append(TIME_LIMIT_SECONDS.finding(f"{field}.max_time_s", message, fix))
    if action != "CANCEL":
        found.append(TIME_LIMIT_ACTION.finding(f"{field}.action", f'is "{action}"', "use CANCEL"))
    if state != "RUNNABLE":
        found.append(TIME_LIMIT_STATE.finding(f"{field}.state", f'is "{state}"', "use RUNNABLE"))
    if reason not in TIME_LIMIT_REASONS:
        fix = did_you_mean(nearest(reason, TIME_LIMIT_REASONS, 1), TIME_LIMIT_REASONS)
        message = f'is "{reason}", on which Batch takes no action'
        found.append(TIME_LIMIT_REASON.finding(f"{field}.reason", message, fix))
    return found
