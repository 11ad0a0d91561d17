"""Container images and environment variables, on any cloud."""

import re
from collections.abc import Mapping

from accel.diagnostics.findings import Finding
from accel.rules import image_names
from accel.rules.table import rule

IMAGE = rule("container.image.name")
LATEST = rule("container.image.latest")
GCR = rule("container.image.gcr")
ENV_NAME = rule("container.env.name")
ENV_VALUE = rule("container.env.value")
ENV_RESERVED = rule("aws.env.reserved")
VISIBLE_DEVICES = rule("aws.env.visible-devices")
VISIBLE_DEVICES_NO_GPU = rule("aws.env.visible-devices-without-gpu")

ASSIGNED = ("NVIDIA_VISIBLE_DEVICES",)
"""Variables that ECS sets in a job with GPUs, so that the job's own value is dropped (VISIBLE_DEVICES)."""

LOCAL = "local/"
"""Prefix of images that are a folder of this machine instead of a registry's image."""

IMAGE_MAX = 255
"""Of AWS Batch. Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_ContainerProperties.html"""
_GCR_LOCATION = {"gcr.io": "us", "us.gcr.io": "us", "eu.gcr.io": "europe", "asia.gcr.io": "asia"}
_CONTROL = re.compile(r"[\n\r\0]")


def image(name: str, field: str = "image") -> list[Finding]:
    try:
        parsed = image_names.parse(name)
    except ValueError as why:
        return [_no_name(name, str(why), field)]
    if len(name) > IMAGE_MAX:
        return [_no_name(name, f"it has {len(name)} characters", field)]
    found: list[Finding] = []
    if not parsed.digest and parsed.tag in ("", "latest") and not name.startswith(LOCAL):
        message = f'is "{name}", which names another image after the next push'
        found.append(LATEST.finding(field, message, "name a version or a digest (@sha256:...)"))
    if parsed.host in _GCR_LOCATION and "/" in parsed.repository:
        project, _, rest = name.partition("/")[2].partition("/")
        now = f"{_GCR_LOCATION[parsed.host]}-docker.pkg.dev/{project}/{parsed.host}/{rest}"
        message = f'is "{name}", a Container Registry name, which Artifact Registry serves now'
        found.append(GCR.finding(field, message, f"write {now}"))
    return found


def _no_name(name: str, why: str, field: str) -> Finding:
    shown = f'"{name[:80]}"' if name.isprintable() else repr(name[:80])
    fix = "write registry/repository:tag or registry/repository@sha256:<64 digits>"
    return IMAGE.finding(field, f"is {shown}, which is no image name: {why}", fix)


def environment(variables: Mapping[str, object], field: str = "env") -> list[Finding]:
    found: list[Finding] = []
    for name, value in variables.items():
        shown = f"{field}.{_CONTROL.sub('?', name)}"
        if not name or "=" in name or _CONTROL.search(name):
            fix = "use letters, digits and _"
            found.append(ENV_NAME.finding(shown, "is not the name of a variable", fix))
        # The value is never shown: it may be a misplaced secret.
        if not isinstance(value, str):
            fix = 'write it in quotes, such as "50"'
            found.append(ENV_VALUE.finding(shown, f"must be text, is a {type(value).__name__}", fix))
        elif _CONTROL.search(value):
            message = "holds a line break or NUL"
            found.append(ENV_VALUE.finding(shown, message, "put it into a file or a secret"))
    return found


def aws_environment(variables: Mapping[str, object], gpus: int, field: str = "env") -> list[Finding]:
    """Check what Batch and ECS reserve too. `gpus`: the job's reservation."""
    found = environment(variables, field)
    for name in variables:
        shown = f"{field}.{name}"
        if name.startswith("AWS_BATCH"):
            message = f'is "{name}"; names that begin with AWS_BATCH are set by Batch'
            found.append(ENV_RESERVED.finding(shown, message, "give the variable another name"))
        if name == "NVIDIA_VISIBLE_DEVICES" and gpus:
            message = f"is set, and ECS sets it to the {gpus} GPU{'s' * (gpus > 1)} that it assigns"
            found.append(VISIBLE_DEVICES.finding(shown, message, "leave it out"))
        elif name == "NVIDIA_VISIBLE_DEVICES":
            message = "is set in a job that reserves no GPU, which would show it the GPUs of other jobs"
            found.append(VISIBLE_DEVICES_NO_GPU.finding(shown, message, "reserve GPUs (gpus: 1), or leave it out"))
    return found
