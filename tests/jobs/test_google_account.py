"""Whose credentials they are: of each form that they come in."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from accel.clouds.google import account
from accel.clouds.google.rest import SIGN_IN, auth_headers
from accel.diagnostics.errors import NoCredentials
from sandbox.google import USER
from tests.support.google_fake import Fake

pytest_plugins = ["tests.support.google_fake"]

ROBOT = "robot@acme.iam.gserviceaccount.com"


@pytest.fixture(autouse=True)
def _apart(fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("GOOGLE_OAUTH_ACCESS_TOKEN", "ACCEL_GOOGLE_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "credentials.json"))
    root = f"{fake.url}/openidconnect.googleapis.com/"
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_OPENIDCONNECT", root)


def stub(monkeypatch: pytest.MonkeyPatch, **made: Any) -> list[Sequence[str]]:
    """Credentials of a kind whose token no test can be given; the scopes that were asked for."""
    asked: list[Sequence[str]] = []

    def credentials(*scopes: str) -> Any:
        asked.append(scopes)
        return SimpleNamespace(**made)

    monkeypatch.setattr(account, "credentials", credentials)
    return asked


def test_what_is_given_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_GOOGLE_ACCOUNT", "me@example.com")
    assert account.email() == "me@example.com"


def write_key(file: Path, token_uri: str, key_id: str) -> None:
    pem = generate_private_key(65537, 2048).private_bytes(
        form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
    )
    key = {"type": "service_account", "client_email": ROBOT, "private_key": pem.decode(), "private_key_id": key_id}
    file.write_text(json.dumps({**key, "token_uri": token_uri}))


def test_the_key_of_a_service_account_has_its_address(fake: Fake, tmp_path: Path) -> None:
    write_key(tmp_path / "credentials.json", f"{fake.url}/oauth2.googleapis.com/token", fake.token)
    assert account.email() == ROBOT
    # As clusters see it: their RBAC has the address, and without it the token stands for a number.
    assert auth_headers() == {"authorization": f"Bearer {fake.token}"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not a valid json file: Expecting value: line 1 column 1 (char 0)"),
        (b"\xff\xfe", "is not a valid json file: 'utf-8' codec can't decode byte 0xff"),
        (b"{}", "does not have a valid type. Type is None, expected one of"),
        (b'{"type": "authorized_user"}', "credentials.json: Authorized user info was not in the expected format"),
        (b'{"type": "service_account", "client_email": "a", "token_uri": "b", "private_key": "c"}', "load PEM file"),
        (b"[]", "credentials.json: not readable as credentials: 'list' object has no attribute 'get'"),
        (b"5", "credentials.json: not readable as credentials: 'int' object has no attribute 'get'"),
        (b"[" * 100_000, "credentials.json: not readable as credentials: maximum recursion depth exceeded"),
        (b'{"type": "impersonated_service_account", "source_credentials": []}', "not readable as credentials: "),
    ],
)
def test_a_file_that_is_none_of_credentials_is_one_line(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_bytes(content)
    with pytest.raises(NoCredentials) as refused:
        auth_headers()
    assert told in refused.value.message
    assert refused.value.message.startswith("Google: ")
    assert not any(each in refused.value.message for each in ("Error(", "Google: (", "\n"))
    assert refused.value.hint == SIGN_IN


def test_a_folder_is_no_file_of_credentials(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").mkdir()
    with pytest.raises(NoCredentials, match=r"credentials\.json: not readable as credentials: .*Is a directory"):
        auth_headers()


def test_google_tells_why_it_gives_no_token(fake: Fake, tmp_path: Path) -> None:
    """google-auth's error has the whole answer beside its text."""
    write_key(tmp_path / "credentials.json", f"{fake.url}/oauth2.googleapis.com/token", "of-nobody")
    with pytest.raises(NoCredentials) as refused:
        auth_headers()
    assert refused.value.message == "Google: invalid_grant: Bad Request"


def test_of_a_token_google_tells_whose_it_is(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
    assert account.email() == USER
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "expired")
    with pytest.raises(NoCredentials, match="is unknown") as refused:
        account.email()
    assert "ACCEL_GOOGLE_ACCOUNT" in str(refused.value.hint)


def test_a_person_is_asked_for_with_the_scope_that_tells(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stub(monkeypatch, account="", token=fake.token)
    assert account.email() == USER
    assert asked == [(account.SCOPE, account.EMAIL)]
    stub(monkeypatch, account="person@example.com", token="")
    assert account.email() == "person@example.com"


def test_federated_identities(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a service account to act as they have its address; without one nobody on machines knows them."""
    stub(monkeypatch, service_account_email=ROBOT, token="")
    assert account.email() == ROBOT
    stub(monkeypatch, service_account_email=None, token="of the federation")
    with pytest.raises(NoCredentials, match="is unknown"):
        account.email()
    stub(monkeypatch, service_account_email="default", token=fake.token)
    assert account.email() == USER, "an instance's, which says default until it is asked for"
