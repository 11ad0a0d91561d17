"""Values that AWS refuses for their size or characters and moto accepts: a row an operation, in AWS's words."""

import base64
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from .answers import Answer, error


class Refusal(NamedTuple):
    code: str
    text: str


def _parameter(given: Mapping[str, Any]) -> Refusal | None:
    # Wording of both: https://github.com/hashicorp/terraform-provider-aws/issues/18521 and reports of the larger tier;
    # figures: https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html
    size, standard = len(given.get("Value", "")), given.get("Tier", "Standard") == "Standard"
    if standard and size > 4096:
        text = (
            "Standard tier parameters support a maximum parameter value of 4096 characters. To create a larger "
            "parameter value, upgrade the parameter to use the advanced-parameter tier."
        )
        return Refusal("ValidationException", text)
    if size > 8192:
        text = "Advanced tier parameters support a maximum parameter value of 8192 characters."
        return Refusal("ValidationException", text)
    return None


def _pattern(given: Mapping[str, Any]) -> Refusal | None:
    # The quota is https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html; AWS's words are not known.
    if len(given.get("EventPattern") or "") > 2048:
        return Refusal("LimitExceededException", "The event pattern is larger than the quota of 2048 characters.")
    return None


def _user_data(given: Mapping[str, Any]) -> Refusal | None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html
    if len(base64.b64decode(given.get("LaunchTemplateData.UserData", ""))) > 16384:
        return Refusal("InvalidUserData.Malformed", "User data is limited to 16384 bytes")
    return None


def _tags(given: Mapping[str, Any]) -> Refusal | None:
    # https://docs.aws.amazon.com/IAM/latest/APIReference/API_Tag.html, and what moto does not check.
    for name, text in given.items():
        if not (part := re.fullmatch(r"Tags\.member\.(\d+)\.(Key|Value)", name)):
            continue
        where = f"tags.{part[1]}.member.{part[2].lower()}"
        if part[2] == "Key" and text.lower().startswith("aws:"):
            return Refusal("InvalidInput", "Your request was invalid: aws: prefixed tag key names are not allowed")
        if not all(each in "_.:/=+-@" or unicodedata.category(each)[0] in "LZN" for each in text):
            text = (
                f"1 validation error detected: Value '{text}' at '{where}' failed to satisfy constraint: Member must "
                r"satisfy regular expression pattern: [\p{L}\p{Z}\p{N}_.:/=+\-@]*"
            )
            return Refusal("ValidationError", text)
    return None


Check = Callable[[Mapping[str, Any]], Refusal | None]
_JSON: Mapping[tuple[str, str], Check] = {("ssm", "PutParameter"): _parameter, ("events", "PutRule"): _pattern}
_QUERY: Mapping[tuple[str, str], Check] = {
    **dict.fromkeys((("ec2", "CreateLaunchTemplate"), ("ec2", "CreateLaunchTemplateVersion")), _user_data),
    **dict.fromkeys((("iam", f"Create{kind}") for kind in ("Role", "Policy", "InstanceProfile")), _tags),
    **dict.fromkeys((("iam", f"Tag{kind}") for kind in ("Role", "Policy", "InstanceProfile")), _tags),
}


def answer(service: str, operation: str, body: bytes) -> Answer | None:
    at = (service, operation)
    if (check := _JSON.get(at)) and (refusal := check(json.loads(body or b"{}"))):
        document = {"__type": refusal.code, "message": refusal.text}
        return 400, [("Content-Type", "application/x-amz-json-1.1")], json.dumps(document).encode()
    if (check := _QUERY.get(at)) and (refusal := check(dict(parse_qsl(body.decode(), keep_blank_values=True)))):
        return refusal_answer(service, refusal)
    return None


def refusal_answer(service: str, refusal: Refusal) -> Answer:
    """Return an error as EC2 and IAM answer it; LimitExceeded of IAM's service model has status 409."""
    return error(service, 409 if refusal.code == "LimitExceeded" else 400, *refusal)
