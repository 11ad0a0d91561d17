"""Reads IAM roles and instance profiles that an environment names, and what they lack."""

from collections.abc import Sequence

from accel.rules.aws.existing import RoleFacts
from jobs.backends.aws_batch.explain.reader import Absent, Reader
from jobs.backends.aws_batch.explain.role import REGISTER, lacking, role, trusts
from jobs.backends.aws_batch.lookup import part


def read_profile(reader: Reader, profile: str) -> RoleFacts | None:
    """The role of an instance profile, by name or ARN; None where it may not be read."""
    found = role(reader, profile)
    if found is None:
        return None
    return RoleFacts(found.exists, found.trusted, () if found.role and found.registers else (REGISTER,))


def read_role(reader: Reader, arn: str, service: str, actions: Sequence[str]) -> RoleFacts | None:
    """A role by name or ARN; None where it may not be read."""
    name = arn.rpartition("/")[2]
    try:
        found = reader.ask("iam:GetRole", lambda iam: iam.get_role(RoleName=name), absent=("NoSuchEntity",))
    except Absent:
        return RoleFacts(exists=False)
    if found is None:
        return None
    missing = lacking(reader, name, actions) if actions else ()
    return RoleFacts(True, trusts(part(found, "Role"), service), missing or ())
