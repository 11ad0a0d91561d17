"""Faults that a test plans for the next calls of an operation, drawn from a seed."""

import json
from dataclasses import dataclass

from ...odds import Odds

# What the client sees, and whether the operation is carried out first. A kind is a status and error code, or what
# happens to the connection.
ANSWERS: dict[str, tuple[bool, int, str]] = {
    "throttle": (False, 429, "TooManyRequestsException"),
    "throttle-400": (False, 400, "ThrottlingException"),
    "error-500": (False, 500, "ServerException"),
    "error-502": (False, 502, "BadGateway"),
    "error-503": (False, 503, "ServiceUnavailable"),
    "error-504": (False, 504, "GatewayTimeout"),
    "error-500-after": (True, 500, "ServerException"),
    "error-503-after": (True, 503, "ServiceUnavailable"),
    "expired-token": (False, 403, "ExpiredTokenException"),
    "denied": (False, 403, "AccessDeniedException"),
}
CONNECTIONS: dict[str, bool] = {
    "reset": False,
    "reset-after": True,
    "hang": False,
    "hang-after": True,
    "truncate": True,
    "wrong-schema": True,
}
KINDS = (*ANSWERS, *CONNECTIONS)


@dataclass
class Plan(Odds):
    """Fault planned for the next `count` calls of `operation`, each of which fails with the probability `rate`."""

    operation: str
    kind: str
    skip: int = 0
    hang_s: float = 30.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"kind {self.kind!r} must be one of {', '.join(KINDS)}, reclaim, stockout, unregistered, invalid"
            )
        super().__post_init__()

    def after(self) -> bool:
        """Return whether the operation is carried out before the client sees the fault."""
        return ANSWERS[self.kind][0] if self.kind in ANSWERS else CONNECTIONS[self.kind]

    def take(self, operation: str) -> bool:
        """Count a call, and return whether it fails."""
        if operation != self.operation or self.count <= 0:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        return self.draw()


def error_answer(kind: str, service: str) -> tuple[int, list[tuple[str, str]], bytes]:
    _, status, code = ANSWERS[kind]
    message = f"planned by the sandbox: {kind}"
    if service in ("autoscaling", "ec2", "iam", "sts", "s3"):
        body = f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
        return status, [("Content-Type", "text/xml")], body.encode()
    headers = [("Content-Type", "application/json"), ("x-amzn-ErrorType", code)]
    return status, headers, json.dumps({"__type": code, "message": message}).encode()
