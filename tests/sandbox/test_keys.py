"""Who may talk to the sandbox: whoever has its key, and nobody else on this machine or in a browser."""

import http.client
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import grpc
import pytest
import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2_grpc

from sandbox import keys
from sandbox.plugins.server import Servicer, serve
from tests.support.google_fake import Fake, fake
from tests.support.nobody import as_nobody, as_root

__all__ = ["fake"]

CALLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "ec2": ("describe_vpcs", {}),
    "iam": ("list_roles", {}),
    "s3": ("list_buckets", {}),
    "dynamodb": ("list_tables", {}),
    "batch": ("describe_job_queues", {}),
    "logs": ("describe_log_groups", {}),
}
EXPECTED: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "another key id": {
        "ec2": (401, "AuthFailure"),
        "iam": (403, "InvalidClientTokenId"),
        "s3": (403, "InvalidAccessKeyId"),
        "dynamodb": (400, "UnrecognizedClientException"),
        "batch": (403, "UnrecognizedClientException"),
        "logs": (400, "UnrecognizedClientException"),
    },
    "another secret": {
        "ec2": (401, "AuthFailure"),
        "iam": (403, "SignatureDoesNotMatch"),
        "s3": (403, "SignatureDoesNotMatch"),
        "dynamodb": (400, "InvalidSignatureException"),
        "batch": (403, "InvalidSignatureException"),
        "logs": (400, "InvalidSignatureException"),
    },
    "an old date": {
        "ec2": (400, "RequestExpired"),
        "iam": (403, "SignatureDoesNotMatch"),
        "s3": (403, "RequestTimeTooSkewed"),
        "dynamodb": (400, "InvalidSignatureException"),
        "batch": (403, "InvalidSignatureException"),
        "logs": (400, "InvalidSignatureException"),
    },
}


def client(aws: Any, service: str, given: Mapping[str, str]) -> Any:
    made: Any = boto3.client
    quick = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    return made(service, region_name="us-east-1", endpoint_url=aws.told["url"], config=quick, **given)


def keys_of(aws: Any, name: str = keys.USER) -> dict[str, str]:
    return keys.boto(keys.key(aws.home), name)


def old(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: datetime.now(UTC).replace(tzinfo=None) - by)


@pytest.mark.parametrize("service", CALLS)
def test_aws_answers_who_has_its_key(aws: Any, service: str) -> None:
    operation, given = CALLS[service]
    assert getattr(client(aws, service, keys_of(aws)), operation)(**given)


@pytest.mark.parametrize("service", CALLS)
@pytest.mark.parametrize("wrong", EXPECTED)
def test_aws_refuses_what_is_signed_wrongly(
    aws: Any, service: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = keys_of(aws)
    if wrong == "another key id":
        given["aws_access_key_id"] = "sandbox"
    elif wrong == "another secret":
        given["aws_secret_access_key"] = "sandbox"
    else:
        old(monkeypatch, timedelta(minutes=16))
    with pytest.raises(ClientError) as refused:
        getattr(client(aws, service, given), CALLS[service][0])(**CALLS[service][1])
    answer = refused.value.response
    assert (answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]) == EXPECTED[wrong][service]


def test_a_date_that_is_to_come_is_told_so(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    old(monkeypatch, -timedelta(minutes=16))
    with pytest.raises(ClientError, match=r"Signature not yet current: .* is still later than"):
        client(aws, "iam", keys_of(aws)).list_roles()


@pytest.mark.parametrize(
    ("path", "headers", "status", "said"),
    [
        ("/", {"X-Amz-Target": "DynamoDB_20120810.ListTables"}, 400, "MissingAuthenticationTokenException"),
        ("/", {"Content-Type": "application/x-www-form-urlencoded"}, 403, "MissingAuthenticationToken"),
        ("/v1/describejobqueues", {}, 403, "MissingAuthenticationTokenException"),
        ("/some-bucket/some-key", {}, 403, "AccessDenied"),
        ("/moto-api/reset", {}, 403, "AccessDenied"),
        ("/moto-api/recorder/start-recording", {}, 403, "AccessDenied"),
    ],
)
def test_aws_refuses_what_is_not_signed(aws: Any, path: str, headers: dict[str, str], status: int, said: str) -> None:
    answer = requests.post(f"{aws.told['url']}{path}", headers=headers, timeout=120)
    assert (answer.status_code, said in answer.text) == (status, True), answer.text


def test_a_body_that_was_changed_on_the_way_is_refused(aws: Any) -> None:
    who = keys_of(aws)
    request = AWSRequest("POST", f"{aws.told['url']}/v1/describejobqueues", data=b"{}")
    SigV4Auth(Credentials(*who.values()), "batch", "us-east-1").add_auth(request)
    headers = dict(request.headers)
    assert requests.post(request.url, b"{}", headers=headers, timeout=120).status_code == 200
    changed = requests.post(request.url, b'{"maxResults": 1}', headers=headers, timeout=120)
    assert (changed.status_code, "InvalidSignatureException" in changed.text) == (403, True)


def test_an_object_of_s3_is_written_and_read_and_its_hash_is_held(aws: Any) -> None:
    s3 = client(aws, "s3", keys_of(aws))
    s3.create_bucket(Bucket="signed")
    name = "a b/ü+~(1)=*.txt"
    s3.put_object(Bucket="signed", Key=name, Body=b"whole", Metadata={"a": "x  y"})
    assert s3.get_object(Bucket="signed", Key=name)["Body"].read() == b"whole"
    assert [row["Key"] for row in s3.list_objects_v2(Bucket="signed", Prefix="a b/ü")["Contents"]] == [name]

    def changed(request: Any, **_: Any) -> None:
        request.body = b"other"

    s3.meta.events.register("before-send.s3.PutObject", changed)
    with pytest.raises(ClientError, match="XAmzContentSHA256Mismatch"):
        s3.put_object(Bucket="signed", Key="changed", Body=b"whole")


def test_a_presigned_url_is_good_until_it_has_expired(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = boto3.client
    v4 = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    s3 = made("s3", region_name="us-east-1", endpoint_url=aws.told["url"], config=v4, **keys_of(aws))
    s3.create_bucket(Bucket="presigned")
    s3.put_object(Bucket="presigned", Key="a b", Body=b"whole")

    def url() -> str:
        return s3.generate_presigned_url("get_object", {"Bucket": "presigned", "Key": "a b"}, ExpiresIn=60)

    good = url()
    assert requests.get(good, timeout=120).content == b"whole"
    forged = requests.get(good.replace("a%20b", "another"), timeout=120)
    assert (forged.status_code, "SignatureDoesNotMatch" in forged.text) == (403, True)
    old(monkeypatch, timedelta(minutes=2))
    late = requests.get(url(), timeout=120)
    assert (late.status_code, "Request has expired" in late.text) == (403, True)


def test_each_caller_has_a_key_of_its_own(aws: Any) -> None:
    deployer = keys_of(aws, "deployer")
    assert deployer != keys_of(aws)
    assert client(aws, "iam", deployer).list_roles()


def test_the_key_is_made_once_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    assert keys.key(tmp_path) == keys.key(tmp_path) != keys.key(tmp_path / "another")
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0


@pytest.fixture(params=["aws", "google"])
def root(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """The address of one of the two clouds, and its folder."""
    if request.param == "aws":
        aws = request.getfixturevalue("aws")
        return aws.told["url"], aws.home
    google: Fake = request.getfixturevalue("fake")
    return google.url, google.home


def test_the_control_api_wants_the_key(root: tuple[str, Path]) -> None:
    url, home = root
    for headers in ({}, {"Authorization": "Bearer sandbox"}):
        refused = requests.delete(f"{url}/sandbox-api/faults", headers=headers, timeout=120)
        assert refused.status_code == 401, refused.text
    allowed = requests.delete(f"{url}/sandbox-api/faults", headers=keys.bearer(home), timeout=120)
    assert allowed.status_code == 200, allowed.text


@pytest.mark.parametrize(
    "foreign",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example:{port}"},
        {"Host": "127.0.0.1.attacker.example"},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
    ],
    ids=str,
)
def test_another_host_or_origin_is_refused(root: tuple[str, Path], foreign: dict[str, str]) -> None:
    url, home = root
    port = str(urlsplit(url).port)
    headers = {name: value.format(port=port) for name, value in foreign.items()} | keys.bearer(home)
    answer = requests.get(f"{url}/sandbox-api/faults", headers=headers, timeout=120)
    assert (answer.status_code, "sandbox" in answer.text) == (403, True)
    own = {"Origin": url, "Host": f"localhost:{port}"} | keys.bearer(home)
    assert requests.get(f"{url}/sandbox-api/faults", headers=own, timeout=120).status_code == 200


def metadata(url: str, path: str, **headers: str) -> Callable[[], tuple[int, str]]:
    def ask() -> tuple[int, str]:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
        connection.request("GET", path, headers={"Metadata-Flavor": "Google", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    return ask


TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"


@as_root
def test_another_user_gets_no_token_of_a_function(fake: Fake) -> None:
    ask = metadata(fake.url, TOKEN)
    status, text = ask()
    assert (status, json.loads(text)["access_token"].startswith(fake.token)) == (200, True)
    status, text = as_nobody(ask)
    assert (status, fake.token in text) == (403, False)


class Plugin:
    version = "1.2.3"


@as_root
def test_another_user_is_not_served_by_the_plugins() -> None:
    server, port = serve(Servicer(lambda: Plugin()))  # type: ignore[arg-type]

    def opened() -> bytes:
        """What comes of a call without gRPC's library, which does not survive a fork."""
        import socket

        with socket.create_connection(("127.0.0.1", port), 10) as one:
            one.sendall(_CALL)
            end, got = time.monotonic() + 3, b""
            one.settimeout(0.5)
            while time.monotonic() < end and b"1.2.3" not in got:
                try:
                    got += one.recv(65536)
                except TimeoutError:
                    continue
            return got

    try:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        assert provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(empty_pb2.Empty()).version == "1.2.3"
        assert b"1.2.3" in opened()
        got = as_nobody(opened)
        assert got and b"1.2.3" not in got
    finally:
        server.stop(grace=None).wait()


def _frame(kind: int, flags: int, stream: int, data: bytes) -> bytes:
    return len(data).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + data


def _header(name: str, value: str) -> bytes:
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


_HEAD = b"".join(
    _header(name, value)
    for name, value in (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/pulumirpc.ResourceProvider/GetPluginInfo"),
        (":authority", "127.0.0.1"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
)
_CALL = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"") + _frame(1, 4, 1, _HEAD) + _frame(0, 1, 1, bytes(5))
