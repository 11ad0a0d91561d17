"""Guard before the sandbox's AWS. It refuses requests that are not signed with its key, and requests from web pages.

A signature is of Version 4, in a header or, for S3, in a URL.

The calculation is botocore's own; words and codes are AWS's:
https://docs.aws.amazon.com/IAM/latest/UserGuide/signature-v4-troubleshooting.html (signature, date),
https://docs.aws.amazon.com/cloudsearch/latest/developerguide/CommonErrors.html (forms),
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html (EC2),
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html (JSON),
https://github.com/aws/aws-sdk-php/issues/2444 (status 400 of JSON), https://github.com/iann0036/iamlive/issues/58 (403
of REST),
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html (S3).
"""

import hashlib
import hmac
import io
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from botocore.auth import SIGV4_TIMESTAMP, S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from .. import keys, loopback
from .answers import QUERY, Answer, document, error, send

_SKEW_M = {"s3": 15, "ec2": 15}
"""Largest difference of a request's date in minutes, where it is not 5. Sources:
https://docs.aws.amazon.com/emr/latest/APIReference/CommonErrors.html (15 before RequestExpired),
https://github.com/aws/aws-sdk-php/issues/612 (S3: at most 900,000 ms, status 403),
https://hashnode-hub.vercel.app/posts/664de5a91e584186cd68a61c (EKS: 5, status 403)."""
_CREDENTIAL = re.compile(r"Credential=([^/,]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_UNHASHED = ("UNSIGNED-PAYLOAD", "STREAMING-")
_REST = re.compile(r"/(v1|20\d\d-\d\d-\d\d)/")
"""Beginning of the paths of Batch and Lambda."""
_SIGNING = (
    "The request signature we calculated does not match the signature you provided. Check your {} and signing method."
)
_TOKEN = "The security token included in the request is invalid."
_MISMATCH = f"{_SIGNING.format('AWS Secret Access Key')} Consult the service documentation for details."
_UNKNOWN = "AWS was not able to validate the provided access credentials"
_WRONG: Mapping[str, Mapping[str, tuple[int, str, str]]] = {
    "ec2": {
        "key": (401, "AuthFailure", _UNKNOWN),
        "signature": (401, "AuthFailure", _UNKNOWN),
        "date": (400, "RequestExpired", "Request has expired."),
    },
    "s3": {
        "missing": (403, "AccessDenied", "Access Denied"),
        "key": (403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."),
        "signature": (403, "SignatureDoesNotMatch", _SIGNING.format("key")),
        "date": (
            403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."
        ),
        "late": (403, "AccessDenied", "Request has expired"),
        "body": (
            400, "XAmzContentSHA256Mismatch",
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        ),
    },
    "form": {
        "missing": (403, "MissingAuthenticationToken", "Request is missing Authentication Token"),
        "key": (403, "InvalidClientTokenId", _TOKEN),
        "signature": (403, "SignatureDoesNotMatch", _MISMATCH),
        "date": (403, "SignatureDoesNotMatch", "{date}"),
    },
    "json": {
        "missing": (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
        "key": (403, "UnrecognizedClientException", _TOKEN),
        "signature": (403, "InvalidSignatureException", _MISMATCH),
        "date": (403, "InvalidSignatureException", "{date}"),
    },
}  # fmt: skip


class RequestSignature(NamedTuple):
    """Signature fields of a request. `expires_s` belongs to one that is signed in its URL."""

    key: str
    region: str
    service: str
    date: str
    headers: tuple[str, ...]
    signature: str
    expires_s: int | None = None

    @property
    def caller(self) -> str:
        return self.key.rpartition("-")[0]


def of(environ: Mapping[str, Any]) -> RequestSignature | None:
    header = environ.get("HTTP_AUTHORIZATION", "")
    asked = {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
    found = _CREDENTIAL.search(header or f"Credential={asked.get('X-Amz-Credential', '')}")
    if not found:
        return None
    scope = found[1], found[2], found[3]
    if header:
        parts = dict(part.strip().partition("=")[::2] for part in header.partition(" ")[2].split(","))
        names = tuple(parts.get("SignedHeaders", "").split(";"))
        return RequestSignature(*scope, environ.get("HTTP_X_AMZ_DATE", ""), names, parts.get("Signature", ""))
    date, names, signature = (asked.get(f"X-Amz-{name}", "") for name in ("Date", "SignedHeaders", "Signature"))
    return RequestSignature(*scope, date, tuple(names.split(";")), signature, int(asked.get("X-Amz-Expires", "0")))


def refusal(secret: str, environ: Mapping[str, Any], body: bytes) -> Answer | None:
    signed = of(environ)
    if signed is None:
        return _said("missing", _form(environ), environ)
    known = keys.boto(secret, signed.caller)
    if not hmac.compare_digest(known["aws_access_key_id"].encode(), signed.key.encode()):
        return _said("key", signed.service, environ)
    if wrong := _wrong_date(signed, datetime.now(UTC)):
        return _said(wrong[0], signed.service, environ, wrong[1])
    ours = _calculated(Credentials(*known.values()), signed, environ, body)
    if not hmac.compare_digest(ours.encode(), signed.signature.encode()):
        return _said("signature", signed.service, environ)
    told = environ.get("HTTP_X_AMZ_CONTENT_SHA256", _UNHASHED[0])
    if not told.startswith(_UNHASHED) and told != hashlib.sha256(body).hexdigest():
        return _said("body" if signed.service == "s3" else "signature", signed.service, environ)
    return None


def _calculated(who: Credentials, signed: RequestSignature, environ: Mapping[str, Any], body: bytes) -> str:
    in_url = signed.expires_s is not None
    auth = (S3SigV4QueryAuth if in_url else S3SigV4Auth if signed.service == "s3" else SigV4Auth)(
        who, signed.service, signed.region
    )
    path, _, query = str(environ["REQUEST_URI"]).partition("?")
    query = "&".join(part for part in query.split("&") if not part.startswith("X-Amz-Signature="))
    request = AWSRequest(
        environ["REQUEST_METHOD"],
        f"http://{environ['HTTP_HOST']}{path}?{query}",
        {name: _header(environ, name) for name in signed.headers},
        body,
    )
    request.context["timestamp"] = signed.date
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


def _header(environ: Mapping[str, Any], name: str) -> str:
    variable = name.upper().replace("-", "_")
    return environ.get(variable if variable in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{variable}", "")


def _wrong_date(signed: RequestSignature, now: datetime) -> tuple[str, str] | None:
    """Return what is wrong with the date and AWS's words for it, or None."""
    try:
        at = datetime.strptime(signed.date, SIGV4_TIMESTAMP).replace(tzinfo=UTC)
    except ValueError:
        return "signature", ""
    minutes = _SKEW_M.get(signed.service, 5)
    first, last = (now + sign * timedelta(minutes=minutes) for sign in (-1, 1))
    shown = f"{now:{SIGV4_TIMESTAMP}}"
    if at > last:
        later = f"{last:{SIGV4_TIMESTAMP}} ({shown} + {minutes} min.)"
        return "date", f"Signature not yet current: {signed.date} is still later than {later}"
    if signed.expires_s is not None:
        return (
            ("late" if signed.service == "s3" else "date", "")
            if now > at + timedelta(seconds=signed.expires_s)
            else None
        )
    if at < first:
        earlier = f"{first:{SIGV4_TIMESTAMP}} ({shown} - {minutes} min.)"
        return "date", f"Signature expired: {signed.date} is now earlier than {earlier}"
    return None


def _form(environ: Mapping[str, Any]) -> str:
    """Return a service that takes requests of this form, for a request that names none."""
    if environ.get("HTTP_X_AMZ_TARGET") or _REST.match(environ["PATH_INFO"]):
        return "json"
    return "iam" if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded") else "s3"


def _said(why: str, service: str, environ: Mapping[str, Any], date: str = "") -> Answer:
    form = service if service in _WRONG else "form" if service in QUERY else "json"
    status, code, text = _WRONG[form][why]
    if form == "json" and environ.get("HTTP_X_AMZ_TARGET"):
        status = 400
    return error(service, status, code, text.format(date=date))


CONTROL = "/sandbox-api/"


class Guard:
    """WSGI application in front of another one, which finds the body of a request in memory."""

    def __init__(self, key: str, application: Callable[..., Iterable[bytes]]) -> None:
        self._key, self._application = key, application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        chunked = environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked"
        body = environ["wsgi.input"].read(-1 if chunked else int(environ.get("CONTENT_LENGTH") or 0))
        if refused := self._refusal(environ, body):
            return send(start_response, *refused)
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return self._application(environ, start_response)

    def _refusal(self, environ: dict[str, Any], body: bytes) -> Answer | None:
        host, origin = environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN")
        if foreign := loopback.foreign(int(environ["SERVER_PORT"]), host, origin):
            return document(403, {"message": foreign})
        if not environ["PATH_INFO"].startswith(CONTROL):
            return refusal(self._key, environ, body)
        told = environ.get("HTTP_AUTHORIZATION", "").encode()
        return None if hmac.compare_digest(told, f"Bearer {self._key}".encode()) else document(401, keys.WANTED)
