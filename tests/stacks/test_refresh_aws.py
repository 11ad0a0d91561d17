"""What AWS says, read by a real client from a local server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from moto import mock_aws

from accel.catalog.tables import shipped_table
from accel.clouds.aws.clients import client
from accel.diagnostics.errors import CloudSilent, NoCredentials
from stacks.operations.refresh.aws import FILTERS, offers, read
from stacks.operations.refresh.reading import Reading, Spot

from .live_clouds import (
    Answer,
    Asked,
    ec2_error,
    offerings,
    price_list,
    pricing_error,
    product,
    serving,
    spot_history,
)

MACHINES = ["g5.xlarge", "g6.xlarge", "p5.48xlarge"]
Live = Callable[..., Reading]


def usual(asked: Asked) -> Answer:
    """Two pages of each."""
    match asked.operation, asked.token:
        case "GetProducts", "":
            return price_list(product("g5.xlarge", "1.0060000000"), product("m9.large", "9.0"), token="t")
        case "GetProducts", _:
            return price_list(product("g6.xlarge", "0.8048000000"), product("p5.48xlarge", "0.0000000000"))
        case "DescribeSpotPriceHistory", "":
            return spot_history(
                ("g5.xlarge", "us-east-1a", "0.400000", "2026-11-22T08:00:00.000Z"),
                ("g5.xlarge", "us-east-1a", "0.900000", "2026-11-21T08:00:00.000Z"),
                token="t",
            )
        case "DescribeSpotPriceHistory", _:
            return spot_history(
                ("g5.xlarge", "us-east-1b", "0.300000", "2026-11-20T08:00:00.000Z"),
                ("g5.xlarge", "us-east-1c", "0.600000", "2026-11-20T08:00:00.000Z"),
                ("g5.xlarge", "us-east-1-bos-1a", "0.100000", "2026-11-20T08:00:00.000Z"),
            )
        case _, "":
            return offerings(("g5.xlarge", "use1-az2"), ("g5.xlarge", "use1-bos1-az1"), token="t")
        case _:
            return offerings(("g5.xlarge", "use1-az1"), ("g6.xlarge", "use1-az1"))


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """read() against a server that answers so; one attempt a request unless said otherwise."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with ExitStack() as stack:

        def call(
            answer: Callable[[Asked], Answer], regions: tuple[str, ...] = ("us-east-1",), tries: int = 1
        ) -> Reading:
            monkeypatch.setenv("AWS_ENDPOINT_URL", stack.enter_context(serving(answer)))
            few = {"connect_s": 5, "read_s": 5, "attempts": tries}
            monkeypatch.setattr(
                "stacks.operations.refresh.aws.client", lambda service, region, **_: client(service, region, **few)
            )
            return read(regions, MACHINES)

        yield call


def test_every_page_is_read_and_only_what_is_sold_there(live: Live) -> None:
    found = live(usual)
    assert found.on_demand == {("us-east-1", "g5.xlarge"): 1.006, ("us-east-1", "g6.xlarge"): 0.8048}
    assert found.spot == {("us-east-1", "g5.xlarge"): Spot(0.3, 0.4, 3)}
    assert found.offers == {"us-east-1": {"g5.xlarge": ("use1-az1", "use1-az2"), "g6.xlarge": ("use1-az1",)}}
    assert found.kept == []


def test_what_is_asked(live: Live) -> None:
    requests: list[Asked] = []
    live(lambda asked: requests.append(asked) or usual(asked), ("eu-west-1",))
    prices = next(each for each in requests if each.operation == "GetProducts")
    assert prices.region == "us-east-1" and prices.parameters["ServiceCode"] == "AmazonEC2"
    filters = {each["Field"]: (each["Type"], each["Value"]) for each in prices.parameters["Filters"]}
    wanted = {"regionCode": "eu-west-1", **FILTERS}
    assert filters == {name: ("TERM_MATCH", value) for name, value in wanted.items()}
    spot, zones = (
        next(each for each in requests if each.operation == f"Describe{name}")
        for name in ("SpotPriceHistory", "InstanceTypeOfferings")
    )
    assert spot.region == zones.region == "eu-west-1"
    assert spot.parameters["ProductDescription.1"] == "Linux/UNIX" and "StartTime" in spot.parameters
    assert zones.parameters["LocationType"] == "availability-zone-id"
    for each in (spot, zones):
        assert each.parameters["Filter.1.Name"] == "instance-type"
        assert {each.parameters[f"Filter.1.Value.{n}"] for n in (1, 2, 3)} == set(MACHINES)


@pytest.mark.parametrize("code, status", [("AuthFailure", 401), ("OptInRequired", 403), ("UnauthorizedOperation", 403)])
def test_a_region_that_refuses_is_said_and_the_others_are_read(live: Live, code: str, status: int) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.operation != "GetProducts" and asked.region == "af-south-1":
            return ec2_error(status, code, "not for you")
        return usual(asked)

    found = live(answer, ("af-south-1", "us-east-1"))
    assert set(found.offers) == {"us-east-1"} and {region for region, _ in found.spot} == {"us-east-1"}
    assert ("af-south-1", "g5.xlarge") in found.on_demand
    assert len(found.kept) == 2 and all("of af-south-1" in line and "not for you" in line for line in found.kept)
    assert all(("enabled" in line) == (status == 401) for line in found.kept)


def test_without_leave_for_the_price_list_spot_is_read(live: Live) -> None:
    def answer(asked: Asked) -> Answer:
        refused = pricing_error(400, "AccessDeniedException", "no pricing:GetProducts")
        return refused if asked.operation == "GetProducts" else usual(asked)

    found = live(answer)
    assert not found.on_demand and found.spot and found.offers
    assert "pricing:GetProducts" in found.kept[0]


@pytest.mark.parametrize("code", ["UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException"])
def test_credentials_that_nobody_knows(live: Live, code: str) -> None:
    with pytest.raises(NoCredentials, match=f"GetProducts of us-east-1: {code}"):
        live(lambda _: pricing_error(400, code))


def test_throttling_is_waited_out_and_not_for_ever(live: Live) -> None:
    refusals = iter(["GetProducts", "DescribeSpotPriceHistory"])
    due = [next(refusals)]

    def once(asked: Asked) -> Answer:
        if asked.operation == due[0]:
            due[0] = next(refusals, "")
            error = pricing_error(400, "ThrottlingException")
            return error if asked.operation == "GetProducts" else ec2_error(503, "RequestLimitExceeded")
        return usual(asked)

    assert live(once, tries=2).on_demand
    with pytest.raises(CloudSilent, match="RequestLimitExceeded"):
        live(lambda asked: usual(asked) if asked.operation == "GetProducts" else ec2_error(503, "RequestLimitExceeded"))


@pytest.mark.parametrize(
    "operation, answer",
    [
        ("GetProducts", (200, "<html>proxy</html>")),
        ("GetProducts", (200, "[]")),
        ("GetProducts", price_list("{}")),
        ("GetProducts", price_list("not json")),
        ("GetProducts", price_list(product("g5.xlarge", "a dollar"))),
        ("GetProducts", price_list(product("g5.xlarge", "1").replace("priceDimensions", "prices"))),
        ("DescribeSpotPriceHistory", spot_history(("g5.xlarge", "us-east-1a", "dear", "2026-11-22T08:00:00.000Z"))),
        ("DescribeSpotPriceHistory", (200, "{}")),
        ("DescribeInstanceTypeOfferings", (502, "bad gateway")),
    ],
)
def test_a_damaged_answer_ends_it(live: Live, operation: str, answer: Answer) -> None:
    with pytest.raises(CloudSilent, match=f"{operation} of us-east-1: "):
        live(lambda asked: answer if asked.operation == operation else usual(asked))


def test_prices_that_differ_and_answers_that_are_empty_are_said(live: Live) -> None:
    def answer(asked: Asked) -> Answer:
        match asked.operation:
            case "GetProducts":
                return price_list(
                    product("g5.xlarge", "1.0"),
                    product("g5.xlarge", "2.0"),
                    product("g6.xlarge", "0.7"),
                    product("g6.xlarge", "0.1", marketoption="CapacityBlock"),
                )
            case "DescribeSpotPriceHistory":
                return spot_history()
            case _:
                return offerings()

    found = live(answer)
    assert found.on_demand == {("us-east-1", "g6.xlarge"): 0.7} and not found.spot and not found.offers
    assert [line.partition(": ")[0] for line in found.kept] == [
        "g5.xlarge in us-east-1",
        "DescribeInstanceTypeOfferings of us-east-1",
    ]
    (line,) = live(lambda asked: price_list() if asked.operation == "GetProducts" else usual(asked)).kept
    assert line.startswith("GetProducts of us-east-1: none")


@mock_aws
def test_the_zones_of_an_embedded_cloud_are_those_that_ship(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped offers are from moto's dump of the same answer."""
    wanted: dict[str, list[str]] = {}
    for row in shipped_table("regions.csv").rows():
        if row["region"] == "eu-west-1" and row["zone"]:
            wanted.setdefault(row["machine"], []).append(row["zone"])
    monkeypatch.setattr("stacks.operations.refresh.aws._prices", lambda *_: None)
    monkeypatch.setattr("stacks.operations.refresh.aws._spot", lambda *_: None)
    found = read(["eu-west-1"], list(wanted))
    assert {name: list(zones) for name, zones in found.offers["eu-west-1"].items()} == wanted


def test_offers_of_other_machines_are_no_matter() -> None:
    entries: list[dict[str, Any]] = [{"InstanceType": "m9.large", "Location": "use1-az1"}]
    assert offers(entries, MACHINES) == {}
