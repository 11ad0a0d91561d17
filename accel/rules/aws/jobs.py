"""A job before its submission to AWS Batch."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from accel.diagnostics.findings import Finding
from accel.rules.aws import names
from accel.rules.table import rule

ARRAY_SIZE = rule("aws.job.array-size")
DEPENDENCY_COUNT = rule("aws.job.dependency-count")
DEPENDENCY = rule("aws.job.dependency")
PAYLOAD = rule("aws.job.payload")
OVERRIDES = rule("aws.job.overrides")
OVERRIDES_NEAR = rule("aws.job.overrides-near")
TAGS = rule("aws.job.tags")

ARRAY_RANGE = range(2, 10_001)
MAX_DEPENDENCIES = 20
MAX_PAYLOAD_BYTES = 30 * 1024
MAX_OVERRIDES = 8192
_OVERRIDES_MARGIN = 1024
"""Characters reserved for the variables of Batch, whose length AWS does not document."""
MAX_TAGS = 50


def job(
    *,
    name: str,
    array_size: int | None = None,
    depends_on: Sequence[Mapping[str, str]] = (),
    tags: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Check a job. `depends_on`: `{jobId, type}` as in a rendered SubmitJob."""
    found = names.job(name)
    if array_size is not None and array_size not in ARRAY_RANGE:
        low, high = ARRAY_RANGE[0], ARRAY_RANGE[-1]
        message = f"must be {low} to {high}, is {array_size}"
        fix = "submit a plain job" if array_size < low else "submit several arrays"
        found.append(ARRAY_SIZE.finding("array_size", message, fix))
    found += dependencies(depends_on, is_array=array_size is not None)
    if tags and len(tags) > MAX_TAGS:
        found.append(TAGS.finding("tags", f"has {len(tags)}, of which AWS takes {MAX_TAGS}", "drop some"))
    return found


def dependencies(depends_on: Sequence[Mapping[str, str]], *, is_array: bool) -> list[Finding]:
    found: list[Finding] = []
    if len(depends_on) > MAX_DEPENDENCIES:
        message = f"has {len(depends_on)} jobs, of which AWS takes {MAX_DEPENDENCIES}"
        found.append(DEPENDENCY_COUNT.finding("depends_on", message, "depend on one job that depends on the others"))
    for i, dependency in enumerate(depends_on):
        field, kind, job_id = f"depends_on[{i}]", dependency.get("type"), dependency.get("jobId")
        if kind not in (None, "N_TO_N", "SEQUENTIAL"):
            found.append(DEPENDENCY.finding(f"{field}.type", f'is "{kind}"', "use N_TO_N, SEQUENTIAL or none"))
        elif kind and not is_array:
            message = f"is {kind}, which is for array jobs"
            found.append(DEPENDENCY.finding(f"{field}.type", message, "leave it out, or give array_size"))
        if not job_id and kind != "SEQUENTIAL":
            found.append(DEPENDENCY.finding(field, "names no job", "write the id of the job to wait for"))
    return found


def request_size(request: Mapping[str, object], *, exports: bool = False) -> list[Finding]:
    """Check a request against Batch and ECS. `exports`: its command holds the parameters of a sweep."""
    found: list[Finding] = []
    payload = len(json.dumps(request))  # as botocore writes it: with spaces, and escapes for what is not ASCII
    if payload > MAX_PAYLOAD_BYTES:
        message = f"has {payload} bytes, of which Batch takes {MAX_PAYLOAD_BYTES}"
        found.append(PAYLOAD.finding("request", message, "put long arguments into a file in a bucket"))
    wanted = {"containerOverrides": [_overrides(request)]}
    overrides = len(json.dumps(wanted, separators=(",", ":"), ensure_ascii=False))
    field, has = "request.containerOverrides", f"has {overrides} characters of overrides (command, env)"
    fix = "put long values into a file, or into the job definition"
    if exports:
        fix = "sweep.shell: false leaves the sweep's parameters to the program; a grid takes less room than a list"
    if overrides > MAX_OVERRIDES:
        found.append(OVERRIDES.finding(field, f"{has}, of which ECS takes {MAX_OVERRIDES}", fix))
    elif overrides > MAX_OVERRIDES - _OVERRIDES_MARGIN:
        message = f"{has}, of which ECS takes {MAX_OVERRIDES}, those that Batch adds included"
        found.append(OVERRIDES_NEAR.finding(field, message, fix))
    return found


def _overrides(request: Mapping[str, Any]) -> object:
    ranges = request.get("nodeOverrides", {}).get("nodePropertyOverrides", [])
    return (ranges[0] if ranges else request).get("containerOverrides", {})
