"""A line of an estimate, and the components with one. A component on no list is named, and the total "at least"."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accel.cost import Envelope


@dataclass(frozen=True)
class Line:
    """One component's cost in USD per hour, the dates and the confidence of its prices, and remarks."""

    component: str
    what: str
    envelope: Envelope
    dates: tuple[str, ...] = ()
    confidence: str = "low"
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Parts without a known price, and why."""


PRICED = frozenset({
    *(f"accel:aws:{name}" for name in ("ComputeEnvironment", "LaunchTemplate", "Network")),
    *(f"accel:gcp:{name}" for name in ("GkeCluster", "CpuPool", "GpuPool", "TpuPool", "PersistentResource")),
    *(f"accel:gcp:{name}" for name in ("GpuVm", "GpuVmGroup", "TpuVm", "TpuQueue", "QueuedTpu")),
    *(f"accel:gcp:{name}" for name in ("Reservation", "FutureReservation", "Commitment")),
})  # fmt: skip
"""Components with a line in an estimate, billed by the hour of their existence."""

BY_USE: Mapping[str, str] = {
    "accel:aws:ClaimTable": "requests of submit (by the million)",
    "accel:aws:CodeBucket": "code that jobs are sent with (by the GB-month)",
    "accel:aws:ImageRepository": "images (by the GB-month)",
    "accel:aws:JobLog": "what jobs print (by the GB, and kept by the GB-month)",
    "accel:aws:Monitoring": "events, alarms, metrics and a dashboard (by the GB and by the month)",
    "accel:aws:SpendLedger": "requests of submit (by the million)",
    "accel:gcp:BatchJobs": "a bucket (by the GB-month)",
    "accel:gcp:BudgetStop": "a function that runs when a budget is crossed, and its image (by the GB-month)",
    "accel:gcp:ClaimDatabase": "requests of submit (by the 100,000)",
    "accel:gcp:CodeBucket": "code that jobs are sent with (by the GB-month)",
    "accel:gcp:ImageRepository": "images (by the GB-month)",
    "accel:gcp:Network": "Cloud NAT (by the VM-hour and the GB), flow logs and traffic (by the GB)",
    "accel:gcp:ReconcileFunction": "a schedule (by the month) and a function that runs by it",
    "accel:gcp:SpendLedger": "requests of submit (by the 100,000)",
    "accel:gcp:Tensorboard": "what is stored (by the GB-month)",
    "accel:gcp:VertexJobs": "a bucket (by the GB-month)",
    "accel:gcp:VmJobs": "a bucket (by the GB-month)",
    "accel:kubernetes:JobVolume": "what is stored (by the GB-month)",
}
"""Components billed by usage, which the environment does not determine."""

FREE: Mapping[str, str] = {
    "accel:aws:BatchRoles": "IAM has no price",
    "accel:aws:Budget": "the first budgets with actions of an account, and every one without, have no price",
    "accel:aws:BudgetStop": "a function and a topic that are used when a budget is crossed",
    "accel:aws:JobDefinition": "AWS Batch has no price of its own",
    "accel:aws:JobQueue": "AWS Batch has no price of its own",
    "accel:aws:PublishedTargets": "advanced parameters cost cents a month, standard ones nothing",
    "accel:aws:SubmitPolicy": "IAM has no price",
    "accel:gcp:BatchTemplate": "a template has no price",
    "accel:gcp:BucketTargets": "objects of a few KiB",
    "accel:gcp:Budget": "budgets have no price",
    "accel:gcp:BudgetPlan": "an object of a few KiB",
    "accel:gcp:JobNotifications": "messages of a few KiB",
    "accel:gcp:NodeServiceAccount": "IAM has no price",
    "accel:gcp:Placement": "a policy has no price",
    "accel:gcp:Services": "an API has no price until it is used",
    "accel:gcp:VmAccount": "IAM has no price",
    "accel:gcp:WorkloadServiceAccount": "IAM has no price",
    **dict.fromkeys(
        (
            *("accel:kubernetes:DcgmExporter", "accel:kubernetes:DriverInstaller", "accel:kubernetes:DriverProbe"),
            *("accel:kubernetes:GpuHealth", "accel:kubernetes:JobNamespace", "accel:kubernetes:LocalQueues"),
            *("accel:kubernetes:OperatorNamespace", "accel:kubernetes:ProvisioningWatchdog"),
            *("accel:kubernetes:PublishedTargets", "accel:kubernetes:Queueing", "accel:kubernetes:ReleaseBundle"),
            "accel:kubernetes:StopAccess",
        ),
        "runs on the cluster's own nodes",
    ),
}
"""Components that cost nothing, or cents, with the reason."""


def unlisted_types(types: Iterable[str]) -> list[str]:
    known = (PRICED, BY_USE, FREE)
    return sorted({each for each in types if not any(each in listed for listed in known)})
