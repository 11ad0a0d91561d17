"""The Google Cloud section of an environment as components."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from accel.contract import google_jobs as contract
from accel.contract.targets import write
from components.aws.stop_hooks import join_hooks
from components.gcp.batch_jobs import TAG, BatchJobs, BatchJobsArgs
from components.gcp.batch_template import BatchTemplate, BatchTemplateArgs
from components.gcp.claim_database import ClaimDatabase, ClaimDatabaseArgs
from components.gcp.image_repository import ImageRepository, ImageRepositoryArgs
from components.gcp.job_notifications import JobNotifications, JobNotificationsArgs
from components.gcp.persistent_resource import PersistentResource, PersistentResourceArgs
from components.gcp.stop_hooks import StopHooks
from components.gcp.tensorboard import Tensorboard, TensorboardArgs
from components.gcp.vertex_jobs import VertexJobs, VertexJobsArgs
from components.gcp.vm_jobs import BucketTargets, BucketTargetsArgs, BucketTargetsSpec

from ..allowances import Spending
from ..config import Environment
from ..export_model import promise_output
from ..gke import workloads
from . import budgets, cluster, outputs, services, vms
from .config import Gcp
from .jobs_config import (
    AttachedNetwork,
    CreatedClaims,
    CreatedTensorboard,
    ExistingClaims,
    ExistingTensorboard,
    GoogleBatch,
    PeeredNetwork,
    Vertex,
)
from .network import ClusterNetwork
from .providers import gcp_provider, labels

_Targets = dict[str, pulumi.Output[dict[str, Any]]]
_Wired = Mapping[str, pulumi.Input[Any]]


def deploy(
    environment: Environment,
    section: Gcp,
    hooks: pulumi.ResourceHookBinding,
    queue_hooks: Sequence[pulumi.ResourceHookBinding],
    stop_hooks: StopHooks,
    pay: Spending,
) -> _Targets:
    """Export what other stacks need. Return the targets of jobs by name."""
    apis = services.deploy(environment, section)
    on_gcp = pulumi.ResourceOptions(providers=[gcp_provider(environment, section, after=apis)])
    stop = budgets.stopping(section, stop_hooks, on_gcp)
    if stop:
        stop_hooks.where = stop.stop
        hooks, *queue_hooks = (join_hooks(stop_hooks.binding, each) for each in (hooks, *queue_hooks))
    context = cluster.deploy(environment, section, hooks, on_gcp)
    outputs.export_accounts(context.emails)
    wired = {**budgets.stop_of(stop), **pay.on_gcp(section, on_gcp)}
    targets = vms.deploy(section, context.place, labels(environment), queue_hooks, on_gcp, wired, stop)
    targets |= _deploy_jobs(section, context.place, labels(environment), on_gcp, wired)
    if context.cluster is not None and section.cluster is not None:
        outputs.export_clusters({section.cluster.key: context.cluster})
        targets |= workloads.deploy(section, section.cluster, context, context.cluster, stop, wired, on_gcp)
    budgets.deploy(environment, section, apis, stop, context.cluster, context.accelerated_pools)
    return targets


def _deploy_jobs(
    section: Gcp,
    place: ClusterNetwork | None,
    labels: Mapping[str, str],
    on_gcp: pulumi.ResourceOptions,
    wired: _Wired,
) -> _Targets:
    _deploy_images(section, on_gcp)
    targets: _Targets = {}
    if section.batch is not None:
        assert place is not None  # the section was checked for it
        targets |= _deploy_batch(section, section.batch, place, labels, on_gcp, wired)
    if section.vertex is not None:
        targets |= _deploy_vertex(section, section.vertex, labels, on_gcp, wired)
    return targets


def _deploy_images(section: Gcp, on_gcp: pulumi.ResourceOptions) -> None:
    """Export `gcp_repositories`: the paths that images are pushed to, by key."""
    made = {
        key: ImageRepository(
            key, ImageRepositoryArgs(spec=spec, project=section.project, region=section.region), on_gcp
        ).url
        for key, spec in section.images.items()
    }
    if made:
        pulumi.export("gcp_repositories", made)


def _deploy_batch(
    section: Gcp,
    spec: GoogleBatch,
    place: ClusterNetwork,
    labels: Mapping[str, str],
    on_gcp: pulumi.ResourceOptions,
    wired: _Wired,
) -> _Targets:
    """Export `batch_targets`; return the targets by name. `wired`: further values for every target."""
    project, region = section.project, section.region
    ground = BatchJobs(
        "batch", BatchJobsArgs(spec=spec.ground, project=project, region=region, network=place.network), on_gcp
    )
    wired = {**wired, "network": place.network, **_of(ground)}
    if spec.notifications is not None:
        told = JobNotificationsArgs(spec=spec.notifications, project=project, publisher=ground.member)
        wired["notifications"] = JobNotifications("batch-states", told, on_gcp).topic
    template: _Wired = {}
    if spec.template is not None:
        args = BatchTemplateArgs(
            spec=spec.template,
            project=project,
            network=place.network,
            subnetwork=place.subnetwork_in(region),
            service_account=ground.service_account,
        )
        template = {"instance_template": BatchTemplate("batch-template", args, on_gcp).template}
    targets: _Targets = {}
    for name, one in spec.targets.items():
        here = one.region or region
        said = {
            **one.model_dump(exclude={"region", "template"}),
            "project": project,
            "region": here,
            "labels": dict(labels),
            "tags": [TAG],
        }
        own = {**wired, "subnetwork": place.subnetwork_in(here), **(template if one.template else {})}
        targets[name] = _target(name, contract.GoogleBatchTarget, said, own)
    return _published("batch", ground.bucket, targets, on_gcp)


def _deploy_vertex(
    section: Gcp, spec: Vertex, labels: Mapping[str, str], on_gcp: pulumi.ResourceOptions, more: _Wired
) -> _Targets:
    """Export `vertex_targets`; return the targets by name. `more`: further values for every target."""
    project, region = section.project, section.region
    args = VertexJobsArgs(spec=spec.ground, project=project, region=region, tensorboard=spec.tensorboard is not None)
    ground = VertexJobs("vertex", args, on_gcp)
    reached = _reached(spec)
    wired = {**more, **_of(ground), **reached, **_tensorboard(section, spec, on_gcp), **_claims(section, spec, on_gcp)}
    kept = {
        key: PersistentResource(
            key, PersistentResourceArgs(spec=one, project=project, region=region, **reached), on_gcp
        ).id
        for key, one in spec.persistent_resources.items()
    }
    targets: _Targets = {}
    for name, one in spec.targets.items():
        said = {
            **one.model_dump(exclude={"persistent_resource"}),
            "project": project,
            "region": region,
            "labels": dict(labels),
        }
        own: dict[str, pulumi.Input[Any]] = {}
        if one.persistent_resource:
            own = {"persistent_resource": kept[one.persistent_resource]}
            pools = spec.persistent_resources[one.persistent_resource].pools.values()
            said["persistent_machines"] = list(dict.fromkeys(pool.key for pool in pools))
        targets[name] = _target(name, contract.VertexTarget, said, {**wired, **own})
    return _published("vertex", ground.bucket, targets, on_gcp)


def _of(ground: BatchJobs | VertexJobs) -> _Wired:
    return {"service_account": ground.service_account, "bucket": ground.bucket}


def _reached(spec: Vertex) -> dict[str, str]:
    match spec.network:
        case None:
            return {}
        case PeeredNetwork() as peered:
            return {"network": peered.network}
        case AttachedNetwork() as attached:
            return {"network_attachment": attached.network_attachment}


def _tensorboard(section: Gcp, spec: Vertex, on_gcp: pulumi.ResourceOptions) -> _Wired:
    match spec.tensorboard:
        case None:
            return {}
        case CreatedTensorboard() as given:
            args = TensorboardArgs(spec=given, project=section.project, region=section.region)
            return {"tensorboard": Tensorboard("vertex-metrics", args, on_gcp).name}
        case ExistingTensorboard() as there:
            return {"tensorboard": there.name}


def _claims(section: Gcp, spec: Vertex, on_gcp: pulumi.ResourceOptions) -> _Wired:
    match spec.claims:
        case None:
            return {}
        case CreatedClaims() as given:
            args = ClaimDatabaseArgs(spec=given, project=section.project, region=section.region)
            return {"claims": ClaimDatabase("vertex-claims", args, on_gcp).database}
        case ExistingClaims() as there:
            return {"claims": f"projects/{section.project}/databases/{there.database}"}


def _target(
    name: str,
    kind: type[contract.GoogleBatchTarget] | type[contract.VertexTarget],
    said: Mapping[str, Any],
    wired: _Wired,
) -> pulumi.Output[dict[str, Any]]:
    return promise_output(pulumi.Output.all(**wired), lambda known: write({name: kind(**said, **known)})[name])


def _published(part: str, bucket: pulumi.Output[str], targets: _Targets, on_gcp: pulumi.ResourceOptions) -> _Targets:
    """Publish the targets where `jobs` reads them without Pulumi, and export that location."""
    if targets:
        texts = {
            name: target.apply(lambda value: json.dumps(value, sort_keys=True)) for name, target in targets.items()
        }
        args = BucketTargetsArgs(spec=BucketTargetsSpec(), bucket=bucket, targets=texts)
        pulumi.export(f"{part}_targets", BucketTargets(f"{part}-targets", args, on_gcp).source)
    return targets
