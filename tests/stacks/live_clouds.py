"""A local server that answers as the price lists of AWS and Google do, in the shapes that they document.

GetProducts: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
Spot: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
Offers: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html
SKUs: https://docs.cloud.google.com/billing/v1/how-tos/catalog-api
"""

import json
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.serving import QuietServer

Answer = tuple[int, str]
"""Status and body."""


def product(machine: str, usd: str, region: str = "us-east-1", **attributes: str) -> str:
    """One entry of a PriceList."""
    sku = f"{machine}.{region}".upper()
    price = {"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "appliesTo": [], "pricePerUnit": {"USD": usd}}
    term = {"sku": sku, "offerTermCode": "JRTCKXETXF", "priceDimensions": {f"{sku}.JRTCKXETXF.6YS6EN2CT7": price}}
    reserved = {"priceDimensions": {"a": {"unit": "Hrs", "pricePerUnit": {"USD": "0.0100000000"}}}}
    own = {"instanceType": machine, "regionCode": region, "operatingSystem": "Linux", "marketoption": "OnDemand"}
    terms = {"OnDemand": {f"{sku}.JRTCKXETXF": term}, "Reserved": {f"{sku}.4NA7Y494T4": reserved}}
    return json.dumps(
        {"product": {"productFamily": "Compute Instance", "attributes": own | attributes}, "terms": terms}
    )


def price_list(*products: str, token: str | None = None) -> Answer:
    """A page of GetProducts."""
    page: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": list(products)}
    return 200, json.dumps(page | ({"NextToken": token} if token else {}))


def spot_history(*entries: tuple[str, str, str, str], token: str = "") -> Answer:
    """A page of DescribeSpotPriceHistory: instance type, zone, price, time."""
    items = "".join(
        f"<item><instanceType>{machine}</instanceType><productDescription>Linux/UNIX</productDescription>"
        f"<spotPrice>{usd}</spotPrice><timestamp>{at}</timestamp><availabilityZone>{zone}</availabilityZone></item>"
        for machine, zone, usd, at in entries
    )
    return 200, _xml("DescribeSpotPriceHistoryResponse", "spotPriceHistorySet", items, token)


def offerings(*entries: tuple[str, str], token: str = "") -> Answer:
    """A page of DescribeInstanceTypeOfferings: instance type, zone id."""
    items = "".join(
        f"<item><instanceType>{machine}</instanceType><locationType>availability-zone-id</locationType>"
        f"<location>{zone}</location></item>"
        for machine, zone in entries
    )
    return 200, _xml("DescribeInstanceTypeOfferingsResponse", "instanceTypeOfferingSet", items, token)


def instance_types(*entries: str, token: str = "") -> Answer:
    """A page of DescribeInstanceTypes, of `instance_type`s."""
    items = "".join(f"<item>{entry}</item>" for entry in entries)
    return 200, _xml("DescribeInstanceTypesResponse", "instanceTypeSet", items, token)


def instance_type(name: str, gpu: str, count: int, memory_mib: int, maker: str = "NVIDIA") -> str:
    """An instance type with 8 vCPUs and 64 GiB, 900 GB of disk, EFA and GPUs of so much memory each."""
    gpus = (
        f"<gpus><item><name>{gpu}</name><manufacturer>{maker}</manufacturer><count>{count}</count>"
        f"<memoryInfo><sizeInMiB>{memory_mib}</sizeInMiB></memoryInfo></item></gpus>"
        f"<totalGpuMemoryInMiB>{memory_mib * count}</totalGpuMemoryInMiB>"
    )
    network = (
        "<networkPerformance>400 Gigabit</networkPerformance><efaSupported>true</efaSupported>"
        "<efaInfo><maximumEfaInterfaces>4</maximumEfaInterfaces></efaInfo><networkCards><item>"
        "<networkCardIndex>0</networkCardIndex><baselineBandwidthInGbps>400.0</baselineBandwidthInGbps></item></networkCards>"
    )
    return (
        f"<instanceType>{name}</instanceType><vCpuInfo><defaultVCpus>8</defaultVCpus></vCpuInfo>"
        "<memoryInfo><sizeInMiB>65536</sizeInMiB></memoryInfo>"
        "<supportedUsageClasses><item>on-demand</item><item>capacity-block</item></supportedUsageClasses>"
        "<processorInfo><supportedArchitectures><item>x86_64</item></supportedArchitectures></processorInfo>"
        f"<instanceStorageInfo><totalSizeInGB>900</totalSizeInGB></instanceStorageInfo>"
        f"<networkInfo>{network}</networkInfo><gpuInfo>{gpus}</gpuInfo>"
    )


def _xml(name: str, items_name: str, items: str, token: str) -> str:
    body = f"<requestId>r</requestId><{items_name}>{items}</{items_name}><nextToken>{token}</nextToken>"
    return f'<{name} xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">{body}</{name}>'


def ec2_error(status: int, code: str, message: str = "no") -> Answer:
    """An error of EC2."""
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return status, f"<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>"


def pricing_error(status: int, code: str, message: str = "no") -> Answer:
    """An error of the Price List."""
    return status, json.dumps({"__type": code, "message": message})


def sku(
    description: str, usd: float, *regions: str, unit: str = "h", usage: str = "OnDemand", **changes: Any
) -> dict[str, Any]:
    """One SKU of Google's list."""
    money = {"currencyCode": "USD", "units": str(int(usd)), "nanos": round(usd % 1 * 1e9)}
    expression = {"usageUnit": unit, "displayQuantity": 1, "tieredRates": [{"startUsageAmount": 0, "unitPrice": money}]}
    return {
        "name": "services/6F81-5844-456A/skus/0000-0000-0000",
        "skuId": "0000-0000-0000",
        "description": description,
        "category": {"serviceDisplayName": "Compute Engine", "resourceFamily": "Compute", "usageType": usage},
        "serviceRegions": list(regions or ("us-central1",)),
        "pricingInfo": [{"summary": "", "pricingExpression": expression | changes, "currencyConversionRate": 1}],
    }


def skus(*listed: dict[str, Any], token: str = "") -> Answer:
    """A page of Google's list."""
    return 200, json.dumps({"skus": list(listed), "nextPageToken": token})


def google_error(status: int, message: str, reason: str = "") -> Answer:
    """An error of a Google API."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}
    return status, json.dumps({"error": {"code": status, "message": message, "details": [info] if reason else []}})


class Asked:
    """One request: the operation, the region that signed it, its parameters and headers."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self.headers = handler.headers
        signed = re.search(r"Credential=[^/]+/\d+/([^/]+)/", handler.headers.get("Authorization", ""))
        self.region = signed[1] if signed else ""
        target = handler.headers.get("X-Amz-Target", "")
        query = parse_qs(urlsplit(handler.path).query) if handler.command == "GET" else {}
        if target:
            self.operation, self.parameters = target.rpartition(".")[2], json.loads(body)
        elif query:
            self.operation, self.parameters = "skus", {name: values[0] for name, values in query.items()}
        else:
            self.parameters = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            self.operation = self.parameters["Action"]

    @property
    def token(self) -> str:
        """The page that is asked for, empty for the first."""
        return self.parameters.get("NextToken") or self.parameters.get("pageToken") or ""

    @property
    def price_region(self) -> str:
        """The region whose prices GetProducts is asked for."""
        return next(each["Value"] for each in self.parameters["Filters"] if each["Field"] == "regionCode")


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Generator[str]:
    """The URL of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, text = answer(Asked(self, body))
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = _reply  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = QuietServer(Handler)
    try:
        yield server.url
    finally:
        server.stop()
