"""What an environment uses and does not make, in the config of both clouds."""

from typing import Literal

from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import accounts
from components.base import Spec


class OtherStack(Spec):
    """An output of another stack."""

    kind: Literal["stack"]
    stack: str = Field(
        description="Name of the other stack, as StackReference takes it: <organisation>/<project>/<stack>"
    )


class ExistingAccount(Spec):
    """An existing account of Google Cloud."""

    kind: Literal["existing"]
    email: str

    def check(self) -> list[Finding]:
        return accounts.nodes_email(self.email)
