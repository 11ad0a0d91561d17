"""The functions of jobs.api and the methods of Run for programs with an event loop: docs/python.md.

Calls of a cloud run in threads of the loop's executor. A wait holds none between two looks. What is cancelled sends
nothing more; a submit that was under way then may have made its job, which the same submit with the same key finds.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, Unpack, overload

from . import api
from .api import Options, Work
from .api import get as get
from .backends.base import Explanation, LogLine, Status
from .client.results import Row
from .client.targets import Targets
from .handle import CANCELLED, AnyJob, Run, final_statuses, reference, waiting_for


@overload
async def submit(
    job: Work, to: str | None = None, *, dry_run: Literal[True], **options: Unpack[Options]
) -> dict[str, Any]: ...
@overload
async def submit(
    job: Work, to: str | None = None, *, dry_run: Literal[False] = False, **options: Unpack[Options]
) -> Run: ...
async def submit(
    job: Work, to: str | None = None, *, dry_run: bool = False, **options: Unpack[Options]
) -> Run | dict[str, Any]:
    """As api.submit."""
    if dry_run:
        return await asyncio.to_thread(api.submit, job, to, dry_run=True, **options)
    return await asyncio.to_thread(api.submit, job, to, **options)


async def submit_many(
    jobs: Iterable[Work], to: str | None = None, *, rate: int | None = None, **options: Unpack[Options]
) -> list[Run]:
    """As api.submit_many."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(api.submit_many, jobs, to, rate=rate, stop=stop, **options)
    finally:
        stop.set()


@overload
async def wait(jobs: AnyJob, timeout: float | None = None, *, check: bool = True) -> Status: ...
@overload
async def wait(jobs: Sequence[AnyJob], timeout: float | None = None, *, check: bool = True) -> list[Status]: ...
async def wait(
    jobs: AnyJob | Sequence[AnyJob], timeout: float | None = None, *, check: bool = True
) -> Status | list[Status]:
    """As api.wait. Of many jobs one wait asks less than a wait for each."""
    refs = [reference(job) for job in ([jobs] if isinstance(jobs, AnyJob) else jobs)]
    waiting = waiting_for(refs, timeout)
    while (pause_s := await asyncio.to_thread(waiting.look)) is not None:
        await asyncio.sleep(pause_s)
    statuses = final_statuses(waiting, refs, check)
    return statuses[0] if isinstance(jobs, AnyJob) else statuses


async def logs(
    job: AnyJob, *, follow: bool = False, task: int | None = None, tail: int | None = None
) -> AsyncGenerator[LogLine]:
    """As Run.logs. The thread that reads ends with the log, or with the next line after nobody wants it."""
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[LogLine | BaseException | None] = asyncio.Queue()
    over = threading.Event()
    run = get(job)

    def tell(line: LogLine | BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody listens
            loop.call_soon_threadsafe(told.put_nowait, line)

    def read() -> None:
        try:
            for line in run.logs(follow=follow, task=task, tail=tail):
                if over.is_set():
                    return
                tell(line)
            tell(None)
        except BaseException as error:  # noqa: BLE001 - raised where it is read
            tell(error)

    # Not of the loop's executor: a log may be followed for days, and would keep Python from ending.
    threading.Thread(target=read, daemon=True).start()
    try:
        while (line := await told.get()) is not None:
            if isinstance(line, BaseException):
                raise line
            yield line
    finally:
        over.set()


async def status(job: AnyJob) -> Status:
    """As Run.status."""
    return await asyncio.to_thread(get(job).status)


async def cancel(job: AnyJob, reason: str = CANCELLED) -> None:
    """As Run.cancel."""
    await asyncio.to_thread(get(job).cancel, reason)


async def explain(job: AnyJob) -> Explanation:
    """As Run.explain."""
    return await asyncio.to_thread(get(job).explain)


async def results(job: AnyJob, by: str | None = None, best: Literal["max", "min"] | None = None) -> list[Row]:
    """As Run.results."""
    return await asyncio.to_thread(get(job).results, by, best)


async def retry(job: AnyJob, *, key: str | None = None, every: bool = False) -> Run:
    """As Run.retry."""
    return await asyncio.to_thread(get(job).retry, key=key, every=every)


async def ls(
    to: str | None = None, *, ended: bool = False, limit: int = 50, targets: str | None = None, strict: bool = False
) -> list[Status]:
    """As api.ls."""
    return await asyncio.to_thread(api.ls, to, ended=ended, limit=limit, targets=targets, strict=strict)


async def list_targets(source: str | None = None, *, refresh: bool = False, strict: bool = False) -> Targets:
    """As api.list_targets."""
    return await asyncio.to_thread(api.list_targets, source, refresh=refresh, strict=strict)
