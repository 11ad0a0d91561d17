"""A hook before the deletion of a queued resource, which deletes its TPU too: the API deletes one that has a TPU only
with `force`, which the provider does not send, and an update would fail while the TPU exists. The provider treats what
is gone already as deleted. A state names the hooks of its resources, so a program that has used them registers them in
every run. Sources: https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources/delete,
https://github.com/hashicorp/terraform-provider-google-beta/blob/06b488123ac63ec1e9727c3da22ddf5708eb858b/google-beta/services/tpuv2/resource_tpu_v2_queued_resource.go"""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any

import pulumi

from accel.clouds.google.rest import GIVEN, PASSING, SCOPE, root_of

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
    headers = {"Authorization": f"Bearer {token()}"}
    end, asked, last = time.monotonic() + PATIENCE_S, False, ""
    while time.monotonic() < end:
        verb, query = ("GET", None) if asked else ("DELETE", {"force": "true"})
        try:
            answer = requests.request(verb, url, params=query, headers=headers, timeout=30)
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


def token() -> str:
    """Return an access token of the caller. Source:
    https://googleapis.dev/python/google-auth/latest/reference/google.auth.html"""
    if given := os.environ.get(GIVEN):
        return given
    failures: Any = import_module("google.auth.exceptions")
    try:
        credentials, _ = import_module("google.auth").default(scopes=[SCOPE])
        credentials.refresh(import_module("google.auth.transport.requests").Request())
    except failures.GoogleAuthError as error:
        raise pulumi.RunError(f"Google: {error.args[0] if error.args else error}") from error
    return credentials.token
