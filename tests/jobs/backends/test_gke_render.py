"""A job as the objects of a GKE cluster: golden files, laws, and every field that is refused with a reason."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.contract.gke import GkeTarget
from accel.diagnostics.errors import BadInputs
from jobs.backends.gke import labels, request, retries
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends.gke_target import POOLS, gpu_pool, make_request, make_target, pool, pools_of, spec_of
from tests.jobs.backends.refusal import refusal
from tests.support.golden import check_request

GOLDEN = Path(__file__).parents[2] / "golden" / "gke"
CPU = {"cpus": 2, "memory_mib": 4000}
PLAIN = {"queue": None, "jobset": False}

JOBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cpu_without_a_queue": (PLAIN, {**CPU, "retries": 2, "timeout_s": "4h", "labels": {"team": "vision"}}),
    "gpus_in_a_queue": (
        {},
        {
            "accelerator": {"type": "A100", "count": 4},
            "cpus": 16,
            "memory_mib": 65_536,
            "shm_mib": 16_384,
            "disk_gib": 40,
            "env": {"EPOCHS": "50", "ODD": "$(HOME) costs 5$"},
            "secrets": {"HF_TOKEN": "hugging-face/token"},
            "mounts": [
                {"source": "volume://data/imagenet", "path": "/data"},
                {"source": "gs://acme-data/models", "path": "/models", "read_only": True},
            ],
            "spot": False,
            "gke": {"priority": "urgent", "keep_s": "1d"},
        },
    ),
    "tasks": ({}, {**CPU, "tasks": 500, "parallelism": 20, "retries": 1}),
    "nodes_with_jobset": ({}, {"accelerator": {"type": "a100", "count": 4}, "nodes": 2, "retries": 1}),
    "nodes_without_jobset": (PLAIN, {"accelerator": {"type": "a100", "count": 4}, "nodes": 2, "spot": True}),
    "tpu_slice_of_four_hosts": ({}, {"accelerator": {"type": "v5e-16"}}),
    "tpu_of_one_host": ({}, {"accelerator": {"type": "v5litepod-4"}}),
    "no_root": (
        {**PLAIN, "pod_security": "restricted"},
        {**CPU, "gke": {"user": 1234}, "mounts": [{"source": "volume://data", "path": "/data"}]},
    ),
    "gpu_partition": (PLAIN, {"accelerator": {"count": 1}, "gke": {"gpu_partition": "1g.5gb"}}),
}


@pytest.mark.parametrize("case", JOBS)
def test_golden(case: str) -> None:
    target, fields = JOBS[case]
    request = make_request(make_target(**target), **fields)
    check_request(GOLDEN / f"{case}.json", request)


NO_CPU = make_target(pools={key: each for key, each in POOLS.items() if each.gpus})
QUEUED = make_target(queue=None, pools={"q": gpu_pool("q", "nvidia-l4", 1, queued=True)})


@pytest.mark.parametrize(
    "target, fields, message",
    [
        (None, {**CPU, "image": None}, "image: is missing; a GKE target has no definition"),
        (None, {}, "cpus: is missing, and a job without an accelerator has no share of a node"),
        (None, {**CPU, "cpus": 8}, "cpus: is 8, and a node has at most 7.5 vCPUs (cpu)"),
        (None, {**CPU, "memory_mib": 27_001}, "memory_mib: is 27001, and a node has at most 27000 MiB (cpu)"),
        (None, {**CPU, "disk_gib": 81}, "disk_gib: is 81, and a node has at most 80 GiB of disk (cpu)"),
        (None, {"accelerator": {"type": "a100", "count": 8}}, "accelerator.count: is 8, and a node has at most 4 GPUs"),
        (None, {"accelerator": {"type": "h100"}}, "accelerator.type: h100 is on no pool; the pools have none, nv"),
        (None, {"accelerator": {"type": "a1000"}}, 'accelerator.type: unknown accelerator "a1000"'),
        (None, {"accelerator": {"type": "v5e-8"}}, "accelerator.type: v5e-8 is tpu-v5-lite-podslice 2x4, 1 host of"),
        (None, {"accelerator": {"type": "v5e-17"}}, "accelerator.type: v5e-17 is no size of"),
        (None, {"accelerator": {"type": "v5e-16", "count": 3}}, "accelerator.count: is 3, and v5e-16 is 4 hosts of 4 "),
        (None, {"accelerator": {"type": "v5e-16"}, "nodes": 2}, "nodes: is 2, and v5e-16 is 4 hosts of 4 chips; leave"),
        (None, {"accelerator": {"type": "v5e-16", "count": 2}, "nodes": 4}, "accelerator.count: is 2, and v5e-16 is"),
        (None, {"accelerator": {"type": "v5e-4", "count": 2}}, "count: is 2, and v5e-4 is 1 host of 4 chips; leave bo"),
        (None, {"accelerator": {"type": "v5e-16"}, "tasks": 2}, "tasks: v5e-16 has 4 hosts"),
        (make_target(jobset=False), {"accelerator": {"type": "v5e-16"}}, "4 hosts, and the cluster has no JobSet"),
        (None, {"accelerator": {"type": "a100"}, "nodes": 13}, "nodes: is 13, and the pools that hold a node"),
        (None, {"accelerator": {"count": 7}}, "accelerator.count: is 7, and a node has at most 4"),
        (None, {"accelerator": {"type": "l4"}, "spot": True}, "spot: true asks for Spot nodes; the pools that fit"),
        (None, {"accelerator": {"count": 1}, "gke": {"gpu_partition": "1g.10gb"}}, "gke.gpu_partition: is 1g.10gb; p"),
        (None, {"accelerator": {"count": 1}, "gke": {"gpu_sharing": "mps"}}, "gke.gpu_sharing: is mps; sharing of"),
        (NO_CPU, CPU, "accelerator: is missing, and every pool has one: nvidia-tesla-a100, nvidia-l4"),
        (QUEUED, {"accelerator": {"count": 1}}, "pools: q: nodes come by ProvisioningRequest only, and the target has"),
        (None, {**CPU, "gke": {"pools": ["cpus"]}}, 'gke.pools[0]: unknown pool "cpus"; did you mean cpu?'),
        (make_target(pod_security="restricted"), {**CPU, "gke": {"user": 0}}, "gke.user: 0 is root, whom namespace"),
        (None, {**CPU, "gke": {"priority": "urgnt"}}, 'gke.priority: unknown priority "urgnt"; did you mean urgent?'),
        (make_target(priorities=[]), {**CPU, "gke": {"priority": "x"}}, "the target has none"),
        (None, {**CPU, "secrets": {"A": "hf_abcdefghijklmnop"}}, "secrets.A: must be <name>/<key> of a Secret"),
        (None, {**CPU, "mounts": [{"source": "efs://fs-1", "path": "/d"}]}, '"efs://fs-1" is neither'),
        (None, {**CPU, "mounts": [{"source": "volume://dat", "path": "/d"}]}, 'volume "dat"; did you mean data'),
        (None, {**CPU, "mounts": [{"source": "volume://data/../x", "path": "/d"}]}, "has neither .. nor a comma"),
        (None, {**CPU, "mounts": [{"source": "gs://bkt/a,b", "path": "/d"}]}, "has neither .. nor a comma"),
        (None, {**CPU, "mounts": [{"source": "volume://public", "path": "/d"}]}, "volume public is read only"),
        (None, {**CPU, "mounts": [{"source": "volume://data", "path": "/dev/shm"}]}, "mounts[0].path: /dev/shm"),
        (None, {**CPU, "labels": {"a b": "x"}}, 'labels: "a b" is no name of a label'),
        (None, {**CPU, "labels": {"accel.dev/owner": "me"}}, "reserved prefix"),
        (None, {**CPU, "tasks": 100_001}, "tasks: is 100001, of which Kubernetes takes 100000"),
        (None, {**CPU, "env": {"JOB_COMPLETION_INDEX": "1"}}, "env.JOB_COMPLETION_INDEX: is set by the platform"),
        (None, {**CPU, "command": ["x" * 300_000]}, "request: has"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused(target: GkeTarget | None, fields: dict[str, Any], message: str) -> None:
    with refusal(message):
        make_request(target, **fields)


def test_all_faults_are_told_together() -> None:
    with pytest.raises(BadInputs) as caught:
        make_request(image=None, secrets={"A": "b"}, labels={"a b": "c"}, gke={"priority": "x"})
    assert len(caught.value.messages) >= 5


def test_a_job_goes_to_every_pool_that_holds_it_and_to_no_other() -> None:
    assert pools_of(spec_of(**CPU)) == ["cpu-1a2b3c4"]
    assert pools_of(spec_of(accelerator={"type": "a100", "count": 1})) == ["a100-1a2b3c4", "spot-1a2b3c4"]
    assert pools_of(spec_of(accelerator={"type": "a100"}, spot=True)) == ["spot-1a2b3c4"]
    assert pools_of(spec_of(accelerator={"count": 1}, cpus=40)) == ["a100-1a2b3c4", "spot-1a2b3c4"]
    assert pools_of(spec_of(accelerator={"count": 1}, gke={"pools": ["l4"]})) == ["l4-1a2b3c4"]
    assert pools_of(spec_of(**CPU, gke={"pools": ["l4"]})) == ["l4-1a2b3c4"]


def test_a_pool_is_named_by_a_label_that_outlives_it_where_there_is_one() -> None:
    keyed = {key: pool(key, labels={"accel.dev/pool": key}) for key in ("one", "two")}
    expression = spec_of(make_target(pools=keyed), **CPU)["affinity"]["nodeAffinity"]
    (term,) = expression["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "accel.dev/pool", "operator": "In", "values": ["one", "two"]}]


def test_without_a_size_a_pod_with_gpus_gets_their_share_of_the_smallest_node() -> None:
    requests = spec_of(accelerator={"type": "a100", "count": 2})["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "23000m", "memory": "160000Mi"}
    requests = spec_of(accelerator={"count": 1})["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "7500m", "memory": "27000Mi"}


def test_gpus_are_limits_alone_and_memory_is_the_same_in_both() -> None:
    resources = spec_of(accelerator={"type": "a100", "count": 4}, cpus=16, memory_mib=65_536)["containers"][0][
        "resources"
    ]
    assert resources == {
        "limits": {"memory": "65536Mi", "nvidia.com/gpu": "4"},
        "requests": {"cpu": "16000m", "memory": "65536Mi"},
    }


def test_where_spot_nodes_may_run_it_a_pod_has_what_they_leave_it() -> None:
    assert spec_of(accelerator={"type": "a100"})["terminationGracePeriodSeconds"] == 15
    assert spec_of(accelerator={"type": "a100"}, spot=False)["terminationGracePeriodSeconds"] == 30
    request = make_request(accelerator={"type": "a100"}, gke={"grace_s": 60})
    assert any(warning.startswith("gke.grace_s: is 60") for warning in request.warnings)


def test_a_sidecar_that_mounts_a_bucket_needs_room_too() -> None:
    bucket = {"mounts": [{"source": "gs://acme-data", "path": "/d"}]}
    assert pools_of(spec_of(cpus=7, memory_mib=26_700, **bucket))
    with pytest.raises(BadInputs, match=r"memory_mib: is 27056, and a node has at most 27000 MiB"):
        make_request(cpus=7, memory_mib=26_800, **bucket)


@pytest.mark.parametrize(
    "failures, lost, limit, actions",
    [
        (None, None, 0, ["Ignore", "Ignore"]),
        (2, None, 2, ["Ignore", "Ignore", "FailJob"]),
        (None, 3, 3, ["Count", "Count", "FailJob"]),
        (0, 3, 3, ["Count", "Count", "FailJob"]),
        (2, 0, 2, ["FailJob", "FailJob", "FailJob"]),
        (0, 0, 0, ["FailJob", "FailJob"]),
        (2, 3, 5, ["Count", "Count", "FailJob"]),
    ],
)
def test_retries(failures: int | None, lost: int | None, limit: int, actions: list[str]) -> None:
    found = retries.of_job(failures, lost)
    assert found["backoffLimit"] == limit
    assert [rule["action"] for rule in found["podFailurePolicy"]["rules"]] == actions
    each = retries.of_job(failures, lost, array=True)
    assert each["backoffLimitPerIndex"] == limit and "backoffLimit" not in each
    policy, _ = retries.of_jobset(failures, lost)
    assert policy["maxRestarts"] == limit


@pytest.mark.parametrize(
    "lost, timeout_s, codes",
    [(None, None, [143]), (2, None, [75, 143]), (0, None, [75, 143]), (None, 60, []), (2, 60, [75])],
)
@pytest.mark.parametrize("nodes", [1, 2])
def test_exit_codes_of_a_lost_pod(lost: int | None, timeout_s: int | None, codes: list[int], nodes: int) -> None:
    """A pod that ran out of its time ends by SIGTERM too, and an unfit node that is the only one stays so."""
    given = {name: value for name, value in {"lost_retries": lost, "timeout_s": timeout_s}.items() if value is not None}
    spec = make_request(accelerator={"type": "a100"}, nodes=nodes, **given).body["objects"][-1]["spec"]
    job = spec["replicatedJobs"][0]["template"]["spec"] if nodes > 1 else spec
    taken, *rules = job["podFailurePolicy"]["rules"]
    found = [rule for rule in rules if rule["action"] == taken["action"] and rule["onExitCodes"]["operator"] == "In"]
    assert [code for rule in found for code in rule["onExitCodes"]["values"]] == codes


def test_nodes_that_fail_together_count_so_without_jobset() -> None:
    spec = make_request(make_target(**PLAIN), accelerator={"type": "a100"}, nodes=2, retries=3).body["objects"][-1]
    assert spec["spec"]["backoffLimit"] == 6


def test_a_block_of_another_cloud_is_not_dropped_in_silence() -> None:
    request = make_request(**CPU, aws_batch={"share_identifier": "x"})
    assert request.warnings == ("aws_batch: is for targets of kind aws-batch and does nothing here",)


def expanded(text: str, known: dict[str, str]) -> str:
    """As Kubernetes does it: third_party/forked/golang/expansion/expand.go of kubernetes/kubernetes."""
    out, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            out, at = out + text[at], at + 1
            continue
        after = text[at + 1]
        end = text.find(")", at)
        if after == "$":
            out, at = out + "$", at + 2
        elif after == "(" and end >= 0:
            name = text[at + 2 : end]
            out, at = out + known.get(name, text[at : end + 1]), end + 1
        else:
            out, at = out + text[at : at + 2], at + 2
    return out


@given(st.text(alphabet="$()AB ", max_size=12))
@settings(max_examples=300, deadline=None)
def test_what_a_job_says_reaches_its_command_as_it_is(text: str) -> None:
    assert expanded(request.literal(text), {"A": "1", "B": "2", "AB": "3", "": "4"}) == text


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True)


@given(NAMES, st.text(max_size=8), st.sampled_from(["cpu", "tasks", "nodes", "tpu"]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_every_name_fits_where_kubernetes_puts_it(name: str, text: str, shape: str, jobset: bool) -> None:
    fields: dict[str, Any] = {
        "cpu": CPU,
        "tasks": {**CPU, "tasks": 100_000},
        "nodes": {**CPU, "nodes": 10},
        "tpu": {"accelerator": {"type": "v5e-16"}},
    }[shape]
    target = make_target(jobset=jobset or shape == "tpu")
    request = make_request(target, text, name=name, **fields)
    made = request.body["objects"][-1]
    key = submission_key(name, text)
    assert request.name == made["metadata"]["name"] == labels.object_name(platform_name(name, key))
    assert request.name.endswith(f"-{key[:12]}")
    longest = f"{request.name}-node-0-99999-abcde" if made["kind"] == "JobSet" else f"{request.name}-99999-abcde"
    for each in (request.name, longest):
        assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", each), each
    pod_spec = spec_of(target, text=text, name=name, **fields)
    variables = [each["name"] for each in pod_spec["containers"][0]["env"]]
    assert len(variables) == len(set(variables))


@given(st.integers(1, 6), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_gpus_asked_are_nodes_times_those_of_a_node(nodes: int, gpus: int) -> None:
    made = make_request(accelerator={"type": "a100", "count": gpus}, nodes=nodes).body["objects"][-1]
    spec = made["spec"]["replicatedJobs"][0]["template"]["spec"] if nodes > 1 else made["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["parallelism"] * int(container["resources"]["limits"]["nvidia.com/gpu"]) == nodes * gpus
    env = {each["name"]: each.get("value") for each in container["env"]}
    if nodes > 1:
        assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"]) == (str(nodes), str(gpus))
        assert env["PET_RDZV_ENDPOINT"] == f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}"


def test_a_service_selects_the_pods_that_name_it() -> None:
    service, job = make_request(make_target(**PLAIN), accelerator={"type": "a100"}, nodes=2).body["objects"]
    template = job["spec"]["template"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert template["spec"]["subdomain"] == service["metadata"]["name"]
    env = {each["name"]: each.get("value") for each in template["spec"]["containers"][0]["env"]}
    assert env["MASTER_ADDR"] == f"{job['metadata']['name']}-0.{service['metadata']['name']}"
    assert job["spec"]["completionMode"] == "Indexed"


def test_equal_jobs_have_equal_hashes_and_others_do_not() -> None:
    def spec(**fields: Any) -> str:
        return make_request(**{**CPU, **fields}).body["objects"][-1]["metadata"]["annotations"][labels.SPEC]

    assert spec() == spec() and spec() != spec(cpus=1) and spec() != spec(env={"A": "1"})
