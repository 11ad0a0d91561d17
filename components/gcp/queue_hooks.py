"""A hook before the deletion of a queued resource, which deletes its TPU too: the API deletes one that has a TPU only
with `force`, which the provider does not send, and an update would fail while the TPU exists. The provider treats what
is gone already as deleted. A state names the hooks of its resources, so a program that has used them registers them in
every run. Sources: https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources/delete,
https://github.com/hashicorp/terraform-provider-google-beta/blob/06b488123ac63ec1e9727c3da22ddf5708eb858b/google-beta/services/tpuv2/resource_tpu_v2_queued_resource.go"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import pulumi

from accel.clouds.google.rest import PASSING, root_of, session
from accel.diagnostics.errors import JobsError

PATIENCE_S = 20 * 60
"""The provider's own timeout."""

PAUSE_S = 1.0


def queue_hooks() -> pulumi.ResourceHookBinding:
    """Register the hook and return it for TpuQueueArgs."""

    def before_delete(args: pulumi.ResourceHookArgs) -> None:
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(f"{args.name}: {args.id} is deleted, and its TPU with it")
        else:
            delete(args.id)

    in_preview_too = pulumi.ResourceHookOptions(on_dry_run=True)
    return pulumi.ResourceHookBinding(
        before_delete=[pulumi.ResourceHook("accel:gcp:TpuQueue:gone", before_delete, in_preview_too)]
    )


def delete(name: str) -> None:
    """Delete projects/<p>/locations/<z>/queuedResources/<q> with its TPU, and wait until it is gone. Raise RunError if
    Google refuses, or on timeout."""
    requests: Any = import_module("requests")
    url = f"{root_of('tpu')}/v2/{name}"
    http = caller_session()
    end, asked, last = time.monotonic() + PATIENCE_S, False, ""
    while time.monotonic() < end:
        verb, query = ("GET", None) if asked else ("DELETE", {"force": "true"})
        try:
            answer = http.request(verb, url, params=query, timeout=30, allow_redirects=False)
        except requests.RequestException as error:
            last = f"{error}"
        else:
            if answer.status_code == 404:
                return
            last = f"HTTP {answer.status_code}: {answer.text[:500]}"
            if not answer.ok and answer.status_code not in PASSING:
                raise pulumi.RunError(f"{name} could not be deleted: {last}")
            asked = asked or answer.ok
        time.sleep(PAUSE_S)
    raise pulumi.RunError(f"{name} is still there after {PATIENCE_S} s: {last}")


def caller_session() -> Any:
    """Return an HTTP session of the caller. Raise RunError."""
    try:
        return session()
    except JobsError as error:
        raise pulumi.RunError(str(error)) from error
