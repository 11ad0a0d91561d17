"""Accessors for AWS responses, and a check that they are AWS's."""

import json
import re
from collections.abc import Mapping
from typing import Any

_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)


def structure(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    return answer.get(name) or {}


def structures(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return answer.get(name) or []


def require_aws(operation_model: Any, response_dict: Mapping[str, Any], **others: Any) -> None:
    """Serve as botocore's handler of `before-parse`. Raise its ResponseParserError for a successful response of another
    server, such as a proxy's page. botocore reads a body that is not JSON as a response without members
    (BaseJSONParser._parse_body_as_json in https://github.com/boto/botocore/blob/develop/botocore/parsers.py): a table
    without the row, a queue without jobs."""
    from botocore.parsers import ResponseParserError

    shape = operation_model.output_shape
    payload = shape is not None and "payload" in shape.serialization
    if response_dict["status_code"] >= 300 or operation_model.has_streaming_output or payload:
        return
    body: bytes = response_dict["body"]
    of_json = "json" in operation_model.service_model.resolved_protocol
    if _PAGE.match(body) or (of_json and body and not _is_object(body)):
        raise ResponseParserError(f"the answer is not AWS's: {body[:1000].decode(errors='replace')}")


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
