"""Errors as each service of AWS answers them: one content, in the form of the service's protocol."""

import json
from http import HTTPStatus
from typing import Any
from xml.sax.saxutils import escape

Answer = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""
QUERY = ("iam", "sns", "sts", "autoscaling")
"""Services that take forms and answer in XML, except EC2, which has a form of its own."""
_XML = [("Content-Type", "text/xml")]


def error(service: str, status: int, code: str, text: str) -> Answer:
    """Return an error in the form of `service`, the name that its requests are signed with."""
    said = f"<Code>{code}</Code><Message>{escape(text)}</Message>"
    match service:
        case "ec2":
            # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
            said = f"<Response><Errors><Error>{said}</Error></Errors><RequestID>0</RequestID></Response>"
        case "s3":
            said = f"<Error>{said}</Error>"
        case _ if service in QUERY:
            said = f"<ErrorResponse><Error><Type>Sender</Type>{said}</Error><RequestId>0</RequestId></ErrorResponse>"
        case _:
            headers = [("Content-Type", "application/json"), ("x-amzn-ErrorType", code)]
            return status, headers, json.dumps({"__type": code, "message": text, "Message": text}).encode()
    return status, _XML, said.encode()


def document(status: int, content: Any) -> Answer:
    return status, [("Content-Type", "application/json")], json.dumps(content).encode()


def send(start_response: Any, status: int, headers: list[tuple[str, str]], body: bytes) -> list[bytes]:
    if "content-length" not in {name.lower() for name, _ in headers}:
        headers = [*headers, ("Content-Length", str(len(body)))]
    start_response(f"{status} {HTTPStatus(status).phrase}", headers)
    return [body]
