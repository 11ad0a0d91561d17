"""Where archives are kept: S3 as moto has it, the sandbox's Cloud Storage, and this machine."""

import hashlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
import requests
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from accel.clouds.google import rest
from accel.contract.targets import read_one
from accel.diagnostics.errors import BadInput, CloudRefused
from jobs.client.code import shipping, tree
from jobs.client.code.archive import Archive, pack
from jobs.client.code.inside import s3 as fetching
from tests.jobs.batch_target import BATCH
from tests.jobs.code.projects import project, ran
from tests.support.google_fake import Fake
from tests.support.google_fake import fake as fake
from tests.support.moto import KEYS, Moto
from tests.support.serving import QuietServer


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return pack(tree.read(project(tmp_path / "p", {"hello.py": "print('hello')", "data": os.urandom(300_000)})))


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = Moto()
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": server.url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    yield server.url
    server.stop()


def test_s3_has_it_once(endpoint: str, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    s3 = boto3.client("s3", region_name="us-east-1")
    bucket = f"code-{archive.digest[:12]}"
    s3.create_bucket(Bucket=bucket)
    kept = shipping.S3("us-east-1", bucket)
    assert kept.put(archive) is True
    first = s3.head_object(Bucket=bucket, Key=archive.name)
    assert kept.put(archive) is False
    assert s3.head_object(Bucket=bucket, Key=archive.name)["LastModified"] == first["LastModified"]
    done = ran(kept.source(archive), archive, "python3", "hello.py", scheme="s3", AWS_ENDPOINT_URL=endpoint, **KEYS)
    assert done.stdout == "hello\n", done.stderr
    later = datetime.now(UTC) + timedelta(days=2)
    monkeypatch.setattr(shipping, "_moment", lambda answer: later)
    assert kept.put(archive) is True, "what a bucket may soon forget is sent again"


def test_s3_of_two_clients_at_once(endpoint: str, archive: Archive) -> None:
    bucket = f"both-{archive.digest[:12]}"
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket=bucket)
    other = tuple(shipping.S3("us-east-1", bucket) for _ in range(4))
    made: list[bool] = []
    data = shipping._whole(archive)

    def put(one: shipping.S3) -> None:
        made.append(one.put(replace(archive, data=io.BytesIO(data))))

    threads = [threading.Thread(target=put, args=(one,)) for one in other]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4 and True in made
    assert s3.get_object(Bucket=bucket, Key=archive.name)["Body"].read() == data


def test_s3_without_a_bucket(endpoint: str, archive: Archive) -> None:
    with pytest.raises(CloudRefused, match="NoSuchBucket"):
        shipping.S3("us-east-1", "never-made").put(archive)


@pytest.mark.parametrize("token", ["", "session/token+="])
def test_requests_are_signed_as_botocore_signs_them(token: str) -> None:
    url = "https://code-1.s3.eu-west-1.amazonaws.com/accel-jobs/code/0f3c.tar.gz"
    keys = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "secret/key", "Token": token}
    ours = fetching.signed(url, "eu-west-1", keys, "20260131T235959Z")
    request = AWSRequest("GET", url)
    auth = S3SigV4Auth(Credentials("AKIDEXAMPLE", "secret/key", token or None), "s3", "eu-west-1")
    request.context["timestamp"] = "20260131T235959Z"
    request.headers["X-Amz-Date"] = "20260131T235959Z"
    if token:
        request.headers["X-Amz-Security-Token"] = token
    request.headers["X-Amz-Content-SHA256"] = hashlib.sha256().hexdigest()
    text = auth.string_to_sign(request, auth.canonical_request(request))
    signature = auth.signature(text, request)
    assert ours["host"] == urlsplit(url).netloc
    assert ours["Authorization"].endswith(f"Signature={signature}")


def test_the_role_s_keys_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the variables may be of another account, and their endpoint another store."""
    asked: list[Any] = []
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "theirs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio.local")

    class Opener:
        def open(self, url: str, timeout: float) -> Any:
            assert url == "http://169.254.170.2/v2/credentials/1"
            return io.BytesIO(b'{"AccessKeyId": "role", "SecretAccessKey": "s", "Token": "t"}')

    monkeypatch.setattr(fetching, "build_opener", lambda *handlers: Opener())
    monkeypatch.setattr(fetching, "urlopen", lambda request, timeout: asked.append(request))
    for region, host in (
        ("eu-west-1", "b.s3.eu-west-1.amazonaws.com"),
        ("cn-north-1", "b.s3.cn-north-1.amazonaws.com.cn"),
        ("eusc-de-east-1", "b.s3.eusc-de-east-1.amazonaws.eu"),
    ):
        fetching.opened(f"s3://{region}/b/accel-jobs/code/x.tar.gz")
        request = asked.pop()
        assert request.full_url == f"https://{host}/accel-jobs/code/x.tar.gz"
        assert "Credential=role/" in request.get_header("Authorization")
        assert request.get_header("X-amz-security-token") == "t"


def test_without_a_role(archive: Archive) -> None:
    line = "import jobs.client.code.inside.s3 as s3; s3.opened('s3://r/b/k')"
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, env=env, check=False)
    assert "OSError: the container has no role" in done.stderr


def test_cloud_storage_has_it_once(fake: Fake, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    root = f"{fake.url}/storage.googleapis.com/"
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", f"{root}storage/v1/")
    fake.call("POST", "storage.googleapis.com/storage/v1/b", {"name": "code"}, project="accel-sandbox")
    kept = shipping.CloudStorage("code")
    assert kept.put(archive) is True
    about = f"storage.googleapis.com/storage/v1/b/code/o/{rest.path_segment(archive.name)}"
    first = fake.call("GET", about)
    assert kept.put(archive) is False
    assert fake.call("GET", about)["generation"] == first["generation"]
    env = {"ACCEL_STORAGE_ROOT": root, "GOOGLE_OAUTH_ACCESS_TOKEN": fake.token}
    done = ran(kept.source(archive), archive, "python3", "hello.py", scheme="gs", **env)
    assert done.stdout == "hello\n", done.stderr
    monkeypatch.setattr(shipping, "FRESH_S", -1)
    assert kept.put(archive) is True, "what a bucket may soon forget is sent again"
    assert fake.call("GET", about)["generation"] != first["generation"]


def test_the_metadata_server_speaks_for_the_account(fake: Fake, archive: Archive) -> None:
    class Metadata(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.headers["Metadata-Flavor"] == "Google"
            assert self.path == "/computeMetadata/v1/instance/service-accounts/default/token"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"access_token": "%s", "expires_in": 3599}' % fake.token.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = QuietServer(Metadata)
    root = f"{fake.url}/storage.googleapis.com/"
    fake.ask("POST", "storage.googleapis.com/storage/v1/b", {"name": "other"}, project="accel-sandbox")
    url = f"{root}upload/storage/v1/b/other/o?uploadType=media&name={archive.name}"
    head = {"Authorization": f"Bearer {fake.token}"}
    assert requests.post(url, data=shipping._whole(archive), headers=head, timeout=120).ok
    host = server.host
    env = {"ACCEL_STORAGE_ROOT": root, "GCE_METADATA_HOST": host, "http_proxy": "http://127.0.0.1:9"}
    env["no_proxy"] = "127.0.0.1"
    source = shipping.CloudStorage("other").source(archive)
    assert ran(source, archive, "python3", "hello.py", scheme="gs", **env).stdout == "hello\n"
    server.stop()


def test_this_machine(tmp_path: Path, archive: Archive) -> None:
    kept = shipping.Folder(tmp_path / "kept")
    assert [kept.put(archive), kept.put(archive)] == [True, False]
    assert ran(kept.source(archive), archive, "python3", "hello.py").stdout == "hello\n"


def test_targets_without_a_bucket() -> None:
    with pytest.raises(BadInput, match="--code: target gpu has no bucket for code") as fault:
        shipping.of_target("gpu", read_one(BATCH))
    assert "aws" in str(fault.value.hint)
    assert shipping.of_target("gpu", read_one({**BATCH, "code_bucket": "b"})) == shipping.S3("us-east-1", "b")
