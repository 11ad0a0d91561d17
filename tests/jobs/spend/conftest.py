"""The three ledgers, empty for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from accel.contract.allowances import Allowances
from jobs.client.allowances.ledgers import address, ledger_at
from jobs.client.allowances.reservation import Ledger
from tests.jobs.spend import books
from tests.support.google_fake import Fake, P
from tests.support.waiting import until


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with books.aws(tmp_path_factory.mktemp("aws")) as variables:
        yield variables


@pytest.fixture(params=books.KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ledger_of(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[[float], tuple[Allowances, Ledger]]:
    """Allowances of an amount and their ledger, of the kind; each call a new client of the same ledger."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    where: dict[str, Any] = {}
    if kind == "dynamodb":
        variables: dict[str, str] = request.getfixturevalue("aws")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        where = books.make_table(f"ledger-{uuid4().hex[:8]}")
    if kind == "firestore":
        fake: Fake = request.getfixturevalue("fake")
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_FIRESTORE", f"{fake.url}/firestore.googleapis.com/")
        database = f"ledger-{uuid4().hex[:6]}x"
        path = f"firestore.googleapis.com/v1/{P}/databases"
        fake.call("POST", path, {"locationId": "us-central1", "type": "FIRESTORE_NATIVE"}, databaseId=database)
        until(lambda: fake.ask("GET", f"{path}/{database}").status_code != 404)
        where = {"kind": "firestore", "database": f"{P}/databases/{database}"}

    def make(usd: float) -> tuple[Allowances, Ledger]:
        allowances = books.allowances(usd, **where)
        return allowances, ledger_at(address(allowances))

    return make


@pytest.fixture
def ledger(ledger_of: Callable[[float], tuple[Allowances, Ledger]]) -> Ledger:
    return ledger_of(100)[1]


@pytest.fixture
def platform(tmp_path: Path) -> books.Platform:
    return books.Platform(tmp_path / "platform")
