"""A user's program: nothing runs it, pyright checks it. Each line that must be wrong says so."""
# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

import asyncio
from typing import Any, assert_type

import jobs
from accel.diagnostics import errors
from jobs import Accelerator, Explanation, Job, JobRef, LogLine, Phase, Run, Status, aio, submit, wait
from jobs.client.results import Row
from jobs.client.targets import Targets

job = Job(
    name="train",
    image="my.registry/train:1.4",
    command=["python", "train.py"],
    accelerator={"type": "l4", "count": 1},
    env={"EPOCHS": 20, "RATE": "0.1"},
    timeout_s="4h",
    spot="prefer",
    mounts=[{"source": "gs://data", "path": "/data"}],
    sweep={"grid": {"LR": ["1", "2"]}},
    aws_batch={"scheduling_priority": 3},
)
Job(name="train", accelerator=Accelerator(type="l4"))
Job(nam="train")  # pyright: ignore[reportCallIssue]
Job(name="train", cpus="4")  # pyright: ignore[reportArgumentType]
Job(name="train", spot="sometimes")  # pyright: ignore[reportArgumentType]
Accelerator(typ="l4")  # pyright: ignore[reportCallIssue]

assert_type(Job.read("job.yaml"), Job)
assert_type(job.but(cpus=4), Job)
assert_type(job.timeout_s, int | None)

run = submit(job, to="gpu", key="run-17", code=".", quota=False, strict=True)
assert_type(run, Run)
assert_type(submit({"name": "a"}, dry_run=True), dict[str, Any])
assert_type(jobs.submit_many([job, "job.yaml", {"name": "a"}], "gpu", rate=10), list[Run])
assert_type(jobs.submit_many([job], dry_run=True), list[dict[str, Any]])
submit(job, too="gpu")  # pyright: ignore[reportCallIssue]
submit(job, key=1)  # pyright: ignore[reportArgumentType]

assert_type(run.ref, JobRef)
assert_type(run.key, str | None)
assert_type(run.warnings, tuple[str, ...])
assert_type(run.status(), Status)
assert_type(run.wait(timeout=60), Status)
assert_type(run.status().phase is Phase.SUCCEEDED, bool)
assert_type(run.explain(), Explanation)
assert_type(run.results(by="loss", best="min"), list[Row])
assert_type(run.retry(), Run)
assert_type([line.text for line in run.logs(follow=True)], list[str])
assert_type(wait(run), Status)
assert_type(wait("aws-batch:us-east-1/0f3c"), Status)
assert_type(wait([run, run.ref, run.status()], 60, check=False), list[Status])
assert_type(jobs.get("0f3c"), Run)
assert_type(jobs.ls("gpu", ended=True), list[Status])
assert_type(jobs.list_targets(), Targets)
run.state()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
print(jobs.submits)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]

try:
    wait(run)
except errors.JobFailed as failed:
    assert_type(failed.exit_code, int)
    assert_type(failed.hint, str | None)


async def main() -> None:
    run = await aio.submit(job, "gpu", key="run-18")
    assert_type(run, Run)
    assert_type(await aio.submit(job, "gpu", dry_run=True), dict[str, Any])
    assert_type(await aio.submit_many([job], "gpu"), list[Run])
    assert_type(await aio.wait(run), Status)
    assert_type(await aio.wait([run, "0f3c"]), list[Status])
    assert_type(await aio.status(run), Status)
    async for line in aio.logs(run, follow=True):
        assert_type(line, LogLine)
    assert_type(await aio.results(run), list[Row])
    assert_type(await aio.explain(run), Explanation)
    assert_type(await aio.retry(run), Run)
    assert_type(await aio.ls(), list[Status])
    await aio.submit(job, too="gpu")  # pyright: ignore[reportCallIssue]


asyncio.run(main())
