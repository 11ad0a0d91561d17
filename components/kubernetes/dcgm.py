"""GPU metrics that GKE lacks: NVIDIA's exporter, and the part of it that Google's Managed Prometheus collects. A switch
of the cluster (monitoring component DCGM) makes GKE collect a fixed set, which is enough for most:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dcgm-metrics. This is for other fields or intervals."""

from __future__ import annotations

import hashlib
from typing import Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gke import names

from ..base import Component, Spec
from ..sdk import apiextensions, apps, core, meta
from .pools import gpu_nodes, host_volume, mount

EXPORTER = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"
_PORT = 9400
_FILE = "counters.csv"


class Counter(Spec):
    """One field that the exporter reads. https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html"""

    field: str = Field(pattern=r"^DCGM_F[IR]_[A-Z0-9_]+$")
    kind: Literal["gauge", "counter"] = "gauge"
    text: str = Field(pattern=r"^[^,\n]+$", description="Help text of the metric, without commas")


COUNTERS = [
    Counter(field="DCGM_FI_DEV_GPU_UTIL", text="GPU utilization in percent"),
    Counter(field="DCGM_FI_DEV_MEM_COPY_UTIL", text="GPU memory utilization in percent"),
    Counter(field="DCGM_FI_DEV_FB_USED", text="GPU memory used in MiB"),
    Counter(field="DCGM_FI_DEV_FB_FREE", text="GPU memory free in MiB"),
    Counter(field="DCGM_FI_DEV_POWER_USAGE", text="power drawn in W"),
    Counter(field="DCGM_FI_DEV_GPU_TEMP", text="temperature in degrees Celsius"),
    Counter(field="DCGM_FI_DEV_XID_ERRORS", text="number of the last XID error"),
    Counter(field="DCGM_FI_PROF_GR_ENGINE_ACTIVE", text="share of time that the graphics engine was active"),
    Counter(field="DCGM_FI_PROF_SM_ACTIVE", text="share of time that an SM had a warp"),
    Counter(field="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", text="share of cycles that the tensor cores were active"),
    Counter(field="DCGM_FI_PROF_DRAM_ACTIVE", text="share of cycles that the memory was read or written"),
]


class DcgmExporterSpec(Spec):
    """The measured fields, their interval, and the exporter's nodes. Time-sharing hides a pod's own part."""

    namespace: str = Field(
        default="gmp-public", description="Existing namespace; GKE creates gmp-public with Managed Prometheus"
    )
    counters: list[Counter] = Field(default=COUNTERS, min_length=1)
    interval_s: int = Field(default=30, ge=1, le=3600)
    image: str = EXPORTER

    def check(self) -> list[Finding]:
        return names.label(self.namespace, "namespace")


class DcgmExporter(Component):
    """The exporter on every GPU node, and the rule by which Managed Prometheus collects it."""

    TYPE = "accel:kubernetes:DcgmExporter"

    fields: pulumi.Output[list[str]]

    def __init__(self, name: str, spec: DcgmExporterSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        own = f"accel-{name}"
        labels = {"app.kubernetes.io/name": own}
        lines = "".join(f"{each.field}, {each.kind}, {each.text}\n" for each in spec.counters)
        # Named by its content, so that other counters are another ConfigMap, with which the pods restart.
        named = f"{own}-{hashlib.sha256(lines.encode()).hexdigest()[:12]}"
        config = core.ConfigMap(
            f"{name}-counters",
            metadata=meta.ObjectMetaArgs(name=named, namespace=spec.namespace),
            immutable=True,
            data={_FILE: lines},
            opts=self.child(),
        )
        apps.v1.DaemonSet(
            name,
            metadata=meta.ObjectMetaArgs(name=own, namespace=spec.namespace, labels=labels),
            spec=apps.v1.DaemonSetSpecArgs(
                selector=meta.LabelSelectorArgs(match_labels=labels),
                template=core.PodTemplateSpecArgs(metadata=meta.ObjectMetaArgs(labels=labels), spec=_pod(spec, named)),
            ),
            opts=self.child(depends_on=[config]),
        )
        apiextensions.CustomResource(
            f"{name}-monitoring",
            api_version="monitoring.googleapis.com/v1",
            kind="PodMonitoring",
            metadata=meta.ObjectMetaArgs(name=own, namespace=spec.namespace),
            spec={
                "selector": {"matchLabels": labels},
                "endpoints": [{"port": "metrics", "interval": f"{spec.interval_s}s"}],
                "targetLabels": {"metadata": ["pod", "container", "node"]},
            },
            opts=self.child(),
        )
        self.fields = pulumi.Output.from_input([each.field for each in spec.counters])
        self.finish()


def _pod(spec: DcgmExporterSpec, config: str) -> core.PodSpecArgs:
    environment = {
        "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64",
        "DCGM_EXPORTER_LISTEN": f":{_PORT}",
        "DCGM_EXPORTER_COLLECTORS": f"/etc/dcgm-exporter/{_FILE}",
        "DCGM_EXPORTER_INTERVAL": str(spec.interval_s * 1000),
        "DCGM_EXPORTER_KUBERNETES": "true",
        # GKE's device plugin names devices nvidia0 and so on, not by their UUIDs.
        "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE": "device-name",
    }
    return core.PodSpecArgs(
        automount_service_account_token=False,
        affinity=gpu_nodes(),
        tolerations=[core.TolerationArgs(operator="Exists")],
        volumes=[
            core.VolumeArgs(name="counters", config_map=core.ConfigMapVolumeSourceArgs(name=config)),
            host_volume("nvidia", "/home/kubernetes/bin/nvidia"),
            host_volume("pod-resources", "/var/lib/kubelet/pod-resources"),
        ],
        containers=[
            core.ContainerArgs(
                name="dcgm-exporter",
                image=spec.image,
                env=[core.EnvVarArgs(name=key, value=value) for key, value in environment.items()],
                ports=[core.ContainerPortArgs(name="metrics", container_port=_PORT)],
                resources=core.ResourceRequirementsArgs(
                    requests={"cpu": "100m", "memory": "256Mi"}, limits={"memory": "512Mi"}
                ),
                # GKE assigns GPU devices to a pod that requests one, which this pod must not; privileged, it sees them
                # all.
                security_context=core.SecurityContextArgs(privileged=True),
                volume_mounts=[
                    mount("counters", "/etc/dcgm-exporter", read_only=True),
                    mount("nvidia", "/usr/local/nvidia", read_only=True),
                    mount("pod-resources", "/var/lib/kubelet/pod-resources", read_only=True),
                ],
            )
        ],
    )
