"""One maker for each component: what the laws run over."""

from collections.abc import Callable, Iterator
from functools import cache

import pulumi

from accel.budget.spending import Limit
from components.aws.adoption import AdoptedEnvironment
from components.aws.batch_roles import BatchRoles, BatchRolesArgs, BatchRolesSpec
from components.aws.budget import Budget, BudgetSpec
from components.aws.budget_stop import BudgetStop, BudgetStopArgs, BudgetStopSpec
from components.aws.claim_table import ClaimTable, ClaimTableSpec
from components.aws.code_bucket import CodeBucket, CodeBucketSpec
from components.aws.compute_environment import (
    ComputeEnvironment,
    ComputeEnvironmentArgs,
    OnDemandSpec,
    SpotSpec,
)
from components.aws.image_repository import ImageRepository, ImageRepositorySpec
from components.aws.job_definition import JobDefinition, JobDefinitionArgs, JobDefinitionSpec
from components.aws.job_log import JobLog, JobLogSpec
from components.aws.job_queue import FairShare, JobQueue, JobQueueArgs, JobQueueSpec
from components.aws.launch_template import LaunchTemplate, LaunchTemplateArgs, LaunchTemplateSpec
from components.aws.monitoring import Monitoring, MonitoringArgs, MonitoringSpec
from components.aws.network import Network, NetworkArgs, NetworkSpec
from components.aws.published_targets import PublishedTargets, PublishedTargetsArgs, PublishedTargetsSpec
from components.aws.spend_ledger import SpendLedger, SpendLedgerSpec
from components.aws.submit_policy import SubmitPolicy, SubmitPolicyArgs, SubmitPolicySpec
from components.base import Component
from components.gcp.cpu_pool import CpuPool, CpuPoolArgs, CpuPoolSpec
from components.gcp.gpu_pool import GpuPool, GpuPoolArgs, GpuPoolSpec
from components.gcp.tpu_pool import TpuPool, TpuPoolArgs, TpuPoolSpec
from tests.components.gcp import budget_makers as google_budgets
from tests.components.gcp import capacity_makers as google_capacity
from tests.components.gcp import job_makers as google_jobs
from tests.components.gcp import makers as google
from tests.components.gcp import vm_makers as google_vms
from tests.components.kubernetes.makers import MAKERS as IN_CLUSTERS
from tests.support import memory

QUEUE = "arn:aws:batch:us-east-1:111122223333:job-queue/gpu"
SECRET = "arn:aws:secretsmanager:us-east-1:210020003000:secret:wandb-AbCdEf"


def out(value: str) -> pulumi.Output[str]:
    """A wired value, as another resource would hand it over."""
    return pulumi.Output.from_input(value)


ADOPTED = AdoptedEnvironment(name="by_hand", tags={"cost-centre": "42"}, keeps=["launch_template", "instance_tags"])


def environment(name: str, spec: OnDemandSpec | SpotSpec) -> ComputeEnvironment:
    args = ComputeEnvironmentArgs(
        spec=spec,
        region="us-east-1",
        hooks=None,
        vpc_id=out("vpc-0a1b2c3d4e5f60718"),
        subnet_ids=pulumi.Output.all(out("subnet-0a1b2c3d4e5f60718")),
        security_group_ids=pulumi.Output.all(out("sg-0a1b2c3d4e5f60718")),
        instance_profile_arn=out("arn:aws:iam::111122223333:instance-profile/batch"),
        tags={"accel:owner": "ml"},
    )
    return ComputeEnvironment(name, args)


def network(name: str, egress: str) -> Network:
    spec = NetworkSpec.model_validate({"zones": ["us-east-1a", "us-east-1b"], "egress": egress})
    return Network(name, NetworkArgs(spec=spec, region="us-east-1"))


def definition(name: str) -> JobDefinition:
    spec = JobDefinitionSpec(image="repo/train:1", vcpus=4, memory_mib=14_000, secrets={"WANDB_KEY": SECRET})
    args = JobDefinitionArgs(
        spec=spec,
        region="us-east-1",
        log_group=out("jobs"),
        job_role_arn=out("arn:aws:iam::111122223333:role/job"),
        execution_role_arn=out("arn:aws:iam::111122223333:role/execution"),
    )
    return JobDefinition(name, args)


def roles(name: str) -> BatchRoles:
    spec = BatchRolesSpec(read_buckets=["data"], write_buckets=["models"], secrets=[SECRET])
    return BatchRoles(name, BatchRolesArgs(spec=spec, log_group_arn=out("arn:log"), repository_arns=[out("arn:ecr")]))


def queue(name: str, fair_share: FairShare | None = None) -> JobQueue:
    spec = JobQueueSpec(environments=["spot", "fallback"], fair_share=fair_share)
    return JobQueue(name, JobQueueArgs(spec=spec, environment_arns={"spot": out("arn:1"), "fallback": out("arn:2")}))


def monitoring(name: str, spec: MonitoringSpec) -> Monitoring:
    args = MonitoringArgs(
        spec=spec,
        region="us-east-1",
        prefix=f"accel-{name}",
        namespace=f"accel/{name}",
        queue_arns={"gpu": out(QUEUE)},
        cluster_arns={"spot": out("arn:aws:ecs:us-east-1:111122223333:cluster/spot_Batch_1")},
        gpu_namespaces={"spot": f"accel/{name}/spot"} if spec.gpu_metrics else {},
    )
    return Monitoring(name, args)


def budget(name: str, **changed: object) -> Budget:
    values = {"amount": 1000, "recipients": {"emails": ["ml@company.com"]}, **changed}
    return Budget(name, BudgetSpec.model_validate(values))


def budget_stop(name: str) -> BudgetStop:
    args = BudgetStopArgs(
        spec=BudgetStopSpec(),
        region="us-east-1",
        limits={"gpus": Limit("gpus", 1.0, "actual", 3600)},
        budget_names={"gpus": out("gpus-1a2b3c4")},
        budget_topic_arns={"gpus": out("arn:aws:sns:us-east-1:111122223333:gpus")},
        queue_arns={"gpu": out(QUEUE)},
        environment_arns={"spot": out("arn:aws:batch:us-east-1:111122223333:compute-environment/spot")},
        claim_table=out("claims"),
        claim_table_arn=out("arn:aws:dynamodb:us-east-1:111122223333:table/claims"),
        emails=["ml@company.com"],
        topic_arns=["arn:aws:sns:us-east-1:111122223333:mine"],
    )
    return BudgetStop(name, args)


def published(name: str) -> PublishedTargets:
    spec = PublishedTargetsSpec(path=f"/accel/{name}/targets")
    return PublishedTargets(name, PublishedTargetsArgs(spec=spec, targets={"gpu": out("{}")}))


def submit_policy(name: str, definitions: int = 1, claims: bool = True, definition: str = "train") -> SubmitPolicy:
    batch = "arn:aws:batch:us-east-1:111122223333"
    args = SubmitPolicyArgs(
        spec=SubmitPolicySpec(definition_prefix=f"accel-{name}", targets_path=f"/accel/{name}/targets"),
        region="us-east-1",
        queue_arns=[out(QUEUE)],
        definition_arns=[out(f"{batch}:job-definition/{definition}-{i:07}") for i in range(definitions)],
        role_arns=[out("arn:aws:iam::111122223333:role/job"), out("arn:aws:iam::111122223333:role/execution")],
        log_group_arn=out("arn:aws:logs:us-east-1:111122223333:log-group:jobs"),
        claim_table_arn=out("arn:aws:dynamodb:us-east-1:111122223333:table/claims") if claims else None,
        ledger_arn=out("arn:aws:dynamodb:us-east-1:111122223333:table/allowances") if claims else None,
        code_bucket_arn=out("arn:aws:s3:::code-1a2b3c4") if claims else None,
        code_arn=out("arn:aws:s3:::code-1a2b3c4/accel-jobs/code/*") if claims else None,
    )
    return SubmitPolicy(name, args)


POOL = {"cluster": "ml", "location": "us-central1", "zones": ["us-central1-a"]}


def cpu_pool(name: str) -> CpuPool:
    return CpuPool(name, CpuPoolArgs(spec=CpuPoolSpec(max_nodes=3), service_account=out("nodes@p"), **POOL))


def gpu_pool(name: str) -> GpuPool:
    spec = GpuPoolSpec(machine_type="g2-standard-8", max_nodes=4, capacity="spot")
    return GpuPool(name, GpuPoolArgs(spec=spec, service_account=out("nodes@p"), **POOL))


def tpu_pool(name: str) -> TpuPool:
    spec = TpuPoolSpec(machine_type="ct5lp-hightpu-4t", topology="4x4")
    return TpuPool(name, TpuPoolArgs(spec=spec, service_account=out("nodes@p"), **POOL))


MAKERS: dict[str, Callable[[str], Component]] = {
    "gcp-network": google.network,
    "gcp-node-account": google.node_account,
    "gcp-workload-account": google.workload_account,
    "gke-cluster": google.cluster,
    "gke-cluster-peered": lambda name: google.cluster(name, control_plane_cidr="172.16.0.0/28"),
    "gke-cpu-pool": cpu_pool,
    "gke-gpu-pool": gpu_pool,
    "gke-tpu-pool": tpu_pool,
    **google_vms.MAKERS,
    **google_capacity.MAKERS,
    **google_jobs.MAKERS,
    **google_budgets.MAKERS,
    **{f"in-cluster-{key}": maker for key, maker in IN_CLUSTERS.items()},
    "batch-roles": roles,
    "budget": budget,
    "budget-that-stops": lambda name: budget(
        name, stop={"at": 1.2}, credits=False, filters={"tags": {"accel:stack": ["prod"]}}
    ),
    "budget-stop": budget_stop,
    "claim-table": lambda name: ClaimTable(name, ClaimTableSpec()),
    "code-bucket": lambda name: CodeBucket(name, CodeBucketSpec()),
    "spend-ledger": lambda name: SpendLedger(name, SpendLedgerSpec()),
    "compute-environment": lambda name: environment(name, OnDemandSpec(instance_types=["g5"], max_vcpus=64)),
    "compute-environment-cluster": lambda name: environment(
        name, OnDemandSpec(instance_types=["p4d.24xlarge"], max_vcpus=192, placement="cluster", efa=True)
    ),
    "compute-environment-adopted": lambda name: environment(
        name, OnDemandSpec(instance_types=["g5"], max_vcpus=64, adopted=ADOPTED)
    ),
    "compute-environment-spot": lambda name: environment(
        name, SpotSpec(capacity="spot", instance_types=["g6"], max_vcpus=64)
    ),
    "image-repository": lambda name: ImageRepository(name, ImageRepositorySpec()),
    "job-definition": definition,
    "job-log": lambda name: JobLog(name, JobLogSpec()),
    "job-queue": queue,
    "job-queue-fair": lambda name: queue(name, FairShare(shares={"research": 0.5, "team*": 2.0}, decay_s=3600)),
    "launch-template": lambda name: LaunchTemplate(name, LaunchTemplateArgs(spec=LaunchTemplateSpec())),
    "monitoring": lambda name: monitoring(name, MonitoringSpec(emails=["ml@company.com"], gpu_metrics=True)),
    "monitoring-quiet": lambda name: monitoring(
        name, MonitoringSpec(job_states=[], blocked_queues=False, failed_jobs=None, waiting_jobs=None)
    ),
    "network": lambda name: network(name, "nat"),
    "network-closed": lambda name: network(name, "endpoints"),
    "network-nat-per-zone": lambda name: network(name, "nat-per-zone"),
    "published-targets": published,
    "submit-policy": submit_policy,
    "submit-policy-many": lambda name: submit_policy(name, definitions=40, claims=False),
}


@cache
def alone(make: Callable[[str], Component]) -> tuple[Component, memory.Recorder]:
    """A component in a stack of its own, and what an update registered: once for all laws that only read it."""
    made: list[Component] = []
    seen = memory.run(lambda: made.append(make("one")))
    return made[0], seen


def subclasses(component: type[Component] = Component) -> Iterator[type[Component]]:
    """Every component class of the project."""
    for direct in component.__subclasses__():
        if direct.__module__.startswith("components."):
            yield direct
        yield from subclasses(direct)
