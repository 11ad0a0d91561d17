"""The functions of jobs.api and the methods of Run for programs with an event loop: docs/python.md.

Calls to a cloud run in threads of the loop's executor; a wait holds no thread while it pauses. A cancelled call sends
nothing more. A submit that was already under way may have made its job: the same submit with the same key finds it.
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
from .handle import CANCELLED, AnyJob, Run, final_statuses, references, waiting_for


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
    """Submit a job as api.submit does."""
    if dry_run:
        return await asyncio.to_thread(api.submit, job, to, dry_run=True, **options)
    return await asyncio.to_thread(api.submit, job, to, **options)


async def submit_many(
    jobs: Iterable[Work], to: str | None = None, *, rate: int | None = None, **options: Unpack[Options]
) -> list[Run]:
    """Submit many jobs as api.submit_many does. Cancelling stops further submits."""
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
    """Wait as api.wait does. One wait for many jobs makes fewer requests than a wait for each."""
    refs = references(jobs)
    waiting = waiting_for(refs, timeout)
    while (pause_s := await asyncio.to_thread(waiting.look)) is not None:
        await asyncio.sleep(pause_s)
    statuses = final_statuses(waiting, refs, check)
    return statuses[0] if isinstance(jobs, AnyJob) else statuses


async def logs(
    job: AnyJob, *, follow: bool = False, task: int | None = None, tail: int | None = None
) -> AsyncGenerator[LogLine]:
    """Yield lines as Run.logs does. The reading thread ends with the log, or at the next line after iteration stops."""
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

    # A thread outside the loop's executor: a log may be followed for days, and an executor keeps Python from ending.
    threading.Thread(target=read, daemon=True).start()
    try:
        while (line := await told.get()) is not None:
            if isinstance(line, BaseException):
                raise line
            yield line
    finally:
        over.set()


async def status(job: AnyJob) -> Status:
    """Return the status as Run.status does."""
    return await asyncio.to_thread(get(job).status)


async def cancel(job: AnyJob, reason: str = CANCELLED) -> None:
    """Cancel as Run.cancel does."""
    await asyncio.to_thread(get(job).cancel, reason)


async def explain(job: AnyJob) -> Explanation:
    """Explain as Run.explain does."""
    return await asyncio.to_thread(get(job).explain)


async def results(job: AnyJob, by: str | None = None, best: Literal["max", "min"] | None = None) -> list[Row]:
    """Return the results as Run.results does."""
    return await asyncio.to_thread(get(job).results, by, best)


async def retry(job: AnyJob, *, key: str | None = None, every: bool = False) -> Run:
    """Retry as Run.retry does."""
    return await asyncio.to_thread(get(job).retry, key=key, every=every)


async def ls(
    to: str | None = None, *, ended: bool = False, limit: int = 50, targets: str | None = None, strict: bool = False
) -> list[Status]:
    """List jobs as api.ls does."""
    return await asyncio.to_thread(api.ls, to, ended=ended, limit=limit, targets=targets, strict=strict)


async def list_targets(source: str | None = None, *, refresh: bool = False, strict: bool = False) -> Targets:
    """List targets as api.list_targets does."""
    return await asyncio.to_thread(api.list_targets, source, refresh=refresh, strict=strict)
