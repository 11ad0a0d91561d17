"""What a changed field does to an object, and what is seen of one."""

from typing import Any

import pytest

from sandbox.plugins.kubernetes.objects import difference, import_inputs, observe, to_api, with_generated_name
from sandbox.plugins.kubernetes.plugin import KubernetesPlugin
from sandbox.plugins.mapping import UNKNOWN
from sandbox.plugins.server import ProviderError


def thing(kind: str, api: str = "v1", *, name: str = "a", auto: bool = False, **fields: Any) -> dict[str, Any]:
    notes = {"annotations": {"pulumi.com/autonamed": "true"}} if auto else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **notes}, **fields}


@pytest.mark.parametrize(
    ("old", "new", "changed", "replaces"),
    [
        (thing("ConfigMap", data={"a": "1"}), thing("ConfigMap", data={"a": "2"}), {"data.a": "UPDATE"}, {"data.a"}),
        (thing("ConfigMap"), thing("ConfigMap", name="b"), {"metadata.name": "UPDATE"}, {"metadata.name"}),
        (
            thing("Job", "batch/v1", spec={"template": {"spec": {"containers": [{"image": "a"}]}}}),
            thing("Job", "batch/v1", spec={"template": {"spec": {"containers": [{"image": "b"}]}}}),
            {"spec.template.spec.containers[0].image": "UPDATE"},
            {"spec.template.spec.containers[0].image"},
        ),
        (
            thing("DaemonSet", "apps/v1", spec={"template": {"a.b/c": 1}, "list": [1]}),
            thing("DaemonSet", "apps/v1", spec={"template": {"a.b/c": 2}, "list": [1, 2]}),
            {'spec.template["a.b/c"]': "UPDATE", "spec.list[1]": "ADD"},
            set(),
        ),
        (
            thing("Service", spec={"ports": []}),
            thing("Service", spec={"ports": [], "clusterIP": UNKNOWN}),
            {"spec.clusterIP": "ADD"},
            {"spec.clusterIP"},
        ),
        (
            thing("StorageClass", "storage.k8s.io/v1", parameters={"type": "a"}),
            thing("StorageClass", "storage.k8s.io/v1"),
            {"parameters": "DELETE"},
            {"parameters"},
        ),
        (
            thing("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1024Gi"}}}),
            thing("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1Ti"}}}),
            {},
            set(),
        ),
        (thing("Secret", data={"a": "1024Gi"}), thing("Secret", data={"a": "1Ti"}), {"data.a": "UPDATE"}, {"data.a"}),
        ({**thing("Pod"), "metadata": {"name": "a", "namespace": "default"}}, thing("Pod"), {}, set()),
    ],
)  # fmt: skip
def test_a_change(old: dict[str, Any], new: dict[str, Any], changed: dict[str, str], replaces: set[str]) -> None:
    found, forcing, first = difference(old, new, {})
    assert (found, forcing) == (changed, replaces)
    assert first is (bool(replaces) and "metadata.name" not in replaces)


def test_an_automatic_name_lets_the_new_one_come_first() -> None:
    old, new = (thing("Secret", auto=True, data={"a": value}) for value in "bc")
    assert difference(old, new, {}) == ({"data.a": "UPDATE"}, {"data.a"}, False)
    assert difference(old, new, {"enableSecretMutable": True}) == ({"data.a": "UPDATE"}, set(), False)
    assert difference(old, {**new, "immutable": True}, {"enableSecretMutable": True})[1] == {"data.a"}


def test_names() -> None:
    made = with_generated_name({"kind": "Pod"}, {}, "a", "0123456789abcdef")
    assert made["metadata"] == {"name": "a-01234567", "annotations": {"pulumi.com/autonamed": "true"}}
    assert with_generated_name({"kind": "Pod"}, made, "a", "f" * 16) == made
    mine = {"kind": "Pod", "metadata": {"name": "mine"}}
    assert with_generated_name(mine, made, "a", "f" * 16) == mine
    assert with_generated_name({"metadata": UNKNOWN}, {}, "a", "f" * 16) == {"metadata": UNKNOWN}


def test_what_is_seen() -> None:
    known = {"labels": {"a": "1"}, "empty": {}, "memory": "1024Mi", "cpu": 1, "gone": "x", "list": [{"a": 1}, {"a": 2}]}
    live = {"labels": {"a": "2", "b": "3"}, "memory": "1Gi", "cpu": "1", "list": [{"a": 1, "b": 2}], "more": 1}
    assert observe(known, live) == {
        "labels": {"a": "2"}, "empty": {}, "memory": "1024Mi", "cpu": 1, "list": [{"a": 1}],
    }  # fmt: skip
    secret = thing("Secret", stringData={"a": "b"})
    assert observe(secret, thing("Secret", data={"a": "Yg=="})) == secret
    assert observe(secret, thing("Secret", data={"a": "Yw=="}))["stringData"] == {"a": "c"}
    assert import_inputs({**thing("Pod", spec={}, status={}), "metadata": {"name": "a", "uid": "1"}}) == thing(
        "Pod", spec={}
    )
    assert to_api({"x_kubernetes_list_type": [{"x_kubernetes_int_or_string": True}]}) == {
        "x-kubernetes-list-type": [{"x-kubernetes-int-or-string": True}]
    }


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("kubernetes:core/v1:PodList", "list resources cannot be created"),
        ("kubernetes:apps/v1:DeploymentPatch", "patches no objects of others"),
        ("kubernetes:helm.sh/v3:Release", "renders no Helm charts"),
        ("kubernetes:kustomize/v2:Directory", "renders no kustomizations"),
        ("kubernetes:yaml/v2:ConfigFile", "reads no manifests"),
    ],
)
def test_refused_types(tmp_path: Any, token: str, why: str) -> None:
    with pytest.raises(ProviderError, match=f"^{token}: .*{why}"):
        KubernetesPlugin(tmp_path).check(token, "a", {}, {}, {}, "0" * 16)


def test_settings(tmp_path: Any) -> None:
    plugin = KubernetesPlugin(tmp_path)
    assert plugin.check_config({"kubeconfig": "", "namespace": "a", "enableServerSideApply": "true"}) == []
    (unknown, client_side) = plugin.check_config({"renderYamlToDirectory": "a", "enableServerSideApply": "false"})
    assert unknown[0] == "renderYamlToDirectory" and client_side[0] == "enableServerSideApply"
