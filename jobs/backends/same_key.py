"""What a client is told whose submission key has a job, or may have one."""

from accel.diagnostics.errors import BadInput

AGAIN = "run the same command with the same --key again: it makes no second job"


def other_request(job: str) -> BadInput:
    """Return the error of a key that belongs to another job."""
    return BadInput(
        f"key: it was used for another request: {job}", "submit the job as it was then, or use another --key"
    )
