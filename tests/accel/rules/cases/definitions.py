"""Queues, job definitions, sizes and retries."""

from accel.rules import Finding
from accel.rules.aws import definitions, fit, keys, queues, retries, secrets

from .case import Case

_LOOSE_RETRY = {"action": "RETRY", "on_status_reason": "Host EC2*"}
_LAST = {"action": "EXIT", "on_reason": "*"}
_CAPACITY = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"

_TWO = {"train": fit.Size(4, 8000, 4), "big": fit.Size(4, 8000, 8)}


def _limit(*, max_time_s: int = 600, reason: str = _CAPACITY) -> list[Finding]:
    return queues.time_limit(reason=reason, max_time_s=max_time_s)


QUEUES = [
    Case(
        "aws.queue.environment-count", "environments", ("4 environments", "1 to 3"), "several queues",
        lambda: queues.queue(environments=["a", "b", "c", "d"], priority=1),
        lambda: queues.queue(environments=["a", "b", "c"], priority=1),
    ),
    Case(
        "aws.queue.duplicate-environment", "environments[1]", ('"spot" a second time',), "once",
        lambda: queues.queue(environments=["spot", "spot"], priority=1),
        lambda: queues.queue(environments=["spot", "spot2"], priority=1),
    ),
    Case(
        "aws.queue.unnamed-environment", "environments", ("is in no queue (gpu)",), "leave it out",
        lambda: queues.queue_membership("spot", {"gpu": ["steady"]}),
        lambda: queues.queue_membership("spot", {"cpu": [], "gpu": ["steady", "spot"]}),
    ),
    Case(
        "aws.queue.mixed-architecture", "environments", ("x86_64 (a)", "arm64 (b)"), "queue for each",
        lambda: queues.architectures({"a": ["g5"], "b": ["g5g"]}),
        lambda: queues.architectures({"a": ["g5"], "b": ["p4d"]}),
    ),
    Case(
        "aws.queue.priority", "priority", ("at least 0", "is -1"), "higher",
        lambda: queues.queue(environments=["a"], priority=-1),
        lambda: queues.queue(environments=["a"], priority=0),
    ),
    Case(
        "aws.queue.time-limit-seconds", "time_limit.max_time_s", ("600 to 86400", "is 599"), "write 600",
        lambda: _limit(max_time_s=599), lambda: _limit(max_time_s=600) + _limit(max_time_s=86_400),
    ),
    Case(
        "aws.queue.time-limit-reason", "time_limit.reason", ("JOB_RESOURCE_REQUIREMENTS",),
        "use MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
        lambda: _limit(reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENTS"),
        lambda: _limit(reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"),
    ),
]  # fmt: skip

DEFINITIONS = [
    Case(
        "aws.definition.gpus", "gpus", ("whole number", "is 0.5"), "shares none",
        lambda: definitions.size(vcpus=4, memory_mib=8000, gpus=0.5, shm_mib=2048),
        lambda: definitions.size(vcpus=4, memory_mib=8000, gpus=1, shm_mib=2048),
    ),
    Case(
        "aws.definition.fargate", "platform", ('"FARGATE_SPOT"', "no GPUs"), "use EC2",
        lambda: definitions.size(vcpus=4, memory_mib=8000, platform="FARGATE_SPOT"),
        lambda: definitions.size(vcpus=4, memory_mib=8000, platform="EC2"),
    ),
    Case(
        "aws.definition.vcpus", "vcpus", ("whole number", "is 0.25"), "1 or more",
        lambda: definitions.size(vcpus=0.25, memory_mib=8000),
        lambda: definitions.size(vcpus=1, memory_mib=8000),
    ),
    Case(
        "aws.definition.memory", "memory_mib", ("at least 4 MiB", "is 3"), "in MiB",
        lambda: definitions.size(vcpus=1, memory_mib=3),
        lambda: definitions.size(vcpus=1, memory_mib=4),
    ),
    Case(
        "aws.definition.shm-small", "shm_mib", ("is 2047 MiB", "bus error"), "at least 2048",
        lambda: definitions.size(vcpus=4, memory_mib=8000, gpus=1, shm_mib=2047),
        lambda: definitions.size(vcpus=4, memory_mib=8000, gpus=1, shm_mib=2048),
    ),
    Case(
        "aws.definition.shm-over-memory", "shm_mib", ("is 8001 MiB", "memory_mib 8000"), "at most 8000",
        lambda: definitions.size(vcpus=4, memory_mib=8000, gpus=1, shm_mib=8001),
        lambda: definitions.size(vcpus=4, memory_mib=8000, gpus=1, shm_mib=8000),
    ),
    Case(
        "aws.definition.multi-node-on-spot", "nodes", ("is 2", "SPOT"), "EC2 environments only",
        lambda: definitions.multi_node(2, ["EC2", "SPOT"]),
        lambda: definitions.multi_node(1, ["SPOT"]),
    ),
    Case(
        "aws.fit.none", "memory_mib", ("8 vCPUs, 32768 MiB and 1 GPUs", "g5.2xlarge has 32768 MiB",
        "about 30146"),
        "ask for at most 30000 MiB to fit g5.2xlarge",
        lambda: fit.fit(8, 32768, 1, ["g5.xlarge", "g5.2xlarge"]),
        lambda: fit.fit(8, 30000, 1, ["g5.xlarge", "g5.2xlarge"]),
    ),
    Case(
        "aws.fit.too-many-gpus", "gpus", ("is 8", "more than 4"), "p4d.24xlarge",
        lambda: fit.fit(32, 131072, 8, ["g5.12xlarge", "g6.xlarge"]),
        lambda: fit.fit(32, 131072, 4, ["g5.12xlarge", "g6.xlarge"]),
    ),
    Case(
        "aws.fit.tight", "memory_mib", ("is 31000", "30146 to 32276", "AMI"), "ask for at most 30000 MiB",
        lambda: fit.fit(8, 31000, 1, ["g5.2xlarge"]), lambda: fit.fit(8, 30146, 1, ["g5.2xlarge"]),
    ),
    Case(
        "aws.fit.head-room", "memory_mib", ("is 32768", "g5.2xlarge, g6.2xlarge", "g5.4xlarge or larger"),
        "ask for at most 30000 MiB",
        lambda: fit.fit(8, 32768, 1, ["g5", "g6"]), lambda: fit.fit(8, 30000, 1, ["g5", "g6"]),
    ),
    Case(
        "aws.fit.idle-gpus", "gpus", ("is 1", "p4d.24xlarge", "has 8"), "7 GPUs are idle",
        lambda: fit.fit(8, 60000, 1, ["p4d"]), lambda: fit.fit(8, 60000, 1, ["p4d", "g5.8xlarge"]),
    ),
    Case(
        "aws.fit.over-max", "memory_mib", ("8 vCPUs, 60000 MiB and 1 GPUs", "max_vcpus is 8, g5.4xlarge has 16"),
        "raise max_vcpus of spot to at least 16, or ask for at most 30000 MiB to fit g5.2xlarge",
        lambda: fit.placement(fit.Size(8, 60000, 1), [fit.QueueEnvironment("spot", ["g5"], 8)]),
        lambda: fit.placement(fit.Size(8, 60000, 1), [fit.QueueEnvironment("spot", ["g5"], 16)]),
    ),
    Case(
        "aws.fit.unserved-queue", "environments", ("none of the definitions", "train: gpus is 4", "big: gpus is 8"),
        "an environment that holds one",
        lambda: fit.unserved_queue(_TWO, [fit.QueueEnvironment("spot", ["g5.xlarge"], 64)]),
        lambda: fit.unserved_queue(_TWO, [fit.QueueEnvironment("spot", ["g5.12xlarge"], 64)]),
    ),
    Case(
        "aws.retry.attempts", "attempts", ("1 to 10", "is 11"), "write 10",
        lambda: retries.retries(11), lambda: retries.retries(10),
    ),
    Case(
        "aws.retry.rule-count", "evaluate_on_exit", ("6 rules", "5"), "join patterns",
        lambda: retries.retries(3, [_LOOSE_RETRY] * 5 + [_LAST]),
        lambda: retries.retries(3, [_LOOSE_RETRY] * 4 + [_LAST]),
    ),
    Case(
        "aws.retry.needs-attempts", "attempts", ("is missing",), "number of attempts",
        lambda: retries.retries(None, [_LAST]), lambda: retries.retries(1, [_LAST]),
    ),
    Case(
        "aws.retry.condition", "evaluate_on_exit[0].on_reason", ('"*lost*"', "* at the end"), "cut it",
        lambda: retries.retries(3, [{"action": "RETRY", "on_reason": "*lost*"}, _LAST]),
        lambda: retries.retries(3, [{"action": "retry", "on_reason": "Lost: a.b c*"}, _LAST]),
    ),
    Case(
        "aws.retry.no-catch-all", "evaluate_on_exit", ("no last rule", "is retried"), "action: EXIT",
        lambda: retries.retries(3, [_LAST, _LOOSE_RETRY]),
        lambda: retries.retries(3, [_LOOSE_RETRY, _LAST]),
    ),
    Case(
        "aws.retry.one-count", "lost_retries", ("4 and 2 retries", "at most 6"), "retries: 0",
        lambda: retries.counts(2, 4), lambda: [*retries.counts(0, 4), *retries.counts(9, None)],
    ),
    Case(
        "aws.retry.timeout", "timeout_s", ("at least 60", "is 59"), "write 60",
        lambda: retries.timeout(59), lambda: retries.timeout(60),
    ),
]  # fmt: skip

_SECRET = "arn:aws:secretsmanager:us-east-1:210020003000:secret:wandb-AbCdEf"

SECRETS = [
    Case(
        "aws.secrets.reference", "secrets.KEY",
        ("wandb-AbCdEf:key", "is no :<JSON key>"), ":<JSON key>::",
        lambda: secrets.references({"secrets.KEY": f"{_SECRET}:key"}),
        lambda: secrets.references(
            {"a": _SECRET, "b": f"{_SECRET}:key::", "c": f"{_SECRET}::AWSPREVIOUS:", "d": "/by/name",
             "e": "arn:aws:ssm:us-east-1:210020003000:parameter/key", "f": "arn:aws:ssm:us-east-1:1:parameter/key:3"}
        ),
    ),
]  # fmt: skip

_KEY = "arn:aws:kms:us-east-1:210020003000:key/1b2c"

KEYS = [
    Case(
        "aws.kms.key", "kms_key_arns[1]", ("alias/mine", "not the ARN of a key"), ":key/<id>",
        lambda: keys.keys("kms_key_arns", [_KEY, "arn:aws:kms:us-east-1:210020003000:alias/mine"]),
        lambda: keys.keys("kms_key_arns", [_KEY, _KEY.replace("aws:", "aws-eusc:", 1)]),
    ),
    Case(
        "aws.kms.volumes", "kms_key_arn", ("key of your own",), "AWSServiceRoleForAutoScaling",
        lambda: keys.volumes("kms_key_arn", _KEY), lambda: keys.volumes("kms_key_arn", None),
    ),
    Case(
        "aws.kms.logs", "kms_key_arn", ("key of your own",), "logs.us-east-1.amazonaws.com",
        lambda: keys.logs("kms_key_arn", _KEY), lambda: keys.logs("kms_key_arn", None),
    ),
]  # fmt: skip

CASES = QUEUES + DEFINITIONS + SECRETS + KEYS
