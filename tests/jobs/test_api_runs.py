"""Runs of the functions for Python, on jobs of this machine: to their end, many at once, and in an event loop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from accel.diagnostics import errors
from jobs import Job, Phase, Run, aio, get, list_targets, ls, submit, submit_many, wait
from jobs.client import dispatch, history
from tests.jobs.calling import HELLO, LONG, WAIT_S, printed_by, until_printed
from tests.support.soak import soak_only
from tests.support.sweeping import sweep

Invoke = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("quiet")


# --- a run


def test_a_job_from_its_submit_to_its_end(invoke: Invoke) -> None:
    run = submit(Job(**HELLO), "local", key="k")
    assert repr(run) == f"Run('{run.ref}', target='local', key='k')" and str(run) == str(run.ref)
    status = run.wait(timeout=WAIT_S)
    assert (status.phase, status.exit_code, status) == (Phase.SUCCEEDED, 0, run.status())
    assert printed_by(run) == ["hi"]
    assert run.explain().cause == "succeeded"
    assert submit(HELLO, key="k").ref == run.ref
    assert json.loads(invoke("submit", "-", "--key", "k", "-o", "json", text=yaml.safe_dump(HELLO)).stdout) == {
        "ref": str(run), "name": run.ref.id, "target": "local", "key": "k"
    }  # fmt: skip
    assert get("hello") == get(run.ref.id) == get(str(run)) == get(run.status()) == Run(run.ref)
    assert [each.ref for each in ls(ended=True)] == [run.ref] and ls() == []
    (noted,) = history.recent()
    assert (noted["ref"], noted["key"], noted["target"]) == (str(run), "k", "local")
    assert "local" in list_targets().entries


def test_a_failure_is_raised_unless_it_is_asked_for() -> None:
    run = submit({**HELLO, "env": {"CODE": 3}})
    with pytest.raises(errors.JobFailed, match="exit code 3") as failed:
        run.wait(WAIT_S)
    assert failed.value.exit_code == 125
    assert run.wait(check=False).exit_code == 3
    with pytest.raises(errors.JobFailed):
        wait([run, submit(HELLO)], WAIT_S)
    assert wait(run, check=False).phase is Phase.FAILED
    again = run.retry(key="again")
    assert again.ref != run.ref and run.retry(key="again").ref == again.ref
    assert again.wait(WAIT_S, check=False).exit_code == 3


def test_waiting_gives_up_and_the_job_goes_on() -> None:
    run = submit(LONG)
    with pytest.raises(errors.WaitedTooLong, match="it goes on"):
        run.wait(0.2)
    assert not run.status().phase.ended
    run.cancel("enough")
    assert wait(run, WAIT_S, check=False).phase is Phase.FAILED


def test_an_interrupt_stays_one() -> None:
    """In a notebook it is the kernel that catches it."""
    run = submit(LONG)
    until_printed(run, "began")

    def pressed() -> None:
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
        run.wait(WAIT_S)

    with pytest.raises(KeyboardInterrupt):
        pressed()
    assert not run.status().phase.ended
    run.cancel()
    run.wait(WAIT_S, check=False)


def test_a_submit_of_which_nobody_knows_says_how_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    again = "the same submit with key='k' finds"

    def raises(error: BaseException) -> None:
        def sent(*_: object) -> None:
            raise error

        monkeypatch.setattr("jobs.backends.local.LocalBackend.submit", sent)

    raises(errors.CloudSilent("SubmitJob: timed out"))
    with pytest.raises(errors.CloudSilent, match="timed out") as silent:
        submit(HELLO, key="k")
    assert str(silent.value.hint).startswith(again)
    raises(KeyboardInterrupt())
    for send in (lambda: submit(HELLO, key="k"), lambda: submit_many([HELLO, LONG], key="k")):
        with pytest.raises(KeyboardInterrupt) as pressed:
            send()
        assert again in pressed.value.__notes__[0]


def test_many_keep_their_order_and_their_keys() -> None:
    works = [{**HELLO, "env": {"CODE": code}} for code in (0, 3, 0)]
    runs = submit_many([*works, Job(**HELLO | {"name": "other"})], key="k")
    assert [status.exit_code for status in wait(runs, WAIT_S, check=False)] == [0, 3, 0, 0]
    assert len({run.ref for run in runs}) == 4 and runs[3].ref.id.startswith("other-")
    again = submit_many([*works, Job(**HELLO | {"name": "other"})], key="k")
    assert [run.ref for run in again] == [run.ref for run in runs]
    assert submit_many([]) == [] and wait([]) == []
    assert [status.exit_code for status in wait([runs[1], runs[0], str(runs[1])], check=False)] == [3, 0, 3]


def test_many_submits_leave_the_programs_own_sigint_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command stops by SIGINT; a program that calls the functions has its own handler, or a `stop`."""
    handlers: list[object] = []
    record = dispatch.record_history
    monkeypatch.setattr(
        dispatch, "record_history", lambda *given: (handlers.append(signal.getsignal(signal.SIGINT)), record(*given))
    )
    before = signal.getsignal(signal.SIGINT)
    submit_many([HELLO, HELLO | {"name": "other"}], key="k")
    assert handlers == [before, before]


def test_all_are_checked_before_the_first_is_sent() -> None:
    with pytest.raises(errors.BadInputs, match="cpus"):
        submit_many([HELLO, {**HELLO, "cpus": "x"}])
    with pytest.raises(errors.BadInputs, match=r"other: target local: nodes: this machine is one node"):
        submit_many([HELLO, {**HELLO, "name": "other", "nodes": 2}])
    assert ls(ended=True) == []


def test_what_this_machine_cannot_run_is_told_before_the_first_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(errors.BadInputs, match=r"other: target local: memory_mib: "):
        submit_many([HELLO, {**HELLO, "name": "other", "memory_mib": 2**31 - 1}])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.NoRuntime, match=r"other: image: i:1: this machine has no docker command") as refused:
        submit_many([HELLO, {**HELLO, "name": "other", "image": "i:1"}])
    assert refused.value.hint and "docker run" in refused.value.hint
    assert ls(ended=True) == []


def test_none_is_sent_any_more_once_it_is_stopped() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(errors.Interrupted, match="of 40 jobs are created") as stopped:
        submit_many([HELLO] * 40, key="k", stop=stop)
    assert stopped.value.hint == "the same submit with key='k' creates the rest, and none twice"
    made = ls(ended=True)
    assert len(made) < 40 and {str(each.ref) for each in made} == {entry["ref"] for entry in history.recent()}


def test_results_and_failed_tasks_again(tmp_path: Path) -> None:
    run = submit(sweep(tmp_path / "mended", image=None))
    run.wait(WAIT_S, check=False)
    (tmp_path / "mended").touch()
    again = run.retry()
    assert again.wait(WAIT_S).phase is Phase.SUCCEEDED
    found = again.results()
    assert [row.index for row in found] == [5, 3, 4, 1, 2, 0]
    assert {row.index for row in found if row.job == again.ref} == {2, 3}
    assert found[0].params == {"RATE": "0.3", "SIZE": "2"} and found[0].metrics["accuracy"] == pytest.approx(1.2)
    assert [row.index for row in run.results(by="loss", best="min")][:2] == [4, 5]
    with pytest.raises(errors.BadInput, match="no task reported it"):
        run.results(by="speed", best="max")


def test_what_is_no_job_is_said() -> None:
    with pytest.raises(errors.NotFound, match="no job nothing was submitted from here"):
        get("nothing")
    with pytest.raises(errors.NotFound):
        get("local:/nothing").status()
    with pytest.raises(errors.BadInput, match="unknown target gpus"):
        ls("gpus")
    with pytest.raises(errors.NotFound):
        list_targets("none.json")


# --- in an event loop


def test_the_same_for_an_event_loop() -> None:
    async def work() -> None:
        run = await aio.submit(HELLO, "local", key="k")
        assert (await aio.submit(HELLO, "local", dry_run=True))["body"]["command"] == HELLO["command"]
        assert (await aio.wait(run, WAIT_S)).phase is Phase.SUCCEEDED
        assert [line.text async for line in aio.logs(run)] == ["hi"]
        assert [line.text async for line in aio.logs(run, tail=1)] == ["hi"]
        with pytest.raises(errors.BadInput, match="tail: must be at least 1, is 0"):
            run.logs(tail=0)
        assert (await aio.status(run), await aio.explain(run)) == (run.status(), run.explain())
        assert [each.ref for each in await aio.ls(ended=True)] == [run.ref]
        assert "local" in (await aio.list_targets()).entries and aio.get("hello").ref == run.ref
        assert (await aio.wait(await aio.retry(run), WAIT_S)).phase is Phase.SUCCEEDED
        assert [row.state.phase for row in await aio.results(run)] == [Phase.SUCCEEDED]
        with pytest.raises(errors.JobFailed):
            await aio.wait([run, await aio.submit({**HELLO, "env": {"CODE": 3}})], WAIT_S)
        with pytest.raises(errors.NotFound):
            await aio.status("local:/nothing")
        with pytest.raises(errors.NotFound):
            async for _ in aio.logs("local:/nothing", follow=True):
                pass

    asyncio.run(work())


@soak_only
def test_many_waits_leave_room_for_other_calls() -> None:
    async def work() -> None:
        runs = await aio.submit_many([LONG] * 12)
        waits = [asyncio.create_task(aio.wait(run, check=False)) for run in runs]
        tick = asyncio.create_task(asyncio.sleep(0))
        await asyncio.gather(*(aio.cancel(run) for run in runs))
        assert tick.done()
        assert {status.phase for status in await asyncio.gather(*waits)} == {Phase.FAILED}

    asyncio.run(asyncio.wait_for(work(), 2 * WAIT_S))


def test_a_cancelled_wait_leaves_the_job_alone() -> None:
    async def work() -> Run:
        run = await aio.submit(LONG)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(aio.wait(run), 0.3)
        return run

    run = asyncio.run(work())
    assert not run.status().phase.ended
    run.cancel()
    run.wait(WAIT_S, check=False)


def test_a_log_is_followed_as_it_comes_and_may_be_left() -> None:
    async def work() -> Run:
        run = await aio.submit(LONG)
        lines = aio.logs(run, follow=True)
        assert (await anext(lines)).text == "began"
        await lines.aclose()
        return run

    run = asyncio.run(asyncio.wait_for(work(), WAIT_S))
    run.cancel()
    run.wait(WAIT_S, check=False)


def test_a_cancelled_submit_sends_no_more() -> None:
    async def work() -> None:
        sending = asyncio.create_task(aio.submit_many([HELLO] * 200, key="k"))
        while not await aio.ls(ended=True, limit=1):
            await asyncio.sleep(0.01)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    asyncio.run(asyncio.wait_for(work(), WAIT_S))  # which ends with its executor's threads
    made = len(ls(ended=True, limit=500))
    assert 0 < made < 200 and made == len(history.recent())


def test_the_plain_functions_work_in_a_running_loop_too() -> None:
    """As in a notebook, whose cells run in one."""

    async def cell() -> None:
        run = submit(HELLO)
        assert wait(run, WAIT_S).phase is Phase.SUCCEEDED and printed_by(run) == ["hi"]
        assert [status.phase for status in wait(submit_many([HELLO] * 3), WAIT_S)] == [Phase.SUCCEEDED] * 3

    asyncio.run(cell())
