"""What Google says, read from a local server, and how machines are put together."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import pytest

from accel.catalog.check import machine_rows
from accel.catalog.tables import shipped_table
from accel.clouds.google import rest
from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError, NoCredentials
from stacks.operations.refresh.gcp import FAMILIES, GPUS, amounts, read
from stacks.operations.refresh.reading import Reading, Spot

from .live_clouds import Answer, Asked, google_error, serving, sku, skus

MACHINES = [row for (cloud, _), row in machine_rows().items() if cloud == "gcp"]
SHIPPED = {(row["region"], row["machine"]): row for row in shipped_table("prices.csv").rows() if row["cloud"] == "gcp"}
SPOT_A2 = "Spot Preemptible A2 Instance"
A100 = "Nvidia Tesla A100 GPU"
ROOT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING"
Live = Callable[..., Reading]

# Rates of us-central1 as public tests of other tools have them.
LISTED = [
    sku("A2 Instance Core running in Americas", 0.031611),
    sku("A2 Instance Ram running in Americas", 0.004237, unit="GiBy.h"),
    sku(f"{A100} running in Americas", 2.933908),
    sku("Nvidia Tesla A100 80GB GPU running in Iowa", 3.92808),
    sku("SSD backed Local Storage", 0.08, unit="GiBy.mo"),
    sku(f"{SPOT_A2} Core running in Americas", 0.018967, usage="Preemptible"),
    sku(f"{SPOT_A2} Ram running in Americas", 0.002542, usage="Preemptible", unit="GiBy.h"),
    sku(f"{A100} attached to Spot Preemptible VMs running in Americas", 1.484311),
    sku("G2 Instance Core running in Americas", 0.024988),
    sku("G2 Instance Ram running in Americas", 0.002927, unit="GiBy.h"),
    sku("Nvidia L4 GPU running in Americas", 0.56004),
    sku("N1 Predefined Instance Core running in Americas", 0.031611),
    sku("N1 Predefined Instance Ram running in Americas", 0.004237, unit="GiBy.h"),
    sku("Nvidia Tesla T4 GPU running in Americas", 0.35),
]
# None of these is what a machine is billed.
OTHERS = [
    sku("A2 Instance Core running in Belgium", 9.0, "europe-west1"),
    sku("Reserved A2 Core in Americas", 9.0),
    sku("Commitment v1: A2 Cpu in Americas for 1 Year", 9.0, usage="Commit1Yr"),
    sku("A2 Sole Tenancy Instance Core running in Americas", 9.0),
    sku("Custom A2 Instance Core running in Americas", 9.0),
    sku(f"{A100} attached to DWS Defined Duration VMs running in Americas", 9.0),
    sku("A2 Instance Core running in Americas", 9.0, usage="CmtCudPremium"),
    sku("A2 Instance Core running in Americas", 0.0),
    sku("A2 Instance Core running in Americas", 9.0, tieredRates=[{}, {}]),
    sku("A2 Instance Core running in Americas", 9.0, unit="furlong"),
    sku("SSD backed Local Storage attached to DWS Defined Duration VMs", 9.0, unit="GiBy.mo"),
]


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """read() of us-central1 with a key, against a server that answers so, without pauses."""
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    monkeypatch.setattr(rest, "BACKOFF_S", 0)
    with ExitStack() as stack:

        def call(answer: Callable[[Asked], Answer]) -> Reading:
            monkeypatch.setenv(ROOT, stack.enter_context(serving(answer)))
            return read(["us-central1"], MACHINES)

        yield call


def listing(*listed: dict[str, Any]) -> Callable[[Asked], Answer]:
    return lambda _: skus(*listed)


@pytest.mark.parametrize("others", [(), OTHERS], ids=["alone", "among others"])
@pytest.mark.parametrize(
    "machine", ["a2-highgpu-1g", "a2-highgpu-8g", "a2-megagpu-16g", "a2-ultragpu-1g", "g2-standard-4", "n1-standard-8"]
)
def test_sums_are_the_prices_that_ship(live: Live, machine: str, others: list[dict[str, Any]]) -> None:
    found = live(listing(*others, *LISTED, *others))
    usd = SHIPPED["us-central1", machine].figure("on_demand_usd_hour")
    assert found.on_demand["us-central1", machine] == pytest.approx(usd, rel=2e-5)
    assert found.kept == []


def test_spot_is_of_skus_of_spot_alone(live: Live) -> None:
    found = live(listing(*LISTED))
    spot = found.spot["us-central1", "a2-highgpu-1g"]
    usd = SHIPPED["us-central1", "a2-highgpu-1g"].figure("spot_usd_hour_median")
    assert spot == Spot(spot.median, spot.median, 1) and spot.median == pytest.approx(usd, rel=1e-4)
    assert ("us-central1", "a2-ultragpu-1g") not in found.spot, "the GPU of Spot is not listed"
    assert ("us-central1", "g2-standard-4") not in found.spot


def test_attached_gpus_are_priced_without_their_host(live: Live) -> None:
    found = live(listing(*LISTED))
    assert found.on_demand["us-central1", "n1+nvidia-tesla-t4x4"] == pytest.approx(1.4)
    assert ("us-central1", "n1+nvidia-tesla-v100x1") not in found.on_demand


def test_a_machine_that_lacks_a_sku_has_no_price(live: Live) -> None:
    without = [each for each in LISTED if not each["description"].startswith("A2 Instance Ram")]
    found = live(listing(*without))
    assert not [machine for _, machine in found.on_demand if machine.startswith("a2-")]
    assert ("us-central1", "g2-standard-4") in found.on_demand


def test_two_prices_for_one_thing_are_in_doubt(live: Live) -> None:
    found = live(listing(*LISTED, sku("A2 Instance Core running in Iowa", 0.04)))
    assert not [machine for _, machine in found.on_demand if machine.startswith("a2-")]
    assert found.kept == ["A2 Instance Core in us-central1: several prices"]


def test_families_in_doubt_are_left_alone() -> None:
    priced = {row["machine"] for row in MACHINES if list(amounts(row))}
    assert {"a3-highgpu-8g", "n4-standard-8", "n1+nvidia-tesla-p4x1"} <= priced
    for start in ("a3-mega", "a3-ultra", "a3-edge", "a4", "g4", "v5", "v6e", "ct", "tpu7x"):
        assert not [machine for machine in priced if machine.startswith(start)]
    assert {row["accelerator"] for row in MACHINES} >= set(GPUS)
    for start in FAMILIES:
        assert [machine for machine in priced if machine.startswith(start)], start


def test_local_ssd_counts_where_it_is_bundled() -> None:
    rows = {row["machine"]: row for row in MACHINES}
    assert dict(amounts(rows["a3-highgpu-8g"]))["SSD backed Local Storage"] == 6000
    assert "SSD backed Local Storage" not in dict(amounts(rows["a2-highgpu-1g"]))


def test_every_page_is_read_with_the_key_in_a_header(live: Live) -> None:
    requests: list[Asked] = []

    def answer(asked: Asked) -> Answer:
        requests.append(asked)
        return skus(*LISTED[:3], token="a+b=") if not asked.token else skus(*LISTED[3:])

    found = live(answer)
    assert ("us-central1", "a2-ultragpu-1g") in found.on_demand
    assert [each.token for each in requests] == ["", "a+b="]
    assert all(each.headers["X-Goog-Api-Key"] == "k" for each in requests)
    assert requests[0].parameters == {"currencyCode": "USD", "pageSize": "5000"}


def test_pages_that_go_round(live: Live) -> None:
    with pytest.raises(CloudSilent, match="the same page again"):
        live(lambda _: skus(*LISTED, token="t"))


def test_throttling_is_waited_out_and_not_for_ever(live: Live) -> None:
    refusals = [google_error(429, "Quota exceeded"), google_error(503, "Unavailable")]
    assert live(lambda _: refusals.pop() if refusals else skus(*LISTED)).on_demand
    asked: list[Asked] = []
    with pytest.raises(CloudSilent, match="Quota exceeded"):
        live(lambda request: asked.append(request) or google_error(429, "Quota exceeded"))
    assert len(asked) == rest.ATTEMPTS


@pytest.mark.parametrize(
    "answer, kind, said",
    [
        (google_error(400, "API key not valid.", "API_KEY_INVALID"), NoCredentials, "API key not valid."),
        (google_error(401, "Request had invalid authentication credentials."), NoCredentials, "invalid authentication"),
        (google_error(403, "Cloud Billing API has not been used in project 1"), CloudRefused, "has not been used"),
        (google_error(400, "Invalid page size"), CloudRefused, "Invalid page size"),
        ((403, "<html>"), CloudSilent, "HTTP 403"),
        ((200, "<html>"), CloudSilent, "not a JSON object"),
        ((200, "[]"), CloudSilent, "not a JSON object"),
        ((200, "{}"), CloudSilent, "not what Google documents"),
        (skus({"description": "A2 Instance Core running in Americas"}), CloudSilent, "not what Google documents"),
    ],
)
def test_refusals_and_damaged_answers(live: Live, answer: Answer, kind: type[JobsError], said: str) -> None:
    with pytest.raises(kind, match=said):
        live(lambda _: answer)


def test_another_currency_is_refused(live: Live) -> None:
    listed = json.loads(json.dumps(LISTED[0]).replace("USD", "EUR"))
    with pytest.raises(CloudSilent, match="is in EUR"):
        live(listing(listed))


@pytest.mark.usefixtures("live")
def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: skus()) as url:
        monkeypatch.setenv(ROOT, url)
    with pytest.raises(CloudSilent, match="cloudbilling services/"):
        read(["us-central1"], MACHINES)


def test_nothing_of_the_catalogue(live: Live) -> None:
    found = live(listing(*OTHERS[1:]))
    assert found.empty and found.kept == [
        "services/6F81-5844-456A/skus: no SKU of the machines of the catalogue in these regions"
    ]


def test_who_asks(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Answer:
        asked.append(request)
        return skus(*LISTED)

    monkeypatch.setenv(rest.GIVEN, "t")
    live(answer)
    monkeypatch.setenv("GOOGLE_API_KEY", " AIza\n")
    live(answer)
    monkeypatch.delenv("GOOGLE_API_KEY")
    live(answer)
    told = [(each.headers["X-Goog-Api-Key"], each.headers["Authorization"]) for each in asked]
    assert told == [("k", None), ("AIza", None), (None, "Bearer t")]
    monkeypatch.setenv("GOOGLE_API_KEY", "AI\nza")
    with pytest.raises(NoCredentials, match="GOOGLE_API_KEY is no API key"):
        live(answer)


def test_without_credentials(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        if name.startswith("google."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return import_module(name)

    monkeypatch.delenv("GOOGLE_API_KEY")
    monkeypatch.delenv(rest.GIVEN, raising=False)
    monkeypatch.setattr(rest, "import_module", missing)
    with pytest.raises(NoCredentials, match="Google: "):
        live(lambda _: skus(*LISTED))
