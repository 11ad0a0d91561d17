"""The moment at which a job leaves Spot for good. Numbers are seconds; times are seconds since any one moment.

    slack = deadline - now - work left - changeover

Slack is the time that may still be lost before the job can no longer end in time on demand. `changeover` is the longest
time between the decision and the moment at which the job does new work on demand: stopping, a machine, its start, the
image, restoring the last checkpoint, and the steps since that checkpoint where the job does not report what it has
saved. Between two looks slack falls by at most the time between them: finished work keeps it; waiting and repeated work
spend it. So a job that moves at the last look before its slack is gone ends in time. This is the safety net of
https://www.usenix.org/conference/nsdi24/presentation/wu-zhanghao; within it, the job uses Spot whenever there is any.

A job never goes back to Spot. After the move its only slack is the rest of the changeover, and another move would need
a whole changeover more.
"""

from typing import NamedTuple

CHANGEOVER_S = 15 * 60
"""Default of a job file."""
LOOK_S, LOOKS_A_CHANGEOVER = 30.0, 10
"""Half a minute between two looks, and less for a changeover of under five minutes."""


class Decision(NamedTuple):
    """Decision whether to move now, with its figures."""

    move: bool
    slack_s: float
    time_left_s: float
    work_left_s: float
    lost_left: int | None

    @property
    def why(self) -> str:
        if self.lost_left is not None and self.lost_left <= 0:
            return "one more lost attempt would be taken from those for its own failures"
        rest = f"{self.time_left_s:.0f} s to the deadline, {self.work_left_s:.0f} s of work left"
        return f"{rest}, {max(self.slack_s, 0.0):.0f} s of slack"


def look_s(changeover_s: float) -> float:
    return max(1.0, min(LOOK_S, changeover_s / LOOKS_A_CHANGEOVER))


def shortest_deadline_s(work_s: float, changeover_s: float) -> float:
    """Return the least with which a job can begin on Spot; with less it would move at its first look."""
    return work_s + changeover_s + look_s(changeover_s)


def decide(
    now: float,
    deadline: float,
    work_left_s: float,
    changeover_s: float,
    *,
    every_s: float | None = None,
    lost_left: int | None = None,
) -> Decision:
    """Decide whether a job on Spot moves now. `every_s` is the time until the next look; default look_s(changeover_s).
    `lost_left` is the number of attempts that may still be preempted before preemption uses up one meant for the job's
    own failures; None where the platform counts these apart."""
    slack_s = deadline - now - work_left_s - changeover_s
    every_s = look_s(changeover_s) if every_s is None else every_s
    move = slack_s <= every_s or (lost_left is not None and lost_left <= 0)
    return Decision(move, slack_s, deadline - now, work_left_s, lost_left)
