"""Cloud Run functions (v2), called by messages of a topic or by requests.

The deployed archive is unpacked, and its handler runs in a process with the deployed environment and the packages of
requirements.txt, as they are installed here.

Not implemented: builds, Eventarc, IAM of the trigger, secrets, timeouts, sizes. A failed call is repeated where the
function's retry policy says so, at most three times. GET /sandbox-api/functions lists the calls.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..trees import kill_tree
from . import scope_token
from .accounts import Media
from .errors import ApiError
from .world import Call, Collection, Json, World, stamp

METADATA = "/computeMetadata/v1/"
RUNTIMES = ("python310", "python311", "python312", "python313", "python314")
"""Source: https://docs.cloud.google.com/functions/docs/runtime-support"""
PUBLISHED = "google.cloud.pubsub.topic.v1.messagePublished"
ATTEMPTS = 3
AGENT_SETTLES = 10
"""Time until the service agent is ready, in operations; minutes in a real project."""
_APIS = ("storage", "container", "compute", "tpu", "batch", "aiplatform", "secretmanager", "cloudbilling")
_CALLS = "cloudfunctions/calls"
_FUNCTIONS = "cloudfunctions.projects.locations.functions"

FRAMEWORK = {
    *("functions-framework", "anyio", "cloudevents", "deprecation", "gunicorn", "h11", "starlette", "uvicorn"),
    *("uvicorn-worker", "watchdog"),
}
"""Google's framework with the packages that it alone needs, which is not installed here. Source:
https://github.com/GoogleCloudPlatform/functions-framework-python/blob/main/pyproject.toml"""

_BOOT = """\
import importlib.util, json, sys, types
told = json.load(sys.stdin)
framework = types.ModuleType("functions_framework")
framework.cloud_event = framework.http = lambda function: function
if importlib.util.find_spec("functions_framework") is None:
    sys.modules["functions_framework"] = framework
sys.path[:0] = [told["folder"], told["folder"] + "/.site"]
import main
entry = getattr(main, told["entry"])
if told["event"]:
    entry(types.SimpleNamespace(data=told["data"], **told["event"]))
else:
    answer = entry(types.SimpleNamespace(method="POST", headers={}, get_data=lambda: b""))
    body, status = answer if isinstance(answer, tuple) else (answer, 200)
    print(body)
    sys.exit(status >= 400)
"""
"""What the functions framework does with an event or a request, as far as a handler sees it. Source:
https://github.com/GoogleCloudPlatform/functions-framework-python"""


def _made(call: Call, key: str, item: Json) -> None:
    build, service = item.get("buildConfig", {}), item.setdefault("serviceConfig", {})
    if build.get("runtime") not in RUNTIMES:
        raise ApiError(400, f"runtime: Runtime {build.get('runtime')} is not supported on GCF Gen2")  # from memory
    source = build.get("source", {}).get("storageSource", {})
    if _archive(call.world, source) is None:
        # As above.
        raise ApiError(400, f"Build source gs://{source.get('bucket')}/{source.get('object')} was not found")
    trigger = item.get("eventTrigger", {})
    topic = trigger.get("pubsubTopic", "")
    if trigger.get("eventType") == PUBLISHED and f"pubsub/{topic}" not in call.world.items:
        raise ApiError(400, f"Topic {topic} was not found")  # as above
    project, name = key.split("/")[1], key.rpartition("/")[2]
    if trigger:
        _agent_ready(call.world, f"{key.rpartition('/functions/')[0]}/triggers/{name}-000001")
    for email in (service.get("serviceAccountEmail"), trigger.get("serviceAccountEmail")):
        if email and f"iam/projects/{project}/serviceAccounts/{email}" not in call.world.items:
            raise ApiError(400, f"Service account {email} was not found")  # as above
    at = key.rpartition("/functions/")[0]
    url = f"https://{name}-sandbox.a.run.app"
    service |= {"service": f"{at}/services/{name}", "uri": url}
    service |= {"allTrafficOnLatestRevision": True, "ingressSettings": service.get("ingressSettings", "ALLOW_ALL")}
    for field, value in (("timeoutSeconds", 60), ("availableMemory", "256M"), ("maxInstanceCount", 100)):
        service.setdefault(field, value)
    if trigger:
        trigger |= {"trigger": f"{at}/triggers/{name}-000001"}
        trigger.setdefault("triggerRegion", at.rpartition("/")[2])
    item |= {"environment": "GEN_2", "url": url, "updateTime": stamp()}
    call.world.items[f"run/{at}/services/{name}"] = {"name": f"{at}/services/{name}", "uri": url}


def _agent_ready(world: World, trigger: str) -> None:
    """Refuse the first triggers of a project: the first one creates its service agent, which takes time. Wording:
    https://github.com/terraform-google-modules/terraform-docs-samples/issues/486. Waiting before the first does not
    help: https://github.com/pulumi/pulumi-gcp/issues/1290"""
    born = world.live.setdefault("eventarc/agent", time.monotonic())
    if world.services is None or time.monotonic() > born + AGENT_SETTLES * world.settle_s:
        return
    text = (
        f'Validation failed for trigger {trigger}: Invalid resource state for "": Permission denied while using the '
        "Eventarc Service Agent. If you recently started to use Eventarc, it may take a few minutes before all "
        "necessary permissions are propagated to the Service Agent. Otherwise, verify that it has Eventarc Service "
        "Agent role."
    )
    raise ApiError(400, text, "failedPrecondition", "FAILED_PRECONDITION")


def _changed(call: Call, item: Json, news: Json) -> None:
    _made(call, call.key, news)


def _gone(call: Call, key: str) -> str:
    at, _, name = key.rpartition("/functions/")
    call.world.items.pop(f"run/{at}/services/{name}", None)
    call.world.policies.pop(f"run/{at}/services/{name}", None)
    return ""


def _archive(world: World, source: Json) -> bytes | None:
    return world.media.get(f"storage/b/{source.get('bucket')}/o/{quote(source.get('object', ''), safe='')}")


def deliver(world: World, topic: str, message: Json) -> None:
    """Call every function of a topic with a message. Does not wait."""
    for item in world.below("cloudfunctions", "projects/-/locations/-/functions"):
        trigger = item.get("eventTrigger", {})
        if item.get("state") == "ACTIVE" and trigger.get("pubsubTopic") == topic:
            row: Json = {"function": item["name"], "message": message["messageId"], "attempts": 0, "ended": False}
            world.live.setdefault(_CALLS, []).append(row)
            data = {"message": message, "subscription": f"{topic.rpartition('/topics/')[0]}/subscriptions/sandbox"}
            packed = _archive(world, item["buildConfig"]["source"]["storageSource"]) or b""
            again = ATTEMPTS if trigger.get("retryPolicy") == "RETRY_POLICY_RETRY" else 1
            told = (world, json.loads(json.dumps(item)), packed, data, row, again)
            threading.Thread(target=_called, args=told, daemon=True).start()


def call_function(world: World, uri: str, name: str) -> Json | None:
    """Call the function of an address, without waiting. Returns the call, or None for an unknown address."""
    for item in world.below("cloudfunctions", "projects/-/locations/-/functions"):
        if item.get("state") == "ACTIVE" and item["serviceConfig"]["uri"] == uri:
            row: Json = {"function": item["name"], "message": name, "attempts": 0, "ended": False}
            world.live.setdefault(_CALLS, []).append(row)
            packed = _archive(world, item["buildConfig"]["source"]["storageSource"]) or b""
            told = (world, json.loads(json.dumps(item)), packed, None, row, 1)
            threading.Thread(target=_called, args=told, daemon=True).start()
            return row
    return None


def calls(world: World) -> list[Json]:
    """Return every call so far: {"function", "message", "attempts", "ended", "code", "output"}."""
    return world.live.get(_CALLS, [])


class _Running:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def kill(self) -> None:
        kill_tree(self._process.pid)


def _installed(requirements: str, folder: Path) -> None:
    """Link into `folder` what pip would install for the requirements, and nothing else, from the packages installed
    here; without the packages of Google's framework, and without conditional dependencies. Raise PackageNotFoundError
    for a package that is not installed, or is of another version."""
    lines = [line for line in requirements.replace("\\\n", " ").splitlines() if not line.startswith(("#", "--"))]
    pins = [line.split()[0].partition("==")[::2] for line in lines if line.strip()]
    wanted = [(name, version) for name, version in pins if name not in FRAMEWORK]
    for name, version in wanted:
        found = distribution(name)
        if version and found.version != version:
            raise PackageNotFoundError(f"{name}=={version}")
        tops = {file.parts[0] for file in found.files or () if file.parts[0] != ".."}
        for top in sorted(tops - {each.name for each in folder.iterdir()}):
            (folder / top).symlink_to(Path(str(found.locate_file(top))).resolve())
        needs = (re.match(r"[\w.-]+", each) for each in found.requires or () if ";" not in each)
        wanted += [(each[0], "") for each in needs if each and (each[0], "") not in wanted]


def _called(world: World, item: Json, packed: bytes, data: Json | None, row: Json, most: int) -> None:
    folder = world.home / "functions" / item["name"].rpartition("/")[2] / row["message"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(folder)
    (folder / ".site").mkdir()
    try:
        _installed((folder / "requirements.txt").read_text(), folder / ".site")
    except PackageNotFoundError as error:
        row |= {"attempts": 1, "code": 1, "output": f"No matching distribution found for {error}", "ended": True}
        return
    event = data and {"type": PUBLISHED, "id": row["message"], "time": stamp(), "specversion": "1.0"}
    told = {"folder": str(folder), "entry": item["buildConfig"]["entryPoint"], "data": data, "event": event}
    code = 1
    while row["attempts"] < most and code:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT], cwd=folder, env=_environment(world, item), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        name = f"{_CALLS}/{row['function']}/{row['message']}"
        with world.lock:
            world.runs[name] = _Running(process)
        output, _ = process.communicate(json.dumps(told))
        code = process.returncode
        with world.lock:
            world.runs.pop(name, None)
            row |= {"attempts": row["attempts"] + 1, "code": code, "output": output}
    with world.lock:
        row["ended"] = True


def _environment(world: World, item: Json) -> dict[str, str]:
    """Return the deployed variables, and those that lead to this Google and no other."""
    root = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"
    # The path between host and method: see sandbox/environment.py.
    paths = {"storage": "storage/v1/", "compute": "compute/v1/", "cloudbilling": "v1/"}
    roots = {f"{root}{api.upper()}": f"{world.url}/{api}.googleapis.com/{paths.get(api, '')}" for api in _APIS}
    given = {str(name): str(value) for name, value in item["serviceConfig"].get("environmentVariables", {}).items()}
    host = world.url.partition("://")[2]
    return (
        {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(Path.home()), "GCE_METADATA_HOST": host}
        | roots
        | given
    )


def metadata(world: World, path: str, scopes: str, flavor: str | None) -> Any:
    """Answer as the metadata server of a function. A token has the scope cloud-platform unless the path names others.
    Raise ApiError. Source: https://docs.cloud.google.com/run/docs/securing/service-identity#access_tokens"""
    if flavor != "Google":
        raise ApiError(403, "Missing Metadata-Flavor:Google header.")
    if path == f"{METADATA}instance/service-accounts/default/token":
        return {"access_token": scope_token(world.token, scopes), "expires_in": 3599, "token_type": "Bearer"}
    if path == f"{METADATA}project/project-id":
        from . import PROJECT

        return Media(PROJECT.encode())
    raise ApiError(404, f"{path} was not found")


COLLECTIONS = (
    Collection(
        id=_FUNCTIONS, schema="Function", name="?functionId", style="longrunning", kind="FUNCTION", full_name=True,
        state=("state", "DEPLOYING", "ACTIVE", "DELETING"), made=_made, changed=_changed, gone=_gone,
        missing="Resource '{key}' was not found",
    ),
    Collection(id="cloudfunctions.projects.locations.operations", schema="Operation"),
    Collection(id="run.projects.locations.services", schema="GoogleCloudRunV2Service"),
)  # fmt: skip
