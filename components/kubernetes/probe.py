"""A test that a pool's GPUs work before an update ends: one job on one GPU of each pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pydantic import Field

from accel.rules.gke import drivers_daemonset as rules

from ..base import Component, Spec
from ..sdk import batch, core, meta
from .findings import enforce
from .pools import NODE_POOL, Pool, tolerations

NAME_MOST = 63 - 9
"""Kubernetes writes a job's name into a label of its pods; Pulumi appends - and eight characters."""
LEFT_S = 60

USER = 65_534
"""The user "nobody": a namespace for jobs permits root only if configured to, and nvidia-smi does not need it."""

CUDA = (
    "docker.io/nvidia/cuda:12.8.1-base-ubuntu22.04"
    "@sha256:001469ea0f3dec85a1ca929aeea3b58ae369d4c11228b10aec1f642bb6ca7a6f"
)


class DriverProbeSpec(Spec):
    """Settings of the test. A pool at 0 nodes grows by one for it, which is billed until the pool shrinks again."""

    image: str = CUDA
    command: list[str] = Field(default=["nvidia-smi", "-L"], min_length=1)
    timeout_s: int = Field(
        default=1800,
        ge=10,
        description="Maximum seconds for the node to arrive, its driver to be installed, and the command to end",
    )
    ttl_s: int | None = Field(
        default=None,
        ge=0,
        description="Seconds for which an ended job is kept; a later refresh finds it gone, and the next update "
        "runs the test again",
    )


@dataclass(frozen=True, kw_only=True)
class DriverProbeArgs:
    """The spec, the jobs' namespace, and the pools by the author's key."""

    spec: DriverProbeSpec
    namespace: pulumi.Input[str]
    pools: Mapping[str, Pool]


class DriverProbe(Component):
    """A job for each pool, which the engine waits for: the update fails where a driver does not come up in time. Until
    it works a node offers no nvidia.com/gpu, so the job is not even scheduled before. A job's name contains the pool
    and its `driver`, so that the error says both."""

    TYPE = "accel:kubernetes:DriverProbe"

    verified: pulumi.Output[list[str]]

    def __init__(self, name: str, args: DriverProbeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for key, pool in args.pools.items():
            facts = pool.facts
            enforce(rules.probe(key, gpus=facts.gpus, queued=facts.queued, field=f"pools.{key}"))
        super().__init__(name, args.spec, opts)
        jobs = [_job(_name(name, key, pool), args, pool, self.child()) for key, pool in args.pools.items()]
        keys = list(args.pools)
        self.verified = pulumi.Output.all(*[job.id for job in jobs]).apply(lambda _: keys)
        self.finish()


def _name(name: str, key: str, pool: Pool) -> str:
    return "-".join([name, key, *([pool.facts.driver] if pool.facts.driver else [])])[:NAME_MOST]


def _job(name: str, args: DriverProbeArgs, pool: Pool, opts: pulumi.ResourceOptions) -> batch.v1.Job:
    spec = args.spec
    gpu = core.TolerationArgs(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")
    return batch.v1.Job(
        name,
        metadata=meta.ObjectMetaArgs(
            namespace=args.namespace,
            # The engine's own limit is ten minutes, and a GPU node with its driver may take longer.
            annotations={"pulumi.com/timeoutSeconds": str(spec.timeout_s)},
        ),
        spec=batch.v1.JobSpecArgs(
            # Longer than the engine's limit, since a job that reaches its deadline deletes its pods with their
            # messages.
            active_deadline_seconds=spec.timeout_s + LEFT_S,
            backoff_limit=2,
            ttl_seconds_after_finished=spec.ttl_s,
            template=core.PodTemplateSpecArgs(
                spec=core.PodSpecArgs(
                    restart_policy="Never",
                    automount_service_account_token=False,
                    node_selector={NODE_POOL: pool.name},
                    tolerations=[gpu, *(each for each in tolerations(pool.facts.taints) if each.key != gpu.key)],
                    containers=[
                        core.ContainerArgs(
                            name="probe",
                            image=spec.image,
                            command=spec.command,
                            resources=core.ResourceRequirementsArgs(
                                requests={"cpu": "100m", "memory": "256Mi"},
                                limits={"nvidia.com/gpu": "1", "memory": "256Mi"},
                            ),
                            security_context=core.SecurityContextArgs(
                                allow_privilege_escalation=False,
                                capabilities=core.CapabilitiesArgs(drop=["ALL"]),
                                run_as_non_root=True,
                                run_as_user=USER,
                                seccomp_profile=core.SeccompProfileArgs(type="RuntimeDefault"),
                            ),
                        )
                    ],
                )
            ),
        ),
        opts=opts,
    )
