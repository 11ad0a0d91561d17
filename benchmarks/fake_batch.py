"""What `jobs` asks of AWS Batch and DynamoDB, answered late, with AWS's page sizes and its rate of SubmitJob.

`python -m benchmarks.fake_batch DELAY_S` prints its port. The sandbox would do, and is too slow: on one core it serves
about as many calls a second as the rate that is to be measured.

    POST /delay {"s": 0.1}   POST /rate {"per_s": 50}   POST /jobs {"count": 10000}
    POST /calls: the times of each operation's arrivals
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from email.utils import formatdate
from itertools import cycle, islice
from typing import Any

SUBMITS_PER_S = 50
"""Source: https://docs.aws.amazon.com/batch/latest/userguide/service_limits.html"""
PAGE, FILTERED_PAGE = 1000, 100
"""Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_ListJobs.html"""
STATES = [*["SUCCEEDED"] * 6, "FAILED", "RUNNABLE", "RUNNING", "STARTING"]

Answer = tuple[int, dict[str, Any]]
Document = dict[str, Any]


class Service:
    """The operations, by the end of their path or by their target."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.submits_per_s = SUBMITS_PER_S
        self.jobs: dict[str, Document] = {}
        self.rows: dict[str, Document] = {}
        self.calls: dict[str, list[float]] = defaultdict(list)
        self.operations: dict[str, Callable[[Document], Answer]] = {
            "submitjob": self.submit,
            "listjobs": self.list,
            "describejobs": self.describe,
            "GetItem": self.get,
            "PutItem": self.put,
            "UpdateItem": self.update,
            "delay": self.set_delay,
            "rate": self.set_rate,
            "jobs": self.preset,
            "calls": lambda asked: (200, dict(self.calls)),
        }

    async def answer(self, name: str, asked: Document) -> Answer:
        self.calls[name].append(time.monotonic())
        status, document = self.operations[name](asked)
        if name not in ("delay", "rate", "jobs", "calls"):
            await asyncio.sleep(self.delay_s)
        return status, document

    def submit(self, asked: Document) -> Answer:
        now = time.monotonic()
        if sum(at > now - 1 for at in self.calls["submitjob"][-2 * self.submits_per_s :]) > self.submits_per_s:
            return 429, {"__type": "TooManyRequestsException", "message": "Too Many Requests"}
        return 200, {"jobId": self._made(asked["jobName"], "RUNNABLE"), "jobName": asked["jobName"]}

    def list(self, asked: Document) -> Answer:
        size, start = FILTERED_PAGE if asked.get("filters") else PAGE, int(asked.get("nextToken") or 0)
        state = None if asked.get("filters") else asked.get("jobStatus", "RUNNING")
        found = [job for job in self.jobs.values() if state in (None, job["status"])]
        more = {"nextToken": str(start + size)} if start + size < len(found) else {}
        return 200, {"jobSummaryList": found[start : start + size], **more}

    def describe(self, asked: Document) -> Answer:
        return 200, {"jobs": [self.jobs[job_id] for job_id in asked["jobs"][:100] if job_id in self.jobs]}

    def get(self, asked: Document) -> Answer:
        row = self.rows.get(str(asked["Key"]))
        return 200, {"Item": row} if row else {}

    def put(self, asked: Document) -> Answer:
        assert asked["ConditionExpression"] == "attribute_not_exists(#key)"
        key = str({"submission_key": asked["Item"]["submission_key"]})
        if key in self.rows:
            return 400, {"__type": "ConditionalCheckFailedException", "message": "The conditional request failed"}
        self.rows[key] = asked["Item"]
        return 200, {}

    def update(self, asked: Document) -> Answer:
        assert asked["UpdateExpression"] == "SET #job_id = :new_job_id"
        self.rows[str(asked["Key"])]["job_id"] = asked["ExpressionAttributeValues"][":new_job_id"]
        return 200, {}

    def set_delay(self, asked: Document) -> Answer:
        self.delay_s = asked["s"]
        return 200, {}

    def set_rate(self, asked: Document) -> Answer:
        self.submits_per_s = asked["per_s"]
        return 200, {}

    def preset(self, asked: Document) -> Answer:
        self.jobs.clear()
        for number, state in enumerate(islice(cycle(STATES), asked["count"])):
            self._made(f"sweep-{number:05}-0123456789ab", state)
        return 200, {}

    def _made(self, name: str, state: str) -> str:
        job_id, at = str(uuid.uuid4()), int(time.time() * 1000)
        arn = "arn:aws:batch:us-east-1:210020003000"
        self.jobs[job_id] = {
            "jobArn": f"{arn}:job/{job_id}", "jobId": job_id, "jobName": name, "status": state, "createdAt": at,
            "startedAt": at, "jobDefinition": f"{arn}:job-definition/train:1", "container": {},
        }  # fmt: skip
        return job_id


async def _serve(service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length") or 0))
            path = head[0].split(" ")[1].rpartition("/")[2]
            name = headers.get("x-amz-target", "").rpartition(".")[2] or path
            status, document = await service.answer(name, json.loads(body or b"{}"))
            text = json.dumps(document).encode()
            code = document.get("__type", "") if status >= 400 else ""
            lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"date: {formatdate(usegmt=True)}",
                     f"content-length: {len(text)}", f"x-amzn-errortype: {code}", "", ""]  # fmt: skip
            writer.write("\r\n".join(lines).encode() + text)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(delay_s: float) -> None:
    service = Service(delay_s)
    server = await asyncio.start_server(lambda reader, writer: _serve(service, reader, writer), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
