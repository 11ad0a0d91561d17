"""The rate of SubmitJob, on a clock that only sleep moves, and with real threads."""

import threading
import time
from bisect import bisect_left

import pytest

from accel.clouds import backoff
from accel.clouds.aws.clients import SUBMITS_PER_S
from accel.clouds.aws.errors import Throttled
from accel.clouds.backoff import Lease, now, patiently
from accel.clouds.rate_limit import Rate
from accel.diagnostics.errors import NotSent


class Clock:
    """`late_s`: how much longer each sleep takes than was asked for."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now = 100.0
        self.late_s = late_s

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.late_s


def highest(times: list[float]) -> int:
    """The most of the times within a second."""
    return max(at - bisect_left(times, time - 1 + 1e-9) + 1 for at, time in enumerate(times))


@pytest.mark.parametrize("late_s", [0.0, 0.003, 0.05])
@pytest.mark.parametrize("per_s", [1, 10, 49])
def test_no_second_has_more_turns_than_the_rate(per_s: int, late_s: float) -> None:
    clock = Clock(late_s)
    rate = Rate(per_s, clock=lambda: clock.now, sleep=clock.sleep)
    taken: list[float] = []
    for _ in range(5 * per_s):
        rate.turn()
        taken.append(clock.now)
    assert highest(taken) <= per_s
    if late_s < 0.01:
        assert taken[-1] - taken[0] < 1.05 * (5 * per_s - 1) / per_s + late_s, "late wake-ups are made up for"


@pytest.mark.parametrize("late_s", [0.0, 0.05, 2.0])
def test_a_rate_of_less_than_one_a_second(late_s: float) -> None:
    clock = Clock(late_s)
    rate = Rate(56, within_s=60, clock=lambda: clock.now, sleep=clock.sleep)
    taken: list[float] = []
    for _ in range(300):
        rate.turn()
        taken.append(clock.now)
    assert highest([at / 60 for at in taken]) <= 56
    if late_s < 1:
        assert taken[-1] - taken[0] < 1.05 * 299 * 60 / 56 + late_s, "late wake-ups are made up for"


def test_turns_that_nobody_took_are_lost() -> None:
    clock = Clock()
    rate = Rate(10, clock=lambda: clock.now, sleep=clock.sleep)
    rate.turn()
    clock.now += 3600
    taken: list[float] = []
    for _ in range(12):
        rate.turn()
        taken.append(clock.now)
    assert highest(taken) <= 10
    assert taken[2] - taken[0] > 0.09, "no burst after a rest"


def test_the_law_can_fail() -> None:
    assert highest([0.0, 0.5, 0.99]) == 3 and highest([0.0, 1.0, 2.0]) == 1


def test_threads_share_it() -> None:
    rate, taken = Rate(200), list[float]()

    def work() -> None:
        for _ in range(10):
            rate.turn()
            taken.append(time.monotonic())

    threads = [threading.Thread(target=work) for _ in range(15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken.sort()
    assert len(taken) == 150
    assert taken[-1] - taken[0] >= 0.7


def test_nobody_gets_a_turn_once_it_is_closed() -> None:
    rate, ended = Rate(1), list[str]()
    rate.turn()

    def work() -> None:
        try:
            rate.turn()
        except NotSent as error:
            ended.append(error.message)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    rate.close()
    for thread in threads:
        thread.join()
    assert len(ended) == 5


def test_the_default_is_below_what_aws_takes() -> None:
    assert SUBMITS_PER_S < 50


def test_every_attempt_of_a_throttled_call_takes_a_turn_and_backs_off_by_anything_up_to_twice_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[float, float]] = []
    monkeypatch.setattr(backoff.random, "uniform", lambda low, high: asked.append((low, high)) or 0.0)
    turns: list[int] = []
    answers = iter([Throttled("no"), Throttled("no"), Throttled("no"), "done"])

    def call() -> str:
        answer = next(answers)
        if isinstance(answer, Throttled):
            raise answer
        return answer

    assert patiently(call, Lease(now() + 1000), 1, lambda: turns.append(1)) == "done"
    assert len(turns) == 4
    assert asked == [(0, 0.5), (0, 1.0), (0, 2.0)]


def test_a_turn_that_comes_after_the_lease_is_not_used() -> None:
    sent: list[int] = []
    lease = Lease(now() + 0.2)
    with pytest.raises(Throttled, match="not sent"):
        patiently(lambda: sent.append(1), lease, 0.1, lambda: time.sleep(0.2))
    assert sent == []
