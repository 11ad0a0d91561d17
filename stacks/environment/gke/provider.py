"""The explicit provider of a GKE cluster, for what a stack puts into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from accel.contract.gke import GkeCluster

from ..export_model import promised

if TYPE_CHECKING:
    import pulumi_kubernetes as kubernetes


def kubernetes_provider(
    name: str, cluster: pulumi.Output[GkeCluster], opts: pulumi.ResourceOptions | None = None
) -> kubernetes.Provider:
    """The provider of a cluster's API, for what the stack puts into the cluster.

    Another cluster (its name is made up anew when it is replaced) is another provider, whose resources are all made
    again there, before the old cluster goes. A new address or certificate of the same cluster is an update.
    """
    # Imported here: a stack without workloads never imports pulumi_kubernetes.
    import pulumi_kubernetes as kubernetes

    return kubernetes.Provider(
        name,
        kubeconfig=kubeconfig(cluster),
        # Left to itself the provider takes each change of the kubeconfig for another cluster.
        cluster_identifier=promised(cluster, lambda one: f"{one.project}/{one.location}/{one.name}"),
        enable_server_side_apply=True,
        # Else a change deletes a ConfigMap and makes it anew, and whoever reads targets finds none for a moment.
        enable_config_map_mutable=True,
        opts=opts,
    )


def kubeconfig(cluster: pulumi.Output[GkeCluster]) -> pulumi.Output[str]:
    """A kubeconfig without a secret: gke-gcloud-auth-plugin, on PATH, hands over the credentials of whoever uses it.

    Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl
    """
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "gke-gcloud-auth-plugin",
            "installHint": "install it: gcloud components install gke-gcloud-auth-plugin",
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
    }
    server = {
        "server": promised(cluster, lambda one: f"https://{one.endpoint}"),
        "certificate-authority-data": promised(cluster, lambda one: one.ca_certificate),
    }
    return pulumi.Output.json_dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "cluster",
            "clusters": [{"name": "cluster", "cluster": server}],
            "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "user"}}],
            "users": [{"name": "user", "user": user}],
        }
    )
