"""A Deployment that watches the cluster's ProvisioningRequests and ends waits for nodes that never come."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pulumi
from pydantic import Field

from ..base import Component, Spec
from ..sdk import apps, core, meta, rbac
from .health import NAMESPACE, PYTHON, system_account
from .pools import Pool, mount

SETTLE_S = 900
"""Seconds before a request is checked against the list of pools: an update lists a new pool a little later."""

_SCRIPT, _POOLS, _FOLDER = "provisioning_watch.py", "pools.json", "/etc/accel"
_NOBODY = 65534
_HOUR, _DAY = 3600, 86_400


class ProvisioningWatchdogSpec(Spec):
    """The time at which a wait for nodes ends, and how."""

    age_limit_s: int = Field(
        default=7 * _DAY,
        ge=_HOUR,
        le=90 * _DAY,
        description="Maximum age in seconds of a request that has neither succeeded nor failed",
    )
    at_limit: Literal["recreate", "give-up"] = Field(
        default="give-up",
        description="Action at the age limit; recreate: requeue the job; give-up: deactivate its workload, as a "
        "cancellation does",
    )
    most_recreations: int = Field(
        default=3,
        ge=0,
        le=100,
        description="Maximum number of requeues of one job, also for requests to pools that are gone; then give-up",
    )
    every_s: int = Field(default=60, ge=10, le=_HOUR, description="Interval between checks in seconds")
    image: str = Field(default=PYTHON, description="Container image with Python 3.9 or newer")


@dataclass(frozen=True, kw_only=True)
class ProvisioningWatchdogArgs:
    """The spec, the admission check whose requests are watched, and the cluster's pools by the author's key."""

    spec: ProvisioningWatchdogSpec
    check: pulumi.Input[str]
    pools: Mapping[str, Pool]


class ProvisioningWatchdog(Component):
    """A Deployment that ends the waits of requests for a deleted pool, and of those that are too old: the autoscaler
    leaves such a request as it is, and Kueue asks again only after one that failed. The list of pools lies in a
    ConfigMap, and a change of it takes effect without a restart. Requests of other admission checks are ignored.
    https://github.com/kubernetes/autoscaler/issues/9490"""

    TYPE = "accel:kubernetes:ProvisioningWatchdog"

    age_limit_s: pulumi.Output[int]

    def __init__(self, name: str, args: ProvisioningWatchdogArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        own = f"accel-{name}"
        script = Path(__file__).with_name(_SCRIPT).read_text(encoding="utf-8")
        names = pulumi.Output.all(**{key: pool.name for key, pool in args.pools.items()})
        config = core.ConfigMap(
            f"{name}-config",
            metadata=meta.ObjectMetaArgs(name=own, namespace=NAMESPACE),
            data={_SCRIPT: script, _POOLS: names.apply(lambda known: json.dumps(known, sort_keys=True))},
            opts=self.child(),
        )
        rules = [
            ("autoscaling.x-k8s.io", "provisioningrequests", ["list", "delete"]),
            ("kueue.x-k8s.io", "workloads", ["list", "get", "patch"]),
            ("", "podtemplates", ["get"]),
        ]
        account = system_account(
            self,
            name,
            [
                rbac.v1.PolicyRuleArgs(api_groups=[group], resources=[resource], verbs=verbs)
                for group, resource, verbs in rules
            ],
        )
        apps.v1.Deployment(
            name,
            metadata=meta.ObjectMetaArgs(name=own, namespace=NAMESPACE),
            spec=apps.v1.DeploymentSpecArgs(
                replicas=1,
                # Two at a time would count one action twice.
                strategy=apps.v1.DeploymentStrategyArgs(type="Recreate"),
                selector=meta.LabelSelectorArgs(match_labels={"app": own}),
                template=core.PodTemplateSpecArgs(
                    metadata=meta.ObjectMetaArgs(
                        labels={"app": own},
                        # A new script restarts the pods; a new list need not.
                        annotations={"accel/script": hashlib.sha256(script.encode()).hexdigest()[:12]},
                    ),
                    spec=_pod(own, args),
                ),
            ),
            opts=self.child(depends_on=[config, account]),
        )
        self.age_limit_s = pulumi.Output.from_input(args.spec.age_limit_s)
        self.finish()


def _pod(own: str, args: ProvisioningWatchdogArgs) -> core.PodSpecArgs:
    spec = args.spec
    values: dict[str, pulumi.Input[str]] = {
        "CHECK": args.check,
        "POOLS": f"{_FOLDER}/{_POOLS}",
        "EVERY_S": str(spec.every_s),
        "AGE_S": str(spec.age_limit_s),
        "SETTLE_S": str(SETTLE_S),
        "AT_LIMIT": spec.at_limit,
        "MOST": str(spec.most_recreations),
    }
    return core.PodSpecArgs(
        service_account_name=own,
        security_context=core.PodSecurityContextArgs(
            run_as_non_root=True,
            run_as_user=_NOBODY,
            run_as_group=_NOBODY,
            fs_group=_NOBODY,
            seccomp_profile=core.SeccompProfileArgs(type="RuntimeDefault"),
        ),
        volumes=[core.VolumeArgs(name="files", config_map=core.ConfigMapVolumeSourceArgs(name=own))],
        containers=[
            core.ContainerArgs(
                name="watchdog",
                image=spec.image,
                command=["python3", "-u", f"{_FOLDER}/{_SCRIPT}"],
                env=[core.EnvVarArgs(name=key, value=value) for key, value in values.items()],
                resources=core.ResourceRequirementsArgs(
                    requests={"cpu": "10m", "memory": "64Mi"}, limits={"memory": "256Mi"}
                ),
                security_context=core.SecurityContextArgs(
                    allow_privilege_escalation=False,
                    read_only_root_filesystem=True,
                    capabilities=core.CapabilitiesArgs(drop=["ALL"]),
                ),
                volume_mounts=[mount("files", _FOLDER, read_only=True)],
            )
        ],
    )
