"""Cloud Run functions (v2) that messages of a topic call: the deployed archive is unpacked, and its handler is called
in a process with the deployed environment.

Not done: builds, requirements.txt, Eventarc, IAM of the trigger, secrets, timeouts, sizes. A failed call is made again
where the function's retry policy says so, at most three times. GET /sandbox-api/functions lists the calls.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..trees import kill_tree
from .accounts import Media
from .errors import Refused
from .world import Call, Collection, Json, World, stamp

METADATA = "/computeMetadata/v1/"
RUNTIMES = ("python310", "python311", "python312", "python313", "python314")
"""Source: https://docs.cloud.google.com/functions/docs/runtime-support"""
PUBLISHED = "google.cloud.pubsub.topic.v1.messagePublished"
ATTEMPTS = 3
_APIS = ("storage", "container", "compute", "tpu", "batch", "aiplatform", "secretmanager", "cloudbilling")
_CALLS = "cloudfunctions/calls"
_FUNCTIONS = "cloudfunctions.projects.locations.functions"

_BOOT = """\
import importlib.util, json, sys, types
told = json.load(sys.stdin)
framework = types.ModuleType("functions_framework")
framework.cloud_event = lambda function: function
if importlib.util.find_spec("functions_framework") is None:
    sys.modules["functions_framework"] = framework
sys.path.insert(0, told["folder"])
import main
getattr(main, told["entry"])(types.SimpleNamespace(data=told["data"], **told["event"]))
"""
"""What the functions framework does with an event, as far as a handler sees it. Source:
https://github.com/GoogleCloudPlatform/functions-framework-python"""


def _made(call: Call, key: str, item: Json) -> None:
    build, service = item.get("buildConfig", {}), item.setdefault("serviceConfig", {})
    if build.get("runtime") not in RUNTIMES:
        raise Refused(400, f"runtime: Runtime {build.get('runtime')} is not supported on GCF Gen2")  # from memory
    source = build.get("source", {}).get("storageSource", {})
    if _archive(call.world, source) is None:
        raise Refused(400, f"Build source gs://{source.get('bucket')}/{source.get('object')} was not found")  # as above
    trigger = item.get("eventTrigger", {})
    topic = trigger.get("pubsubTopic", "")
    if trigger.get("eventType") == PUBLISHED and f"pubsub/{topic}" not in call.world.items:
        raise Refused(400, f"Topic {topic} was not found")  # as above
    project, name = key.split("/")[1], key.rpartition("/")[2]
    for email in (service.get("serviceAccountEmail"), trigger.get("serviceAccountEmail")):
        if email and f"iam/projects/{project}/serviceAccounts/{email}" not in call.world.items:
            raise Refused(400, f"Service account {email} was not found")  # as above
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


def _changed(call: Call, item: Json, news: Json) -> None:
    _made(call, call.key, news)


def _gone(call: Call, key: str) -> str:
    at, _, name = key.rpartition("/functions/")
    call.world.items.pop(f"run/{at}/services/{name}", None)
    call.world.policies.pop(f"run/{at}/services/{name}", None)
    return ""


def _archive(world: World, source: Json) -> bytes | None:
    return world.media.get(f"storage/b/{source.get('bucket')}/o/{quote(source.get('object', ''), safe='')}")


def delivered(world: World, topic: str, message: Json) -> None:
    """Calls every function of a topic with a message. Does not wait."""
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


def calls(world: World) -> list[Json]:
    """Every call so far: {"function", "message", "attempts", "ended", "code", "output"}."""
    return world.live.get(_CALLS, [])


class _Running:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def kill(self) -> None:
        kill_tree(self._process.pid)


def _called(world: World, item: Json, packed: bytes, data: Json, row: Json, most: int) -> None:
    folder = world.home / "functions" / item["name"].rpartition("/")[2] / row["message"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(folder)
    event = {"type": PUBLISHED, "id": row["message"], "time": stamp(), "specversion": "1.0"}
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
    """The deployed variables, and those that lead to this Google and no other."""
    root = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"
    # What stands between host and method: see sandbox/environment.py.
    paths = {"storage": "storage/v1/", "compute": "compute/v1/", "cloudbilling": "v1/"}
    roots = {f"{root}{api.upper()}": f"{world.url}/{api}.googleapis.com/{paths.get(api, '')}" for api in _APIS}
    given = {str(name): str(value) for name, value in item["serviceConfig"].get("environmentVariables", {}).items()}
    host = world.url.partition("://")[2]
    return (
        {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(Path.home()), "GCE_METADATA_HOST": host}
        | roots
        | given
    )


def metadata(world: World, path: str, flavor: str | None) -> Any:
    """What the metadata server of a function answers. Raises Refused."""
    if flavor != "Google":
        raise Refused(403, "Missing Metadata-Flavor:Google header.")
    if path == f"{METADATA}instance/service-accounts/default/token":
        return {"access_token": world.token, "expires_in": 3599, "token_type": "Bearer"}
    if path == f"{METADATA}project/project-id":
        from . import PROJECT

        return Media(PROJECT.encode())
    raise Refused(404, f"{path} was not found")


COLLECTIONS = (
    Collection(
        id=_FUNCTIONS, schema="Function", name="?functionId", style="longrunning", kind="FUNCTION", full_name=True,
        state=("state", "DEPLOYING", "ACTIVE", "DELETING"), made=_made, changed=_changed, gone=_gone,
        missing="Resource '{key}' was not found",
    ),
    Collection(id="cloudfunctions.projects.locations.operations", schema="Operation"),
    Collection(id="run.projects.locations.services", schema="GoogleCloudRunV2Service"),
)  # fmt: skip
