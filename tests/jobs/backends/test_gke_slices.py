"""TPU slices of a job: which hosts its nodes and its count name, and the pools that are such hosts."""

from typing import Any

import pytest

from accel.diagnostics.errors import BadInputs
from tests.jobs.backends.gke_target import make_request, make_target, pools_of, spec_of, tpu_pool

V5E, V6E = "tpu-v5-lite-podslice", "tpu-v6e-slice"
EIGHT = {
    "v5e-one": tpu_pool("v5e-one", V5E, "2x4", 8, 1, cpu_m=200_000, memory_mib=300_000),
    "v5e-two": tpu_pool("v5e-two", V5E, "2x4", 4, 2, cpu_m=100_000, memory_mib=150_000),
    "v6e-one": tpu_pool("v6e-one", V6E, "2x4", 8, 1, cpu_m=150_000, memory_mib=1_400_000),
    "v6e-two": tpu_pool("v6e-two", V6E, "2x4", 4, 2, cpu_m=150_000, memory_mib=700_000),
}


@pytest.mark.parametrize("kind", ["v5e", "v6e"])
@pytest.mark.parametrize(
    ("fields", "form", "nodes", "chips"),
    [
        ({}, "one", 1, 8),
        ({"count": 8}, "one", 1, 8),
        ({"nodes": 2}, "two", 2, 4),
        ({"nodes": 2, "count": 4}, "two", 2, 4),
    ],
)
def test_eight_chips_on_one_host_or_on_two(
    kind: str, fields: dict[str, int], form: str, nodes: int, chips: int
) -> None:
    count = {"count": fields["count"]} if "count" in fields else {}
    job: dict[str, Any] = {"accelerator": {"type": f"{kind}-8", **count}, "nodes": fields.get("nodes", 1)}
    target = make_target(pools=EIGHT)
    spec = spec_of(target, **job)
    assert pools_of(spec) == [f"{kind}-{form}-1a2b3c4"]
    assert spec["containers"][0]["resources"]["limits"]["google.com/tpu"] == str(chips)
    made = make_request(target, **job).body["objects"][-1]
    assert made["kind"] == ("JobSet" if nodes > 1 else "Job")
    env = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
    assert len((env.get("TPU_WORKER_HOSTNAMES") or "one").split(",")) == nodes
    if nodes > 1:
        (child,) = (each["template"]["spec"] for each in made["spec"]["replicatedJobs"])
        assert (child["completions"], child["parallelism"]) == (2, 2)
        exclusive = made["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/exclusive-topology"]
        assert exclusive == "cloud.google.com/gke-nodepool"


@pytest.mark.parametrize(
    ("count", "nodes", "said"),
    [
        (4, 1, "accelerator.count: is 4 with nodes: 1, and v5e-8 is 1 host of 8 chips or 2 hosts of 4 chips; "),
        (8, 2, "accelerator.count: is 8 with nodes: 2, and v5e-8 is 1 host of 8 chips or 2 hosts of 4 chips; "),
        (2, 4, "nodes: is 4, and v5e-8 is 1 host of 8 chips or 2 hosts of 4 chips; leave both out for 1 host of 8 "),
    ],
)
def test_neither_of_the_two_is_refused_with_both(count: int, nodes: int, said: str) -> None:
    with pytest.raises(BadInputs) as caught:
        make_request(make_target(pools=EIGHT), accelerator={"type": "v5e-8", "count": count}, nodes=nodes)
    (message,) = caught.value.messages
    assert message.startswith(said) and message.endswith("8 chips, or write nodes: 2 and count: 4"), message


@pytest.mark.parametrize(
    ("key", "nodes", "said"),
    [
        ("v5e-two", 1, "1 host of 8 chips; the pools have tpu-v5-lite-podslice 2x4 (2 hosts of 4 chips); for v5e-two"),
        ("v5e-one", 2, "2 hosts of 4 chips; the pools have tpu-v5-lite-podslice 2x4 (1 host of 8 chips); for v5e-one"),
    ],
)
def test_a_target_with_only_the_other_form_says_how_to_name_it(key: str, nodes: int, said: str) -> None:
    with pytest.raises(BadInputs) as caught:
        make_request(make_target(pools={key: EIGHT[key]}), accelerator={"type": "v5e-8"}, nodes=nodes)
    (message,) = caught.value.messages
    assert said in message and f"write nodes: {EIGHT[key].hosts} and count: {EIGHT[key].tpu_chips}" in message


def test_hosts_of_a_larger_slice_may_be_counted() -> None:
    counted = spec_of(accelerator={"type": "v5e-16", "count": 4}, nodes=4)
    assert counted == spec_of(accelerator={"type": "v5e-16"}) == spec_of(accelerator={"type": "v5e-16", "count": 16})
