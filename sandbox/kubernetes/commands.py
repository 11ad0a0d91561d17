"""How each command of the control plane is started, and the files that it reads."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..google import UNIQUE_ID, scoped
from . import bootstrap
from .certificates import Certificates
from .tunnel import CIDR, SOCKET

USER = "sandbox"
_STAGES = Path(__file__).parent / "stages.yaml"


@dataclass(frozen=True)
class Layout:
    """Where a control plane has its files, its ports on 127.0.0.1 (see PORTS), its keys, and the token of its user."""

    folder: Path
    ports: Mapping[str, int]
    certificates: Certificates
    token: str

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.ports['api']}"

    @property
    def url(self) -> str:
        return f"https://{self.endpoint}"

    def kubeconfig(self) -> str:
        """The text of a kubeconfig for the one user."""
        cluster = {"server": self.url, "certificate-authority-data": bootstrap.ca_bundle(self.certificates)}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": USER,
                "clusters": [{"name": USER, "cluster": cluster}],
                "users": [{"name": USER, "user": {"token": self.token}}],
                "contexts": [{"name": USER, "context": {"cluster": USER, "user": USER}}],
            }
        )


HOOKS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "jobset": ("config.jobset.x-k8s.io/v1alpha1", {"internalCertManagement": {"enable": False}}),
    "kueue": (
        "config.kueue.x-k8s.io/v1beta1",
        {
            # Switched off, it wants keys in a fixed folder under /etc; so it finds ours in its Secret and is content.
            "internalCertManagement": {"enable": True},
            "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]},
            # A server of its own, which would need the rights and the files of a pod.
            "featureGates": {"VisibilityOnDemand": False},
            # As it is shipped; without it, a third of that. Source:
            # https://github.com/kubernetes-sigs/kueue/blob/main/config/components/manager/controller_manager_config.yaml
            "clientConnection": {"qps": 50, "burst": 100},
        },
    ),
}


PORTS = ("api", *HOOKS, *(f"{name}-health" for name in HOOKS))


def configure(layout: Layout) -> None:
    """Write the files that the commands read."""
    ports = layout.ports
    controller = {
        "webhook": {"host": "127.0.0.1", "certDir": str(layout.certificates.folder)},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
    }
    files: dict[str, Mapping[str, Any]] = {
        "egress.yaml": {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [
                {
                    "name": "cluster",
                    "connection": {
                        "proxyProtocol": "HTTPConnect",
                        "transport": {"uds": {"udsName": SOCKET}},  # from the folder that it runs in
                    },
                }
            ],
        },
        "scheduler.yaml": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(layout.folder / "kubeconfig")},
            "leaderElection": {"leaderElect": False},
            "podMaxBackoffSeconds": 2,
        },
        **{
            f"{name}.yaml": {
                "apiVersion": version,
                "kind": "Configuration",
                **controller,
                "webhook": {**controller["webhook"], "port": ports[name]},
                "health": {"healthProbeBindAddress": f"127.0.0.1:{ports[f'{name}-health']}"},
                **more,
            }
            for name, (version, more) in HOOKS.items()
        },
    }
    for name, content in files.items():
        (layout.folder / name).write_text(yaml.safe_dump(content))
    (layout.folder / "kubeconfig").touch(0o600)
    (layout.folder / "kubeconfig").write_text(layout.kubeconfig())
    (layout.folder / "tokens.csv").touch(0o600)
    known = [f'{layout.token},{USER},{secrets.token_hex(4)},"system:masters"']
    known.append(f"{scoped(layout.token, '')},{UNIQUE_ID},{UNIQUE_ID}")
    (layout.folder / "tokens.csv").write_text("".join(f"{line}\n" for line in known))


_ETCD = "unix://etcd:0"
"""A socket in the folder that the commands run in, which nobody else may enter: etcd believes whoever reaches it."""


def _etcd(layout: Layout) -> list[str]:
    client, peer = _ETCD, "unix://peer:0"
    return [
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _api(layout: Layout) -> list[str]:
    keys = layout.certificates
    return [
        f"--etcd-servers={_ETCD}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports['api']}",
        # Not loopback, and nobody calls it: the default is looked for in the machine's routes.
        "--advertise-address=192.0.2.1",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={keys.folder / 'tls.crt'}",
        f"--tls-private-key-file={keys.folder / 'tls.key'}",
        f"--token-auth-file={layout.folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys.accounts}",
        f"--service-account-signing-key-file={keys.accounts}",
        f"--service-cluster-ip-range={CIDR}",
        f"--egress-selector-config-file={layout.folder / 'egress.yaml'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={keys.folder / 'tls.crt'}",
        f"--kubelet-client-key={keys.folder / 'tls.key'}",
        "--allow-privileged=true",
        # GKE adds a pod's tolerations for the resources that it asks for.
        # https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus
        "--enable-admission-plugins=ExtendedResourceToleration",
        # An exec reaches our kubelet as it was asked for, by WebSocket, and not as SPDY.
        "--feature-gates=TranslateStreamCloseWebsocketRequests=false",
        "--profiling=false",
    ]


COMMANDS: Mapping[str, Callable[[Layout], list[str]]] = {
    "etcd": _etcd,
    "kube-apiserver": _api,
    "kube-controller-manager": lambda layout: [
        f"--kubeconfig={layout.folder / 'kubeconfig'}",
        f"--root-ca-file={layout.certificates.ca}",
        f"--service-account-private-key-file={layout.certificates.accounts}",
        "--leader-elect=false",
        "--secure-port=0",
    ],
    "kube-scheduler": lambda layout: [f"--config={layout.folder / 'scheduler.yaml'}", "--secure-port=0"],
    "kwok": lambda layout: [
        f"--kubeconfig={layout.folder / 'kubeconfig'}",
        "--node-port=0",  # no server: of another number it would be one on every address
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        *([f"--config={_STAGES}"] if _STAGES.exists() else []),
    ],
    **{name: lambda layout, name=name: [f"--config={layout.folder / name}.yaml"] for name in HOOKS},
}
