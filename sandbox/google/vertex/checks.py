"""Refusals of Vertex AI for a custom job, all of them at once.

The form of the refusal, and the messages about accelerators without a number, about labels and about machines without
such an accelerator, are Google's: https://github.com/prefect-archive/prefect-gcp/issues/175,
https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/213. A comment marks messages that are the sandbox's;
the limits are those of the discovery document and of
https://docs.cloud.google.com/vertex-ai/docs/training/configure-compute.
"""

import re
from collections.abc import Iterator
from typing import Any

from accel.catalog.places import regions

from .. import PROJECT, PROJECT_NUMBER
from ..errors import ApiError, invalid
from ..world import Call, Json, World, by_id
from .machines import BOOT_DISKS, CLOUD_TPU, FLEX_START, SMALL_A3, TPUS, counts, machine_types, own_gpus

Fault = tuple[str, str]
POOLS = 4
WEEK_S = 7 * 24 * 3600
_REQUIRED = "Required field is not set."
_LABELS = (
    "There can be no more than 64 labels attached to a single resource. Label keys and values can only contain "
    "lowercase letters, numbers, dashes and underscores. Label keys must start with a letter or number, must be less "
    "than 64 characters in length, and must be less that 128 bytes in length when encoded in UTF-8. Label values must "
    "be less than 64 characters in length, and must be less that 128 bytes in length when encoded in UTF-8."
)
_LABEL = re.compile(r"[a-z0-9_-]{0,63}")
_FORMS = {
    "network": re.compile(r"projects/\d+/global/networks/[a-z]([-a-z0-9]*[a-z0-9])?"),
    "tensorboard": re.compile(r"projects/[^/]+/locations/[^/]+/tensorboards/\d+"),
}
_SHOWN = {
    "network": "projects/{project_number}/global/networks/{network}",
    "tensorboard": "projects/{project}/locations/{location}/tensorboards/{tensorboard}",
}
_MOUNTS = {"nfsMounts": ("server", "path", "mountPoint"),
           "lustreMounts": ("instanceIp", "volumeHandle", "filesystem", "mountPoint")}  # fmt: skip


def refusal(faults: list[Fault]) -> ApiError:
    told = "".join(f"{number}.Field: {field}; Message: {said}\t" for number, (field, said) in enumerate(faults, 1))
    fields = [{"field": field, "description": said} for field, said in faults]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields}]
    return ApiError(400, f"List of found errors:\t{told}", "badRequest", details=details)


def check_region(region: str) -> None:
    """Refuse an unknown region, in the usual words of Google's newer APIs; those of this one were not found."""
    if region not in regions("gcp"):
        raise ApiError(403, f"Permission denied on 'locations/{region}' (or it may not exist).")


def check_job(call: Call, item: Json, spec: str = "jobSpec") -> None:
    """Check the CustomJobSpec in the property `spec`. Raise ApiError."""
    check_region(call.location)
    at = _snake(spec)
    found = [*_named(item), *_spec(call.world, call.location, item.get(spec, {}), at)]
    if found:
        raise refusal(found)
    _bucket(call, item[spec].get("baseOutputDirectory", {}).get("outputUriPrefix", ""))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def _named(item: Json) -> Iterator[Fault]:
    name = item.get("displayName", "")
    if not name:
        yield "display_name", _REQUIRED
    elif len(name) > 128:
        yield "display_name", "The display name can be up to 128 characters long."  # the sandbox's words
    yield from labels(item, "labels")


def labels(item: Json, at: str) -> Iterator[Fault]:
    rows: dict[str, str] = item.get("labels", {})
    fine = all(_LABEL.fullmatch(key) and _LABEL.fullmatch(value) and key[:1].isalnum() for key, value in rows.items())
    if len(rows) > 64 or not fine:
        yield at, _LABELS


def _spec(world: World, region: str, spec: Json, at: str) -> Iterator[Fault]:
    pools: list[Json] = spec.get("workerPoolSpecs", [])
    if not pools or not pools[0]:
        yield f"{at}.worker_pool_specs", _REQUIRED
    if len(pools) > POOLS:
        yield f"{at}.worker_pool_specs", f"At most {POOLS} worker pools can be specified."  # the sandbox's words
    for number, pool in enumerate(pools):
        if pool:
            yield from _pool(pool, number, f"{at}.worker_pool_specs[{number}]")
    yield from _scheduling(spec.get("scheduling", {}), [pool for pool in pools if pool], f"{at}.scheduling")
    yield from _tpus(pools, f"{at}.worker_pool_specs")
    yield from _refers(world, region, spec, at)


def _pool(pool: Json, number: int, at: str) -> Iterator[Fault]:
    if "containerSpec" in pool and "pythonPackageSpec" in pool:
        said = f"Invalid value at '{at}' (oneof), oneof field 'task' is already set. Cannot set 'pythonPackageSpec'"
        raise invalid([(at, said)])
    replicas = int(pool.get("replicaCount") or 0)
    if replicas < 1:
        yield f"{at}.replica_count", _REQUIRED
    elif number == 0 and replicas != 1:  # the rule: distributed-training of the documentation; the sandbox's words
        yield f"{at}.replica_count", "The replica count of the first worker pool, of the primary replica, must be 1."
    yield from machine(pool.get("machineSpec", {}), f"{at}.machine_spec")
    yield from disk(pool.get("diskSpec", {}), f"{at}.disk_spec")
    if "pythonPackageSpec" in pool:
        yield from _package(pool["pythonPackageSpec"], f"{at}.python_package_spec")
    elif not pool.get("containerSpec", {}).get("imageUri"):
        yield f"{at}.container_spec.image_uri", _REQUIRED
    task = "pythonPackageSpec" if "pythonPackageSpec" in pool else "containerSpec"
    yield from _env(pool.get(task, {}).get("env", []), f"{at}.{_snake(task)}.env")
    for name, fields in _MOUNTS.items():
        for index, mount in enumerate(pool.get(name, [])):
            for field in fields:
                if not mount.get(field):
                    yield f"{at}.{_snake(name)}[{index}].{_snake(field)}", _REQUIRED


def machine(spec: Json, at: str) -> Iterator[Fault]:
    """Yield the faults of a MachineSpec of training."""
    kind, accelerator = spec.get("machineType", ""), spec.get("acceleratorType", "ACCELERATOR_TYPE_UNSPECIFIED")
    count = int(spec.get("acceleratorCount") or 0)
    named = accelerator != "ACCELERATOR_TYPE_UNSPECIFIED"
    if not kind:
        yield f"{at}.machine_type", _REQUIRED
    elif kind not in machine_types():
        yield f"{at}.machine_type", f'Machine type "{kind}" is not supported.'  # from memory
    elif named != bool(count):
        yield f"{at}.accelerator_type", "Both `accelerator_type` and `accelerator_count` should be specified or none. "
    elif named and not counts(kind, accelerator):
        yield f"{at}.accelerator_type", f'Accelerator "{accelerator}" is not supported for machine type "{kind}".'
    elif named and count not in counts(kind, accelerator):
        allowed = ", ".join(map(str, counts(kind, accelerator)[:8]))  # from here on the sandbox's words
        yield f"{at}.accelerator_count", f"{count} {accelerator} is not one of {allowed} of machine type {kind}."
    elif not named and (own_gpus(kind) or kind == CLOUD_TPU):
        yield f"{at}.accelerator_type", f'Machine type "{kind}" must be used with accelerators.'
    elif kind in TPUS and spec.get("tpuTopology") not in TPUS[kind]:
        yield f"{at}.tpu_topology", f"The topology of {kind} must be one of {', '.join(TPUS[kind])}."
    affinity = spec.get("reservationAffinity", {})
    if affinity.get("reservationAffinityType") == "SPECIFIC_RESERVATION":
        for field in ("key", "values"):
            if not affinity.get(field):
                yield f"{at}.reservation_affinity.{field}", _REQUIRED


def disk(spec: Json, at: str) -> Iterator[Fault]:
    """Yield the faults of a DiskSpec; the sandbox's words."""
    kind, size = spec.get("bootDiskType", BOOT_DISKS[0]), int(spec.get("bootDiskSizeGb") or 100)
    if kind not in BOOT_DISKS:
        yield f"{at}.boot_disk_type", f"{kind} is not one of {', '.join(BOOT_DISKS)}."
    if not 100 <= size <= 64_000:
        yield f"{at}.boot_disk_size_gb", f"{size} is not between 100 and 64000."


def _package(spec: Json, at: str) -> Iterator[Fault]:
    for field in ("executorImageUri", "packageUris", "pythonModule"):
        if not spec.get(field):
            yield f"{at}.{_snake(field)}", _REQUIRED
    uris = spec.get("packageUris", [])
    if len(uris) > 100 or not all(uri.startswith("gs://") for uri in uris):  # the sandbox's words
        yield f"{at}.package_uris", "There can be at most 100 package URIs, which start with gs://."


def _env(rows: list[Json], at: str) -> Iterator[Fault]:
    """Yield the faults of environment variables. An empty value is one:
    https://github.com/kubeflow/pipelines/issues/10111"""
    if len(rows) > 100:
        yield at, "There can be at most 100 environment variables."  # the sandbox's words
    for index, row in enumerate(rows):
        for field in ("name", "value"):
            if not row.get(field):
                yield f"{at}[{index}].{field}", _REQUIRED
        if row.get("name") and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", row["name"]):
            yield f"{at}[{index}].name", "Must be a valid C identifier."


def seconds(text: str | None) -> float | None:
    """Return the seconds of a duration in JSON, "3600s", or None for other text."""
    found = re.fullmatch(r"(\d+(?:\.\d{1,9})?)s", text or "")
    return float(found[1]) if found else None


def _scheduling(spec: Json, pools: list[Json], at: str) -> Iterator[Fault]:
    """Yield faults of flex-start and Spot, by schedule-jobs-dws and use-spot-vms of the docs; the sandbox's words."""
    strategy = spec.get("strategy", "STANDARD")
    machines: list[Json] = [pool.get("machineSpec", {}) for pool in pools]
    for field in ("timeout", "maxWaitDuration"):
        if field in spec and seconds(spec[field]) is None:
            raise invalid([(at, f"Invalid value at '{at}.{_snake(field)}' (google.protobuf.Duration)")])
    small = next((each["machineType"] for each in machines if each.get("machineType") in SMALL_A3), "")
    if small and strategy not in ("SPOT", "FLEX_START"):
        yield f"{at}.strategy", f"{small} is available with the strategies SPOT and FLEX_START only."
    if strategy == "FLEX_START":
        if any(each.get("acceleratorType") not in FLEX_START for each in machines):
            yield f"{at}.strategy", f"FLEX_START is for machines with {', '.join(FLEX_START)}."
        if any(each != machines[0] for each in machines):
            yield f"{at}.strategy", "FLEX_START requires the same machine configuration for all worker pools."
        if (seconds(spec.get("timeout")) or 0) > WEEK_S:
            yield f"{at}.timeout", "The timeout of a job with FLEX_START is at most 7 days."
    if strategy == "SPOT" and any(int(each.get("acceleratorCount") or 0) > 8 and each.get("machineType") == CLOUD_TPU
                                  for each in machines):  # fmt: skip
        yield f"{at}.strategy", "Spot VMs with TPU Pods are not supported."


def _tpus(pools: list[Json], at: str) -> Iterator[Fault]:
    """Yield a fault unless TPUs are in one pool of one replica; the sandbox's words."""
    used = [pool for pool in pools if pool]
    kinds = [pool.get("machineSpec", {}).get("machineType") for pool in used]
    if any(kind in TPUS or kind == CLOUD_TPU for kind in kinds) and (
        len(used) > 1 or int(used[0].get("replicaCount") or 0) > 1
    ):
        yield at, "A job with TPUs has a single worker pool with one replica."


def _refers(world: World, region: str, spec: Json, at: str) -> Iterator[Fault]:
    """Yield the faults of what a job names besides its machines; the sandbox's words."""
    for field, form in _FORMS.items():
        if spec.get(field) and not form.fullmatch(spec[field]):
            yield f"{at}.{field}", f"{spec[field]} is not of the form {_SHOWN[field]}."
    if spec.get("tensorboard") and not spec.get("serviceAccount"):
        yield f"{at}.service_account", "A service account is required where a tensorboard is specified."
    email = spec.get("serviceAccount", "")
    own = email.endswith(f"@{PROJECT}.iam.gserviceaccount.com")
    if own and f"iam/projects/{PROJECT}/serviceAccounts/{email}" not in world.items:
        yield f"{at}.service_account", f"Service account {email} does not exist."
    prefix = spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
    if prefix is not None and not re.fullmatch(r"gs://[^/]+(/.*)?", prefix):
        yield f"{at}.base_output_directory.output_uri_prefix", f"{prefix} is not a Cloud Storage URI: gs://..."
    place = f"aiplatform/projects/{PROJECT}/locations/{region}"
    board = by_id(spec.get("tensorboard", ""))
    if board and _FORMS["tensorboard"].fullmatch(board) and f"aiplatform/{board}" not in world.items:
        yield f"{at}.tensorboard", f"The Tensorboard {board} does not exist."
    if kept := spec.get("persistentResourceId"):
        found: Json = world.items.get(f"{place}/persistentResources/{kept}", {})
        if found.get("state") != "RUNNING":
            yield f"{at}.persistent_resource_id", f"There is no PersistentResource {kept} that is RUNNING."
        elif wrong := _unfit(spec, found):
            yield f"{at}.worker_pool_specs", f"PersistentResource {kept} has no machines {wrong}."


def _unfit(spec: Json, kept: Json) -> str:
    """Return the first machine of a job that a persistent resource lacks."""
    there: list[Any] = [pool.get("machineSpec") for pool in kept["resourcePools"]]
    asked = (pool["machineSpec"] for pool in spec["workerPoolSpecs"] if pool)
    return next((each.get("machineType", "") for each in asked if each not in there), "")


def _bucket(call: Call, uri: str) -> None:
    """Check the bucket of a URI. Wording of the location:
    https://github.com/GoogleCloudPlatform/vertex-ai-samples/pull/19; that of a missing bucket was not found."""
    if not uri:
        return
    bucket = call.world.items.get(f"storage/b/{uri.removeprefix('gs://').partition('/')[0]}")
    what = f"The Cloud Storage bucket of `{uri}`"
    if bucket is None:
        raise ApiError(400, f"{what} does not exist.", status="FAILED_PRECONDITION")
    where = bucket.get("location", "US").lower()
    if where != call.location:
        said = f"is in location `{where}`. It must be in the same regional location as the service location"
        raise ApiError(400, f"{what} {said} `{call.location}`.", status="FAILED_PRECONDITION")


def number_form(key: str) -> str:
    """Return a name as Vertex AI answers it: with the project's number."""
    return key.replace(f"projects/{PROJECT}/", f"projects/{PROJECT_NUMBER}/", 1)
