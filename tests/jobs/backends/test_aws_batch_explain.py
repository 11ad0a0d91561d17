"""Decisions that the sandbox cannot bring about, on answers in the shape and words that AWS documents."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from accel.clouds.aws.roles import Role
from accel.clouds.aws.routes import Network
from jobs.backends.diagnosis.aws_batch import decide
from jobs.backends.diagnosis.aws_batch.facts import (
    Activity,
    Ahead,
    AwsFacts,
    Environment,
    Instance,
    Other,
    Queue,
)

NOW = 1_800_000_000.0
GPU_JOB = [{"type": "VCPU", "value": "4"}, {"type": "MEMORY", "value": "12000"}, {"type": "GPU", "value": "1"}]
QUEUE = Queue("gpu", "ENABLED", "VALID", "JobQueue Healthy", None, {})
SPOT = Environment(
    "spot", "ENABLED", "VALID", "ComputeEnvironment Healthy", True, ("g5",), 64, 0, "AWSBatch-spot-1",
    (("ECS_AL2023_NVIDIA", ""),), own_image=lambda: "",
)  # fmt: skip
STARTED = Instance("i-1", "g5.xlarge", NOW - 3600, "subnet-1", False, False)
GOOD_ROLE = Role("instances", True, "instances")
NAT = Network({"subnet-1": "nat-1"}, {"subnet-1": frozenset[str]()}, True)


def always(value: Any) -> Callable[[], Any]:
    return lambda: value


def waiting(*environments: Environment, ago_s: float = 3600, **changes: Any) -> AwsFacts:
    """A RUNNABLE job that is first in its queue."""
    job = {
        "jobId": "j1",
        "status": "RUNNABLE",
        "createdAt": int((NOW - ago_s) * 1000),
        "container": {"image": "train:1", "resourceRequirements": GPU_JOB},
    }
    facts = AwsFacts(
        job | changes.pop("job", {}), "us-east-1", NOW, always(QUEUE), always(environments or (SPOT,)), always(())
    )
    return replace(facts, **changes)


def ended(reason: str = "", *, status_reason: str = "Task failed to start", exit_code: int | None = None) -> AwsFacts:
    """A FAILED job by its only attempt."""
    container = {"reason": reason, "containerInstanceArn": "arn:aws:ecs:r:1:container-instance/AWSBatch-spot-1/i"}
    if exit_code is not None:
        container["exitCode"] = exit_code  # pyright: ignore[reportArgumentType]
    attempt = {"container": container, "statusReason": status_reason}
    return waiting(job={"status": "FAILED", "statusReason": status_reason, "attempts": [attempt]})


def cause(facts: AwsFacts) -> str | None:
    told = decide(facts)
    return told and told.cause


REGISTRY = "ResourceInitializationError: unable to pull secrets or registry auth: "
LOGS = (
    "CannotStartContainerError: Error response from daemon: failed to initialize logging driver: failed to create "
    "Cloudwatch log stream: "
)
EFS = "ResourceInitializationError: failed to invoke EFS utils commands to set up EFS volumes: stderr: "
ARN = "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        # Sources: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_cannot_pull_image.html
        ("CannotPullContainerError: Error response from daemon: manifest for train:1 not found: manifest unknown",
         "image-missing"),
        ("CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref "
         f"{ARN}: {ARN}: not found", "image-missing"),
        (f"CannotPullContainerError: Error response from daemon: pull access denied for {ARN}, repository does not "
         "exist or may require 'docker login'", "image-forbidden"),
        ("CannotPullContainerError: pull command failed: something new", "image-pull"),
        ("CannotPullContainerError: AccessDeniedException: User: arn:aws:sts::1:assumed-role/x is not authorized to "
         "perform: ecr:GetAuthorizationToken", "image-forbidden"),
        ("CannotPullContainerError: no basic auth credentials", "image-forbidden"),
        (f"CannotPullContainerError: failed to do request: Head \"https://{ARN}\": dial tcp 10.0.3.17:443: i/o timeout",
         "image-unreachable"),
        ("CannotPullContainerError: Error response from daemon: Get https://x/v2/: net/http: request canceled while "
         "waiting for connection (Client.Timeout exceeded while awaiting headers)", "image-unreachable"),
        ("CannotPullContainerError: inspect image has been retried 5 time(s): failed open: unexpected "
         "status code 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.",
         "image-rate-limit"),
        ("CannotPullContainerError: image Manifest does not contain descriptor matching platform 'linux/amd64'",
         "image-platform"),
        ("CannotPullContainerError: write /var/lib/docker/tmp/x: no space left on device", "disk-full"),
        # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cannot-start-container.html
        ("CannotStartContainerError: Error response from daemon: failed to initialize logging driver: failed to create "
         "Cloudwatch log stream: AccessDeniedException: User is not authorized to perform: logs:CreateLogStream",
         "log-group-forbidden"),
        # https://github.com/seqeralabs/nf-tower/issues/305, https://github.com/moby/moby/issues/42088
        (f"{LOGS}RequestError: send request failed caused by: Post https://logs.us-east-2.amazonaws.com/: dial tcp "
         "10.20.10.16:443: i/o timeout", "no-egress"),
        (f"{LOGS}ThrottlingException: Rate exceeded status code: 400", "not-started"),
        # https://github.com/cn-terraform/terraform-aws-nexus/issues/35
        (f"{LOGS}ResourceNotFoundException: The specified log group does not exist", "log-group-missing"),
        ("CannotStartContainerError: Error response from daemon: OCI runtime create failed: nvidia-container-cli: "
         "initialization error: nvml error: driver not loaded: unknown", "container-gpu"),
        ("CannotStartContainerError: Error response from daemon: could not select device driver with capabilities: "
         "[[gpu]]", "container-gpu"),
        ('CannotStartContainerError: Error response from daemon: exec: "train": executable file not found in $PATH',
         "command-not-found"),
        ("CannotStartContainerError: container init was OOM-killed (memory limit too low?): unknown", "out-of-memory"),
        ("DockerTimeoutError: Could not transition to started; timed out after waiting 3m0s", "not-started"),
        # https://github.com/awsdocs/amazon-ecs-developer-guide/issues/110, https://github.com/aws/copilot-cli/issues/4504
        ("Fetching secret data from AWS Secrets Manager in region us-east-1: secret arn:aws:secretsmanager:us-east-1:1:"
         "secret:t: AccessDeniedException: User is not authorized", "secret-unreadable"),
        ("ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: "
         "unable to retrieve secrets from ssm: AccessDeniedException", "secret-unreadable"),
        ("Fetching secret data from AWS Secrets Manager in region us-east-1: secret arn:x: ResourceNotFoundException: "
         "Secrets Manager can't find the specified secret.", "secret-unreadable"),
        # https://github.com/doctorray117/minecraft-ondemand/issues/74, https://github.com/aws/copilot-cli/issues/5927
        (f"{REGISTRY}execution resource retrieval failed: unable to retrieve ecr registry auth: service call has been "
         "retried 3 time(s): RequestError: send request failed caused by: Post \"https://api.ecr.us-east-2.amazonaws."
         "com/\": dial tcp 1.2.3.4:443: i/o timeout. Please check your task network configuration.",
         "image-unreachable"),
        (f"{REGISTRY}The task cannot pull registry auth from Amazon ECR: There is a connection issue between the task "
         "and Amazon ECR. RequestError: send request failed", "image-unreachable"),
        (f"{REGISTRY}execution resource retrieval failed: unable to retrieve ecr registry auth: AccessDeniedException: "
         "User is not authorized to perform: ecr:GetAuthorizationToken", "image-forbidden"),
        # https://github.com/aws/amazon-ecs-cli/issues/1083, https://github.com/acp-io/terraform-grafana/issues/4,
        # https://github.com/ydamni/cloud-is-free/issues/3
        (f'{EFS}Failed to resolve "fs-00000000.efs.us-east-1.amazonaws.com" - check that your file system ID is '
         "correct.", "mount"),
        (f"{EFS}b'mount.nfs4: mounting fs-1.efs.us-east-1.amazonaws.com:/grafana failed, reason given by server: No "
         "such file or directory' : unsuccessful EFS utils command execution; code: 32", "mount"),
        # https://docs.aws.amazon.com/AmazonECS/latest/userguide/stopped-task-error-codes.html
        ("CannotCreateVolumeError: something", "mount"),
        ("ContainerRuntimeTimeoutError: Could not transition to running; timed out after waiting 1m", "not-started"),
        ("CannotCreateContainerError: Error response from daemon: create ecs-td-6: VolumeDriver.Create: mounting "
         'volume failed: Failed to resolve "fs-1"', "mount"),
    ],
)  # fmt: skip
def test_what_ecs_says_of_a_container(reason: str, expected: str) -> None:
    told = decide(ended(reason))
    assert told is not None and told.cause == expected
    assert reason in told.evidence


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        # https://github.com/nextflow-io/nextflow/pull/2146
        ("ECS was unable to assume the role 'arn:aws:iam::1:role/x' that was provided for this task. Please verify "
         "that the role being passed has the proper trust relationship and permissions.", "service-account"),
        (f"{REGISTRY}unable to retrieve ecr registry auth: RequestError: send request failed", "image-unreachable"),
        ("Invalid 'containerProperties' : something", "refused"),
    ],
)  # fmt: skip
def test_a_job_that_ecs_refuses_before_any_attempt(reason: str, expected: str) -> None:
    assert cause(waiting(job={"status": "FAILED", "statusReason": reason})) == expected


def test_a_secret_is_missing_or_may_not_be_read() -> None:
    missing = decide(ended("Fetching secret data from SSM Parameter Store: invalid ssm parameters: /gone"))
    denied = decide(ended("unable to retrieve secrets from ssm: AccessDeniedException"))
    assert missing and denied
    assert (missing.next_step != denied.next_step, "execution role" in denied.reason) == (True, True)


@pytest.mark.parametrize("code", [137, 1, 0])
def test_the_host_ran_out_of_memory(code: int) -> None:
    # https://github.com/aws/amazon-ecs-agent/issues/2467: any exit code can stand beside it.
    reason, why = "OutOfMemoryError: Container killed due to memory usage", "Essential container in task exited"
    facts = replace(ended(reason, status_reason=why, exit_code=code), lines=always(("CUDA out of memory",)))
    told = decide(facts)
    assert told and told.cause == "out-of-memory"
    assert "12000 MiB" in told.reason and "GPU's memory has nothing to do" in told.next_step


def test_a_host_is_lost_where_nobody_says_that_it_was_spot() -> None:
    facts = ended(status_reason="Host EC2 (instance i-1) terminated.")
    assert cause(facts) == "preempted"
    assert cause(replace(facts, environments=always(None))) == "host-lost"
    assert cause(replace(facts, environments=always((replace(SPOT, spot=False),)))) == "host-lost"


def test_nothing_fits() -> None:
    assert cause(waiting()) is None
    assert cause(ended()) is None
    assert cause(waiting(job={"status": "PENDING"})) is None
    assert cause(waiting(job={"status": "SUBMITTED"})) is None
    assert cause(waiting(environments=always(None), queue=always(None), front=always(None))) is None


def test_new_is_no_cause_for_long() -> None:
    assert cause(waiting(ago_s=20)) == "new"
    assert cause(waiting(ago_s=20, job={"status": "SUBMITTED"})) == "queued"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
        ("Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity. Launching EC2 instance "
         "failed.", "no-capacity"),
        ("There is no Spot capacity available that matches your request. Launching EC2 instance failed.",
         "no-capacity"),
        ("Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price of 0.2 is lower than the "
         "minimum required Spot request fulfillment price of 0.5.", "launch-failed"),
        ("Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded.", "quota"),
        ("The image id '[ami-1]' does not exist. Launching EC2 instance failed.", "boot-image-missing"),
        # https://github.com/kubernetes/kops/pull/15778, https://github.com/widdix/aws-s3-virusscan/issues/55
        ("You have requested more vCPU capacity than your current vCPU limit of 384 allows for the instance bucket "
         "that the specified instance type belongs to. Launching EC2 instance failed.", "quota"),
        ("You have requested more instances (1) than your current instance limit of 0 allows for the specified "
         "instance type. Launching EC2 instance failed.", "quota"),
        # https://github.com/PrairieLearn/PrairieLearn/issues/3271
        ("There are not enough free addresses in subnet 'subnet-66d3dd2c' to satisfy the requested number of "
         "instances. Launching EC2 instance failed.", "no-addresses"),
        # https://github.com/compiler-explorer/infra/issues/601
        ("InvalidFleetConfiguration - Your requested instance type (c5.large) is not supported in your requested "
         "Availability Zone (us-east-1e).", "not-offered"),
        # https://github.com/ITISFoundation/osparc-simcore/issues/3629
        ("We currently do not have sufficient g4dn.8xlarge capacity in the Availability Zone you requested "
         "(us-east-1a).", "no-capacity"),
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
        ("ReservationCapacityExceeded - The requested reservation does not have sufficient compatible and available "
         "capacity for this request.", "reservation"),
        ("Value (acme) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
         "instance-role"),
        ("Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state.", "launch-failed"),
    ],
)  # fmt: skip
def test_what_auto_scaling_says(message: str, expected: str) -> None:
    failed = Activity(NOW - 60, True, message)
    assert cause(waiting(replace(SPOT, activities=always((failed,))))) == expected
    # An old failure, or one after which a launch succeeded, is none of this job's.
    old = replace(failed, at=NOW - 90_000)
    assert cause(waiting(replace(SPOT, activities=always((old,))))) is None
    done = Activity(NOW - 30, False, "Launching a new EC2 instance: i-1")
    assert cause(waiting(replace(SPOT, activities=always((done, failed))))) is None


def test_awss_verdict_stands_where_launches_may_not_be_read() -> None:
    told = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested for [g5.xlarge]"
    assert cause(waiting(job={"statusReason": told})) == "no-capacity"
    too_big = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement is higher"
    assert cause(waiting(job={"statusReason": too_big})) == "too-large"
    unknown = replace(SPOT, instance_types=("g99",))
    assert cause(waiting(unknown, job={"statusReason": too_big})) == "too-large"
    assert cause(waiting(unknown)) is None


def test_an_instance_that_does_not_join() -> None:
    place = replace(SPOT, instances=always((STARTED,)), role=always(GOOD_ROLE), network=always(NAT))
    assert cause(waiting(place)) == "agent-silent"
    unread = replace(place, role=always(None), network=always(None))
    assert cause(waiting(unread)) == "agent-silent"
    assert cause(waiting(replace(place, instances=always((replace(STARTED, joined=None),))))) is None
    assert cause(waiting(replace(place, instances=always((replace(STARTED, joined=True),))))) is None
    assert cause(waiting(replace(place, role=always(Role("gone", False))))) == "instance-role"


@pytest.mark.parametrize(
    ("route", "public", "expected"),
    [
        ("", True, "no-egress"),
        ("igw-1", False, "no-egress"),
        ("igw-1", True, "agent-silent"),
        ("nat-1", False, "agent-silent"),
        ("tgw-1", False, "agent-silent"),
    ],
)
def test_the_way_out(route: str, public: bool, expected: str) -> None:
    one, net = replace(STARTED, public_ip=public), replace(NAT, routes={"subnet-1": route})
    place = replace(SPOT, instances=always((one,)), role=always(GOOD_ROLE), network=always(net))
    assert cause(waiting(place)) == expected


def test_what_goes_on_is_told_before_what_does_not() -> None:
    failed = Activity(NOW - 60, True, "InsufficientInstanceCapacity - no")
    short = replace(SPOT, activities=always((failed,)))
    young = replace(STARTED, launched=NOW - 60)
    steady = replace(SPOT, name="steady", spot=False, instances=always((young,)), network=always(NAT))
    assert cause(waiting(short, steady)) == "machine-starting"
    told = decide(waiting(short, replace(steady, instances=always(()))))
    assert told and told.cause == "no-capacity"
    assert "steady: nothing found that keeps the job from it" in told.evidence


def test_a_tight_fit_is_judged_by_what_was_registered() -> None:
    memory = [{"type": "VCPU", "value": "8"}, {"type": "MEMORY", "value": "31800"}, {"type": "GPU", "value": "1"}]
    job = {"container": {"resourceRequirements": memory}}
    one = Instance("i-1", "g5.2xlarge", NOW - 900, "subnet-1", True, True, registered_mib=31431)
    place = replace(SPOT, instance_types=("g5.2xlarge",), instances=always((one,)))
    told = decide(waiting(place, job=job))
    assert told and told.cause == "too-much-memory"
    assert told.evidence == ("spot: i-1, a g5.2xlarge, registered 31431 MiB",)
    roomy = replace(place, instances=always((replace(one, registered_mib=31900),)))
    assert cause(waiting(roomy, job=job)) is None


def test_the_front_of_a_long_queue() -> None:
    front = tuple(Ahead(f"a{at}", f"job-{at}", "", "") for at in range(100))
    told = decide(waiting(front=always(front)))
    assert told and told.cause == "behind-others"
    assert told.evidence[0] == "queue gpu: the job is not among the first 100"
    # A snapshot of before the job came says nothing.
    assert cause(waiting(front=always(front[:5]))) is None
    assert cause(waiting(front=always((Ahead("j1", "", "", ""), *front[:5])))) is None


def test_a_reserve_is_named_only_where_it_is_what_is_short() -> None:
    policy = replace(QUEUE, shares={"computeReservation": 50})
    one = replace(STARTED, joined=True)
    place = replace(SPOT, instance_types=("g5.xlarge",), max_vcpus=8, instances=always((one,)))
    fair: dict[str, Any] = {"queue": always(policy), "active_shares": always(1)}
    assert cause(waiting(replace(place, desired_vcpus=4), **fair)) == "share-reserve"
    assert cause(waiting(replace(place, desired_vcpus=8), **fair)) == "environment-full"
    assert cause(waiting(replace(place, desired_vcpus=0), **fair)) is None
    assert cause(waiting(replace(place, desired_vcpus=4), **(fair | {"active_shares": always(None)}))) is None


def test_an_image_that_takes_long_to_pull() -> None:
    told = decide(waiting(job={"status": "STARTING"}, pull_began=always(NOW - 300)))
    assert told and told.cause == "starting"
    assert told.evidence == ("image train:1", "its image has been pulled since 5 min ago")


def test_dependencies_that_batch_has_forgotten() -> None:
    others = (Other("a", "first", "SUCCEEDED"), Other("b", "", None))
    told = decide(waiting(job={"status": "PENDING"}, depends_on=always(others)))
    assert told and told.reason == "the job waits for 1 of the 2 jobs that it depends on"
    assert told.evidence == ("aws-batch:us-east-1/b: not known to Batch",)


def test_a_queue_that_does_not_work() -> None:
    broken = replace(QUEUE, status="INVALID", reason="no")
    assert cause(waiting(queue=always(broken))) == "queue-invalid"
    # A queue that is DISABLED goes on with the jobs that it has.
    assert cause(waiting(queue=always(replace(QUEUE, state="DISABLED")))) is None


def test_what_the_log_says_is_read_from_its_end() -> None:
    why = "Essential container in task exited"
    oom = ["Traceback (most recent call last):", '  File "t.py", line 1', "torch.OutOfMemoryError: CUDA out of memory."]
    echo = ["Traceback (most recent call last):", "  File x", "torch.distributed.elastic.errors.ChildFailedError:"]
    other = ["Traceback (most recent call last):", "  File x", "KeyError: 'loss'"]
    nccl = ["[rank1]: Traceback (most recent call last):", "[rank1]:   File x", "[rank1]: DistBackendError: NCCL error"]

    def of(lines: list[str]) -> str | None:
        return cause(replace(ended(status_reason=why, exit_code=1), lines=always(tuple(lines))))

    assert of(oom) == of([*oom, *echo]) == of([*oom, *nccl, *echo]) == "cuda-out-of-memory"
    assert of([*oom, "smaller batch", *other]) == of([*oom, *["step"] * 30]) == "exit-code"
    chained = ["During handling of the above exception, another exception occurred:", *other]
    assert of([*oom, *chained]) == "cuda-out-of-memory"
    assert of(["jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory"]) == "cuda-out-of-memory"
    assert of([]) == "exit-code"
