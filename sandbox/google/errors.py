"""Refusals in the form that Google's APIs give them."""

from dataclasses import dataclass
from typing import Any

STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""Canonical code of each HTTP status. Source: https://cloud.google.com/apis/design/errors"""

REASONS = {
    400: "badRequest",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    409: "alreadyExists",
    412: "conditionNotMet",
    429: "rateLimitExceeded",
    500: "backendError",
    501: "notImplemented",
    503: "backendError",
    504: "gatewayTimeout",
}


class ApiError(Exception):
    """Refusal of an API. `reason` is the word that googleapi clients show after the message."""

    def __init__(
        self, code: int, message: str, reason: str = "", status: str = "", details: list[Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or REASONS.get(code, "unknown")
        self.status = status or STATUS.get(code, "UNKNOWN")
        self.details = details

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {
            "code": self.code,
            "message": str(self),
            "errors": [{"message": str(self), "domain": "global", "reason": self.reason}],
            "status": self.status,
        }
        return {"error": error | ({"details": self.details} if self.details else {})}


@dataclass(frozen=True)
class Failure:
    """Failure of an operation of Compute Engine: its code and message, the HTTP status that goes with them, and
    `errorDetails`."""

    code: str
    message: str
    http: tuple[int, str] = (400, "BAD REQUEST")
    details: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message} | ({"errorDetails": self.details} if self.details else {})


def invalid(violations: list[tuple[str, str]]) -> ApiError:
    """Return the error for a body or query that does not parse: (field, description) of each fault. Wording and form:
    https://github.com/zed-industries/zed/issues/62539. The words for a value's type are those of Google's parser of
    protocol buffers, `Invalid value at 'field' (TYPE_...), "value"`. It shows the names of enums in place of TYPE_ENUM,
    which the discovery documents do not have."""
    fields = [({"field": field} if field else {}) | {"description": said} for field, said in violations]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields}]
    return ApiError(400, "\n".join(said for _, said in violations), "invalid", details=details)
