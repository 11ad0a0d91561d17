"""A moto server with what an AWS Batch target needs, and a proxy in front of it that breaks chosen calls."""

import http.client
import json
import logging
import random
import select
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from moto.batch.models import BatchBackend, batch_backends
from moto.dynamodb.models import DynamoDBBackend
from moto.server import ThreadedMotoServer

from accel.contract import claims
from tests.jobs.backends.aws_batch_target import ACCOUNT, LOG_GROUP, REGION


class Cloud:
    """moto in this process. Batch finishes each job at once (it runs nothing)."""

    def __init__(self) -> None:
        _mend_moto()
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"
        # moto's state is this process's, whichever server is asked.
        for path, body in (("reset", ""), ("config", json.dumps({"batch": {"use_docker": False}}))):
            connection = http.client.HTTPConnection(host, port)
            connection.request("POST", f"/moto-api/{path}", body)
            connection.getresponse().read()
        self._make()

    def stop(self) -> None:
        self._server.stop()

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION, endpoint_url=self.endpoint)

    @cached_property
    def batch(self) -> Any:
        return self.client("batch")

    def jobs(self, name: str) -> list[str]:
        """The ids of the jobs with a name, straight from moto."""
        backend = batch_backends[ACCOUNT][REGION]
        return [job.job_id for job in backend._jobs.copy().values() if job.job_name == name and ":" not in job.job_id]

    def _make(self) -> None:
        role = {"Version": "2012-10-17", "Statement": []}
        iam = self.client("iam")
        service_role = iam.create_role(RoleName="batch", AssumeRolePolicyDocument=json.dumps(role))["Role"]["Arn"]
        environment = self.batch.create_compute_environment(
            computeEnvironmentName="spot", type="UNMANAGED", serviceRole=service_role
        )["computeEnvironmentArn"]
        self.batch.create_job_queue(
            jobQueueName="gpu",
            state="ENABLED",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
        )
        self.batch.register_job_definition(
            jobDefinitionName="train",
            type="container",
            containerProperties={
                "image": "registry.example/train:1.0",
                "resourceRequirements": [
                    {"type": "VCPU", "value": "8"},
                    {"type": "MEMORY", "value": "28000"},
                ],
            },
        )
        self.client("dynamodb").create_table(
            TableName="claims",
            KeySchema=[{"AttributeName": claims.KEY, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": claims.KEY, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.client("logs").create_log_group(logGroupName=LOG_GROUP)


def _mend_moto() -> None:
    """Departures: a definition's ARN works without its revision, an array's tasks are listed only where they are
    asked for, and DynamoDB's writes are atomic."""
    if getattr(BatchBackend, "mended", False):
        return
    by_identifier = BatchBackend.get_job_definition

    def get_job_definition(self: Any, identifier: str) -> Any:
        tail = identifier.rpartition("/")[2]
        return by_identifier(self, tail if "/" in identifier and ":" not in tail else identifier)

    BatchBackend.get_job_definition = get_job_definition  # type: ignore[method-assign]
    every = BatchBackend.list_jobs

    def list_jobs(self: Any, job_queue_name: str | None, **asked: Any) -> list[Any]:
        return [job for job in every(self, job_queue_name, **asked) if not (job_queue_name and ":" in job.job_id)]

    BatchBackend.list_jobs = list_jobs  # type: ignore[method-assign]
    lock = threading.RLock()
    for name in ("put_item", "update_item", "delete_item", "get_item"):
        method = getattr(DynamoDBBackend, name)

        def locked(*args: Any, method: Callable[..., Any] = method, **kwargs: Any) -> Any:
            with lock:
                return method(*args, **kwargs)

        setattr(DynamoDBBackend, name, locked)
    BatchBackend.mended = True  # type: ignore[attr-defined]


ANSWERS = {
    "429": (429, "TooManyRequestsException"),
    "400 throttle": (400, "ThrottlingException"),
    "400": (400, "ClientException"),
    "403": (403, "AccessDeniedException"),
    "403 expired": (403, "ExpiredTokenException"),
    "500": (500, "ServerException"),
    "502": (502, ""),
    "503": (503, "ServiceUnavailable"),
    "504": (504, ""),
}
"""Faults that are answers, given without asking moto."""
BODIES = {
    "html": b"<html>sign in</html>",
    "other": b'{"foo": 1}',
    "list": b"[]",
    "null": b"null",
    "empty": b"",
}


@dataclass
class Chance:
    """A share of all calls that breaks in some way."""

    random: random.Random
    rate: float
    faults: list[str]


class Proxy:
    """Forwards to moto, except for the calls that `faults` holds, by operation, each used up once.

    A fault is a name out of ANSWERS, or one without asking moto: `reset`, `close`, `hang`; or one after moto
    has answered: `accept+reset`, `+close`, `+hang`, `+truncate`, `+500`, `+drip`, `+body:<name of BODIES>`.

    Calls are served one after the other, and one whose client has gone is lost: so on a slow machine too, a call
    that was given up is seen by the calls after it or never happens. A client's quiet period stands for that.
    """

    def __init__(self, endpoint: str) -> None:
        self._to = endpoint.removeprefix("http://")
        self.faults: dict[str, list[str]] = defaultdict(list)
        self.calls: dict[str, int] = defaultdict(int)
        self.chance: Chance | None = None
        self.accepted = threading.Event()
        """Set when moto has answered a call that will be broken."""
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.endpoint = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def heal(self) -> None:
        """No more faults."""
        self.faults.clear()
        self.chance = None

    def stop(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._handle(connection)

    def _handle(self, connection: socket.socket) -> None:
        try:
            with connection:
                request = _request(connection)
                if request and not _gone(connection):
                    self._answer(connection, *request)
        except OSError:
            pass  # the client went away

    def _answer(self, connection: socket.socket, line: str, headers: dict[str, str], body: bytes) -> None:
        operation = _operation(line, headers)
        self.calls[operation] += 1
        fault = self.faults[operation].pop(0) if self.faults[operation] else ""
        if self.chance and self.chance.random.random() < self.chance.rate:
            fault = self.chance.random.choice(self.chance.faults)
        if fault in ANSWERS:
            status, code = ANSWERS[fault]
            text = json.dumps({"__type": code, "message": fault}).encode() if code else BODIES["html"]
            connection.sendall(_response(status, [("x-amzn-errortype", code)] if code else [], text))
            return
        if fault in ("reset", "close", "hang"):
            _break(connection, fault)
            return
        status, answered, text = self._forward(line, headers, body)
        how = fault.removeprefix("accept+")
        if fault:
            self.accepted.set()
        if how == "500":
            connection.sendall(_response(500, [("x-amzn-errortype", "ServerException")], b"{}"))
        elif how.startswith("body:"):
            connection.sendall(_response(200, [], BODIES[how.removeprefix("body:")]))
        elif how == "truncate":
            connection.sendall(_response(status, answered, text)[: -len(text) // 2])
        elif how == "drip":
            for byte in _response(status, answered, text):
                connection.sendall(bytes([byte]))
                time.sleep(0.002)
        elif how:
            _break(connection, how)
        else:
            connection.sendall(_response(status, answered, text))

    def _forward(self, line: str, headers: dict[str, str], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        method, path, _ = line.split(" ", 2)
        upstream = http.client.HTTPConnection(self._to, timeout=30)
        upstream.request(method, path, body, {**headers, "connection": "close"})
        response = upstream.getresponse()
        text = response.read()
        upstream.close()
        kept = [each for each in response.getheaders() if each[0].lower() in KEPT]
        return response.status, kept, text


KEPT = ("content-type", "date", "x-amzn-errortype", "x-amzn-requestid", "x-amz-crc32")


def _request(connection: socket.socket) -> tuple[str, dict[str, str], bytes] | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return None
        data += part
        if not data[:1].isupper():
            return None  # the begin of TLS
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return line, headers, body


def _gone(connection: socket.socket) -> bool:
    """Whether the client closed, which it does when it waits no longer."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and not connection.recv(1, socket.MSG_PEEK)


def _operation(line: str, headers: dict[str, str]) -> str:
    target = headers.get("x-amz-target", "").rpartition(".")[2]
    return target or line.split(" ")[1].rpartition("/")[2]


def _response(status: int, headers: list[tuple[str, str]], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _break(connection: socket.socket, how: str) -> None:
    if how == "hang":
        connection.settimeout(3)
        connection.recv(1)  # until the client gives up
    elif how == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
