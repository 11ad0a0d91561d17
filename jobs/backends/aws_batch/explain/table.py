"""Every cause that can be named, and where AWS tells of it. docs/explain.md is made of this."""

from accel.diagnostics.findings import API, GUIDE

from ...base import Explanation
from ...causes import Cause

ECS = "https://docs.aws.amazon.com/AmazonECS/latest/developerguide/"
SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/"
EC2_ERRORS = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"
STUCK = f"{GUIDE}job_stuck_in_runnable_misconfiguration.html"
RETRIES = f"{GUIDE}job_retries.html"
EXIT_STATUS = "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02"


CAUSES = {
    # The job cannot be looked at
    "unknown-job": Cause("Batch knows no such job in that region", f"{API}API_DescribeJobs.html"),
    "wrong-region": Cause("The job is in another region than the reference says", f"{API}API_DescribeJobs.html"),
    # It waits
    "submitted": Cause("The scheduler has not looked at it yet", f"{GUIDE}job_states.html"),
    "dependencies": Cause("It waits for jobs that it depends on", f"{GUIDE}job_dependencies.html"),
    "queue-invalid": Cause("The queue is INVALID or being deleted", f"{API}API_JobQueueDetail.html"),
    "environment-disabled": Cause("Every environment of the queue is DISABLED", STUCK),
    "environment-invalid": Cause(
        "Every environment of the queue is INVALID or DISABLED", f"{GUIDE}invalid_compute_environment.html"
    ),
    "service-role": Cause("Batch may not use its service role", f"{GUIDE}service_IAM_role.html"),
    "too-many-gpus": Cause("No instance type of the queue has so many GPUs", STUCK),
    "too-many-vcpus": Cause("No instance type of the queue has so many vCPUs", STUCK),
    "too-much-memory": Cause("No instance type registers so much memory", f"{GUIDE}memory-management.html"),
    "too-large": Cause("AWS finds the job larger than every instance type; the catalogue does not", STUCK),
    "max-vcpus": Cause("max_vcpus has no room for an instance that holds the job", STUCK),
    "fair-share": Cause("The queue's scheduling policy puts other shares first", f"{GUIDE}fair-share-scheduling.html"),
    "share-reserve": Cause(
        "What is left of max_vcpus is reserved for shares without jobs", f"{GUIDE}fair-share-scheduling.html"
    ),
    "behind-others": Cause("Other jobs are before it in the queue", f"{API}API_GetJobQueueSnapshot.html"),
    "image-without-driver": Cause(
        "The instances' image has no NVIDIA driver: they have no GPUs for jobs", f"{API}API_Ec2Configuration.html"
    ),
    "stockout": Cause("EC2 has no capacity of the instance types", f"{GUIDE}job_stuck_in_runnable_capacity.html"),
    "quota": Cause("A vCPU quota of EC2 is reached", EC2_ERRORS),
    "launch-failed": Cause("EC2 refuses to launch for another reason", f"{SCALING}ts-as-instancelaunchfailure.html"),
    "instance-role": Cause(
        "The instance profile or its role is missing or lacks a permission", f"{GUIDE}instance_IAM_role.html"
    ),
    "no-egress": Cause("Instances cannot reach ECS from their subnet", f"{ECS}vpc-endpoints.html"),
    "instance-starting": Cause("An instance has started and has not joined the cluster yet", f"{GUIDE}job_states.html"),
    "not-registered": Cause(
        "Instances run and never join the cluster; role and network seem right", f"{GUIDE}job_stuck_in_runnable.html"
    ),
    "environment-full": Cause("Running jobs use what max_vcpus allows", f"{API}API_ComputeResource.html"),
    "new": Cause("It was made a moment ago, and nothing stands against it", f"{GUIDE}job_states.html"),
    "starting": Cause("It has an instance; the image is pulled and the container made", f"{GUIDE}job_states.html"),
    # It does not wait, and has not failed
    "running": Cause("It runs", f"{GUIDE}job_states.html"),
    "succeeded": Cause("It has succeeded", f"{GUIDE}job_states.html"),
    # It failed without running
    "time-limit": Cause(
        "The queue cancelled it after the time that it allows", f"{GUIDE}job_stuck_in_runnable_time_limit_actions.html"
    ),
    "stopped": Cause("Someone cancelled or terminated it", f"{API}API_TerminateJob.html"),
    "dependency-failed": Cause("A job that it depends on has failed", f"{GUIDE}job_dependencies.html"),
    "refused": Cause("ECS refused the task; there was no attempt", f"{ECS}stopped-task-errors.html"),
    # An attempt did not start
    "image-missing": Cause("The image or its tag is not there", f"{ECS}task_cannot_pull_image.html"),
    "image-forbidden": Cause("The image may not be read", f"{ECS}task_cannot_pull_image.html"),
    "image-unreachable": Cause("The registry cannot be reached", f"{ECS}task_cannot_pull_image.html"),
    "image-rate-limit": Cause("The registry allows no more pulls just now", f"{ECS}task_cannot_pull_image.html"),
    "image-platform": Cause("The image is for another kind of CPU", f"{ECS}task_cannot_pull_image.html"),
    "image-pull": Cause("The image cannot be pulled, with another reason", f"{ECS}task_cannot_pull_image.html"),
    "log-group-missing": Cause("The log group is not there", "https://github.com/aws/aws-cdk/issues/5954"),
    "log-group-forbidden": Cause("The log group may not be written to", f"{ECS}using_awslogs.html"),
    "secrets": Cause("A secret cannot be read", f"{ECS}secrets-envvar-secrets-manager.html"),
    "gpu-driver": Cause("The instance's image has no working NVIDIA driver", f"{API}API_Ec2Configuration.html"),
    "not-started": Cause("The container was not started, with another reason", f"{ECS}cannot-start-container.html"),
    # An attempt ended
    "spot-reclaim": Cause("EC2 took the Spot instance back", RETRIES),
    "host-lost": Cause("The instance went away", RETRIES),
    "timeout": Cause("The attempt ran longer than its timeout", f"{GUIDE}job_timeouts.html"),
    "out-of-memory": Cause(
        "The container used more of the host's memory than it asked for", f"{ECS}out-of-memory.html"
    ),
    "cuda-out-of-memory": Cause("The GPU's memory was full", "https://docs.pytorch.org/docs/stable/notes/faq.html"),
    "shared-memory": Cause("Shared memory was full", "https://docs.pytorch.org/docs/stable/multiprocessing.html"),
    "gpu-not-visible": Cause("The program sees no GPU, though one is reserved", f"{GUIDE}gpu-jobs.html"),
    "gpu-not-requested": Cause("The program wants a GPU, and the job asks for none", f"{GUIDE}gpu-jobs.html"),
    "disk-full": Cause("A disk was full", f"{ECS}task_cannot_pull_image.html"),
    "killed": Cause("SIGKILL ended it, and nothing says why", EXIT_STATUS),
    "command-not-found": Cause("A command was not found (127)", EXIT_STATUS),
    "command-not-executable": Cause("A command cannot be run (126)", EXIT_STATUS),
    "exit-code": Cause("The command ended by itself with another exit code", EXIT_STATUS),
    "unknown": Cause("None of these fits; what was looked at is listed", f"{GUIDE}job_stuck_in_runnable.html"),
}  # fmt: skip
"""By id; the order is the documentation's."""


def because(cause: str, reason: str, evidence: tuple[str, ...], next_step: str) -> Explanation:
    """An explanation by one of the causes."""
    assert cause in CAUSES, cause
    return Explanation(cause, reason, evidence, next_step)


def ago(now: float, then: float) -> str:
    """`12 s ago`, `4 min ago`, `3 h ago`, `2 days ago`."""
    return f"{span(now - then)} ago"


def span(seconds: float) -> str:
    """A length of time in a unit that fits it."""
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"
