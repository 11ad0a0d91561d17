"""Cloud TPU and a bucket in memory, as accel.clouds.google.api.Google shows them: queued resources in Google's
own states, their nodes, and the agent on each. A client can be killed at each of its calls, or made to wait there."""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from accel.clouds.google.api import Google
from accel.clouds.google.rest import Conflict
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import NotFound

T = TypeVar("T")
Json = dict[str, Any]

NODES = {"PROVISIONING": "CREATING", "ACTIVE": "READY", "SUSPENDING": "STOPPING", "DELETING": "DELETING"}
"""The node's state by that of its request; in the others there is none."""
NEXT = {
    "CREATING": "WAITING_FOR_RESOURCES",
    "ACCEPTED": "PROVISIONING",
    "WAITING_FOR_RESOURCES": "PROVISIONING",
    "PROVISIONING": "ACTIVE",
    "SUSPENDING": "SUSPENDED",
    "DELETING": "absent",
}
STATES = (*NEXT, "ACTIVE", "SUSPENDED", "FAILED", "absent")


class Crash(BaseException):
    """kill -9 of the client."""


class World:
    """What there is. `ran` has the attempt of every command that came to its end."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.requests: dict[str, Json] = {}
        self.asked: dict[str, Json] = {}
        self.forgets = False
        """A request's id is not known any more when it is sent again, as after a day."""
        self.running: dict[str, int] = {}
        """The request's name of every agent that runs its command, and the attempt."""
        self.ran: list[int] = []
        self._generation = 0

    def make(self, path: str, body: Json, name: str, asked: str) -> Json:
        if asked in self.asked and not self.forgets:
            return self.asked[asked]
        place = path.removeprefix("v2/")
        if f"{place}/{name}" in self.requests:
            raise Conflict(f"{name}: already exists")
        own = {"name": f"{place}/{name}", "state": {"state": "CREATING"}}
        self.requests[f"{place}/{name}"] = {**json.loads(json.dumps(body)), **own}
        self.asked[asked] = {"name": f"{place.rpartition('/')[0]}/operations/{name}", "done": True}
        return self.asked[asked]

    def move(self, name: str, state: str) -> None:
        """The request comes to a state. An agent starts with its node, and ends with it."""
        self.running.pop(name, None)
        if state == "absent":
            del self.requests[name]
            return
        data = {"FAILED": {"failedData": {"error": {"code": 8, "message": "There is no more capacity in the zone"}}}}
        self.requests[name]["state"] = {"state": state, "stateInitiator": "SERVICE", **data.get(state, {})}
        if state == "ACTIVE":
            self._boot(name)

    def go_on(self, name: str) -> None:
        """The request comes to the state after its own; a command that runs, to its end."""
        state = self.requests[name]["state"]["state"]
        if name in self.running:
            job = self._job(name)
            self.put(f"{job['folder']}/result-0.json", json.dumps({"host": 0, "exit_code": 0, "reason": "exited"}), 0)
            self.ran.append(job["attempt"])
            self.move(name, "DELETING")
        elif state in NEXT:
            self.move(name, NEXT[state])

    def _boot(self, name: str) -> None:
        """As jobs/agent does: not where the record has no use for it, nor where it has run before."""
        job = self._job(name)
        record = json.loads(self.objects[f"accel-jobs/{job['name']}/record.json"][0])
        states = {each["number"]: each["state"] for each in record["attempts"]}
        over = record["ended"] or states[job["attempt"]] in ("ended", "gone") or max(states) > job["attempt"]
        if over or f"{job['folder']}/result-0.json" in self.objects:
            self.move(name, "DELETING")
            return
        assert not self.running, f"{name}: the job runs already: {self.running}"
        self.running[name] = job["attempt"]

    def _job(self, name: str) -> Json:
        return json.loads(self.requests[name]["tpu"]["nodeSpec"][0]["node"]["metadata"]["accel-job"])

    def put(self, name: str, data: bytes | str, generation: int | None) -> str:
        if generation is not None and generation != self.objects.get(name, (b"", 0))[1]:
            raise Conflict(f"{name}: the object is of another generation")
        self._generation += 1
        self.objects[name] = data.encode() if isinstance(data, str) else data, self._generation
        return str(self._generation)


class Client:
    """The world as one client's Google. `gate` is told of each call, before its effect and after it."""

    def __init__(self, world: World, gate: Callable[[bool], None] = lambda after: None) -> None:
        self.world, self._gate = world, gate
        self.timing = Timing(attempts=2, backoff_s=0)

    def _call(self, effect: Callable[[], T]) -> T:
        self._gate(False)
        try:
            return effect()
        finally:
            self._gate(True)

    def get(self, api: str, path: str, **query: object) -> Json:
        return self._call(lambda: self._got(path.removeprefix("v2/")))

    def find(self, api: str, path: str) -> Json | None:
        return Google.find(cast(Google, self), api, path)

    def _got(self, name: str) -> Json:
        place, _, _ = name.rpartition("/")
        if place.endswith("/operations"):
            return {"name": name, "done": True}
        request = self.world.requests.get(name.replace("/nodes/", "/queuedResources/"))
        if request is None:
            raise NotFound(f"{name} was not found")
        if not place.endswith("/nodes"):
            return json.loads(json.dumps(request))
        if request["state"]["state"] not in NODES:
            raise NotFound(f"{name} was not found")
        return {"name": name, "state": NODES[request["state"]["state"]]}

    def pages(self, api: str, path: str, member: str, **query: Any) -> Iterator[Json]:
        assert api == "storage"
        return self._call(
            lambda: iter([{"name": name} for name in sorted(self.world.objects) if name.startswith(query["prefix"])])
        )

    def post(self, api: str, path: str, body: Json, *, repeat: bool = False, **query: str) -> Json:
        return self._call(lambda: self.world.make(path, body, query["queuedResourceId"], query["requestId"]))

    def delete(self, api: str, path: str, **query: object) -> Json:
        def effect() -> Json:
            if (name := path.removeprefix("v2/")) in self.world.requests:
                self.world.move(name, "DELETING")
            return {}

        return self._call(effect)

    def read(self, api: str, path: str, **query: object) -> tuple[bytes, str]:
        def effect() -> tuple[bytes, str]:
            name = path.partition("/o/")[2].replace("%2F", "/")
            if name not in self.world.objects:
                raise NotFound(f"{name} was not found")
            data, generation = self.world.objects[name]
            return data, str(generation)

        return self._call(effect)

    def write(self, bucket: str, name: str, data: bytes, *, generation: int | str | None, kind: str = "") -> str:
        return self._call(lambda: self.world.put(name, data, None if generation is None else int(generation)))
