"""The sandbox's AWS: a moto server whose Batch is sandbox.aws.batch. Run as `python -m sandbox.aws --home DIR`.

Requests are signed with an access key of keys.py. Control, besides the AWS APIs, by whoever has the key of DIR/key:
    POST   /sandbox-api/clock   {"advance_s": N}: moves the clock of Batch forward;
                                {"settle_s": N}: how long each later change of a resource shows.
    POST   /sandbox-api/faults  {"operation": "SubmitJob", "kind": "throttle", "count": 3}: batch/faults.py;
                                {"kind": "reclaim", "job_id": ID}: takes away the instance of a running job;
                                {"kind": "stockout", "instance_types": [...]}: no more of these, [] ends it;
                                {"kind": "unregistered", "environments": [...]}: instances start and never register
                                with ECS, as without egress or an agent;
                                {"kind": "invalid", "environments": {NAME: REASON}}: they become INVALID, and so again
                                after an update or a deletion;
                                {"kind": "slow-unlink", "seconds": N}: how long an environment stays in use after its
                                queue has let go of it.
    POST   /sandbox-api/spend   {"budget": NAME, "actual": 1200}: what a budget shows; budgets.py.
    POST   /sandbox-api/functions {"function": NAME, "event": {}}: calls a Lambda function; functions.py.
    POST   /sandbox-api/quotas  {"L-DB2E81BA": 0}: what is granted of a quota; service_quotas.py.
    POST   /sandbox-api/permissions {"caller": NAME, "policies": [{}]}: what an access key may do; permissions.py.
    GET    /sandbox-api/faults  the plans and how often each fired; DELETE ends them.
"""

import argparse
import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from ..keys import key
from ..starting import announce, without_collector
from . import account, budgets, calls, limits
from .answers import Answer, document, send
from .permissions import Callers
from .signatures import CONTROL, Guard

# Our rules refuse 123456789012, moto's account, and the other sample accounts of AWS's pages.
ACCOUNT_ID = "210020003000"
SETTINGS = {
    "MOTO_ACCOUNT_ID": ACCOUNT_ID,
    # Components attach AWS's managed policies, which moto does not know otherwise.
    "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
}
SERVICES = (
    "batch",
    "budgets",
    "cloudwatch",
    "dynamodb",
    "ec2",
    "ecr",
    "ecs",
    "events",
    "iam",
    "lambda",
    "logs",
    "s3",
    "secretsmanager",
    "service-quotas",
    "sns",
    "ssm",
    "sts",
)

NOT_SERVED = b"<ErrorResponse><Error><Code>InvalidAction</Code></Error></ErrorResponse>"


class Cloud:
    """WSGI application behind the guard. The guard has read the body, so a slow client does not stop the others."""

    def __init__(self, world: Any) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app

        from .batch import api, capacity, faults
        from .functions import Functions

        self._world, self._faults, self._api, self._capacity = world, faults, api, capacity
        self._plans: list[Any] = []
        self._quotas = world.quotas
        self._account = partial(account.answer, granted=self._quotas.granted, account_id=ACCOUNT_ID)
        self._callers = Callers(ACCOUNT_ID)
        self._functions = Functions(world)
        self._functions.install()
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].getvalue()
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path.startswith(CONTROL):
            return send(start_response, *self._control(method, path, body))
        service, region, _ = calls.scope(environ)
        with self._world.lock:
            if refusal := self._callers.refusal(calls.parse_call(environ, body)):
                return send(start_response, *refusal)
            operation = self._operation(service, environ, body)
            plan = next((plan for plan in self._plans if plan.take(operation)), None)
            if plan is None or plan.after():
                answer = self._answer(service, region, environ, body)
            else:
                answer = None
        if plan:
            answer = self._faulted(plan, service, environ, answer)
        return send(start_response, *answer) if answer else []

    def _operation(self, service: str, environ: dict[str, Any], body: bytes) -> str:
        if service == "batch":
            return self._api.operation(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        if target := environ.get("HTTP_X_AMZ_TARGET"):
            return target.rpartition(".")[2]
        if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
            return parse_qs(body.decode()).get("Action", [""])[0]
        # S3 names no operation: a plan for it says `s3:PUT`.
        return f"{service}:{environ['REQUEST_METHOD']}"

    def _answer(self, service: str, region: str, environ: dict[str, Any], body: bytes) -> Answer:
        if service in ("batch", "autoscaling"):
            from moto.batch.models import batch_backends

            batch: Any = batch_backends[ACCOUNT_ID][region]
            if service == "autoscaling":
                found = self._capacity.answer(batch, self._operation(service, environ, body), body)
                return 200 if found else 400, [("Content-Type", "text/xml")], found or NOT_SERVED
            status, told = self._api.answer(
                batch, environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", ""), body
            )
            headers = [("Content-Type", "application/json")]
            if status >= 400:
                headers.append(("x-amzn-ErrorType", told["__type"]))
            return status, headers, json.dumps(told).encode()
        operation = self._operation(service, environ, body)
        if own := limits.answer(service, operation, body) or self._account(service, operation, region, body):
            return own
        if service == "servicequotas" and (own := self._quotas.answer(operation, region, body)):
            return own
        if service == "budgets" and (own := budgets.answer(operation, ACCOUNT_ID, body)):
            return own
        if service == "ec2":
            from . import ec2

            if own := ec2.answer(operation, ACCOUNT_ID, region, body):
                return own
        started: list[Any] = []
        parts = self._moto(environ, lambda status, headers, *_: started.extend((status, headers)))
        return int(started[0].split()[0]), started[1], b"".join(parts)

    def _faulted(self, plan: Any, service: str, environ: dict[str, Any], answer: Answer | None) -> Answer | None:
        """Return None once the call's connection is closed."""
        if plan.kind in self._faults.ANSWERS:
            return self._faults.error_answer(plan.kind, service)
        if plan.kind == "wrong-schema":
            return 200, [("Content-Type", "application/json")], b'{"unexpected": []}'
        connection: socket.socket = environ["werkzeug.socket"]
        if plan.kind.startswith("hang"):
            time.sleep(plan.hang_s)
        if plan.kind == "truncate" and answer:
            body = answer[2]
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body[: len(body) // 2])
        else:
            # With a linger time of 0, close sends a reset instead of an orderly end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
        raise ConnectionResetError("planned by the sandbox")

    def _control(self, method: str, path: str, body: bytes) -> Answer:
        from .batch.lifecycle import reclaim
        from .batch.state import BatchError

        try:
            request = json.loads(body or b"{}")
            if path == f"{CONTROL}functions":  # without the lock: a function calls the APIs
                calls = self._functions
                done: Any = calls.call(request["function"], request["event"]) if method == "POST" else calls.wait()
                return document(200, done)
            with self._world.lock:
                match method, path.removeprefix(CONTROL):
                    case "POST", "clock":
                        self._world.settle_s = float(request.get("settle_s", self._world.settle_s))
                        self._world.advance(float(request.get("advance_s", 0)))
                        answer = {"now": self._world.now()}
                    case "POST", "faults" if request.get("kind") == "reclaim":
                        found = [row for row in self._world.batches if request["job_id"] in row.running]
                        answer = {"instance": reclaim((found or self._world.batches)[0], request["job_id"])}
                    case "POST", "faults" if request.get("kind") == "stockout":
                        self._world.stockouts = set(request["instance_types"])
                        answer = {"instance_types": sorted(self._world.stockouts)}
                    case "POST", "faults" if request.get("kind") in ("unregistered", "invalid"):
                        named = getattr(self._world, request["kind"])
                        named.clear()
                        named.update(request["environments"])
                        answer = {"environments": sorted(named)}
                    case "POST", "faults" if request.get("kind") == "slow-unlink":
                        self._world.unlink_s = float(request["seconds"])
                        answer = {"unlink_s": self._world.unlink_s}
                    case "POST", "faults":
                        self._plans.append(self._faults.Plan(**request))
                        answer = {}
                    case _, "permissions":
                        answer = self._callers.control(method, request)
                    case "GET", "faults":
                        answer = {"plans": [plan.as_json() for plan in self._plans]}
                    case "POST", "spend":
                        answer = budgets.spend(ACCOUNT_ID, request)
                    case "GET" | "POST", "quotas":
                        answer = self._quotas.grant(request)
                    case "DELETE", "faults":
                        self._plans.clear()
                        for named in (self._world.stockouts, self._world.unregistered, self._world.invalid):
                            named.clear()
                        answer = {}
                    case _:
                        return 404, [], b"{}"
            return document(200, answer)
        except (KeyError, TypeError, ValueError, BatchError) as error:
            return document(400, {"message": str(error)})


def load_moto() -> None:
    """Import what moto serves, with the settings that it reads then."""
    os.environ.update(SETTINGS)
    _keep_what_stays()
    from moto import backends

    for service in SERVICES:
        backends.get_backend(service)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _keep_what_stays() -> None:
    """For each call, moto lists the methods of a class and the folders of its package: a fifth of the time it takes."""
    from moto.core import responses
    from moto.server import DomainDispatcherApplication

    calls.keep_models()
    responses.method_names_from_class = cache(responses.method_names_from_class)
    DomainDispatcherApplication.get_backend_for_host = cache(DomainDispatcherApplication.get_backend_for_host)


def serve(home: Path, port: int, root: Path) -> None:
    """Serve until SIGTERM or SIGINT, and end every process of every job before returning."""
    told = home / "cloud.json"
    # The file of a killed server: nobody may mistake its port for this server's.
    told.unlink(missing_ok=True)
    with without_collector():
        server, scheduler, world = _build(home, port, root)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    scheduler.start()
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    announce(told, port=server.port, url=world.endpoint, account_id=ACCOUNT_ID)
    stop.wait()
    told.unlink(missing_ok=True)
    server.shutdown()
    scheduler.stop()


def _build(home: Path, port: int, root: Path) -> tuple[Any, Any, Any]:
    """Return the server, the scheduler of its Batch, and its world."""
    load_moto()
    from moto.batch.models import batch_backends
    from werkzeug.serving import WSGIRequestHandler, make_server

    from . import ec2, events
    from .batch.scheduler import Scheduler
    from .batch.state import Batch, World

    class Handler(WSGIRequestHandler):
        # Head and body go out in two writes: with Nagle's algorithm each answer would wait for an ACK.
        disable_nagle_algorithm = True

        def log(self, type: str, message: str, *args: Any) -> None:
            if type == "error" and "planned by the sandbox" not in message:
                super().log(type, message, *args)

    (home / "jobs").mkdir(parents=True, exist_ok=True)
    settle_s = float(os.environ.get("SANDBOX_SETTLE_S", "0.3"))
    grace_s = int(os.environ.get("SANDBOX_GRACE_S", "30"))
    unlink_s = float(os.environ.get("SANDBOX_UNLINK_S", 3 * settle_s))
    world = Batch.world = World(
        home=home,
        root=root,
        account_id=ACCOUNT_ID,
        settle_s=settle_s,
        unlink_s=unlink_s,
        grace_s=grace_s,
    )
    batch_backends.backend = Batch
    events.install()
    ec2.install()
    scheduler = Scheduler(world)
    server = make_server("127.0.0.1", port, Guard(key(home), Cloud(world)), threaded=True, request_handler=Handler)
    world.endpoint = f"http://127.0.0.1:{server.port}"
    return server, scheduler, world


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sandbox.aws", description="The sandbox's AWS.")
    parser.add_argument("--home", type=Path, required=True, help="where it tells its port and keeps job folders")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="what local/<folder> images are relative to")
    given = parser.parse_args()
    serve(given.home.resolve(), given.port, given.root.resolve())


if __name__ == "__main__":
    main()
