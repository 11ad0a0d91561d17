"""When a job leaves Spot for good. Numbers are seconds; times are seconds since any one moment.

    slack = deadline - now - work left - changeover

is the time that may still be lost before the job can no longer be ended in time on demand. `changeover` is the most
that passes between the decision and the moment at which the job does new work on demand: stopping, a machine, its
start, the image, restoring the last checkpoint, and the steps since that checkpoint where the job does not tell what
it has saved. Between two looks slack falls by the time between them at most: work that is done keeps it, a job that
waits or does lost work again spends it. So a job that moves at the last look before its slack is gone ends in time.
That is the safety net of https://www.usenix.org/conference/nsdi24/presentation/wu-zhanghao; on top of it Spot is used
whenever there is any.

A job never goes back to Spot. Once it has moved it has no slack but what the changeover left over, and another move
would need a whole changeover more.
"""

from typing import NamedTuple

CHANGEOVER_S = 15 * 60
"""Where a job file has none."""
LOOK_S, LOOKS_A_CHANGEOVER = 30.0, 10
"""Between two looks: half a minute, and less for a changeover of less than five."""


class Decision(NamedTuple):
    """Whether to move now, and by what."""

    move: bool
    slack_s: float
    time_left_s: float
    work_left_s: float
    lost_left: int | None

    @property
    def why(self) -> str:
        """In words."""
        if self.lost_left is not None and self.lost_left <= 0:
            return "one more lost attempt would be taken from those for its own failures"
        rest = f"{self.time_left_s:.0f} s to the deadline, {self.work_left_s:.0f} s of work left"
        return f"{rest}, {max(self.slack_s, 0.0):.0f} s of slack"


def look_s(changeover_s: float) -> float:
    """How long to wait between two looks, at most."""
    return max(1.0, min(LOOK_S, changeover_s / LOOKS_A_CHANGEOVER))


def shortest_deadline_s(work_s: float, changeover_s: float) -> float:
    """The shortest deadline with which a job can begin on Spot: with less, it would move at its first look."""
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
    """Whether a job that is on Spot moves now.

    `every_s`: until the next look; look_s(changeover_s) without it. `lost_left`: how many more attempts may be lost
    before one that the job's own failures have is used up; None where these are apart.
    """
    slack_s = deadline - now - work_left_s - changeover_s
    every_s = look_s(changeover_s) if every_s is None else every_s
    move = slack_s <= every_s or (lost_left is not None and lost_left <= 0)
    return Decision(move, slack_s, deadline - now, work_left_s, lost_left)
