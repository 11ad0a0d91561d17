"""EC2 in Service Quotas (moto has only VPC): grants, AWS's defaults, and requests for increases.

The account begins like a newly opened one: nothing is granted, and AWS's default of every GPU family is 0.

Control: POST /sandbox-api/quotas {"L-DB2E81BA": 0} sets a grant, in every region; null removes it, so that AWS's
default applies. Codes are those of EC2 in accel/catalog/data/quotas.csv and those of account.py.
"""

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from accel.catalog.quotas import Quota, quotas

from .account import LIMITS, Limit

Document = dict[str, Any]
Answer = tuple[int, list[tuple[str, str]], bytes]

_NAMES = {
    "ec2": "Amazon Elastic Compute Cloud (Amazon EC2)",
    "vpc": "Amazon Virtual Private Cloud (Amazon VPC)",
}


class ServiceQuotasError(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class ServiceQuotas:
    """Quotas of EC2, the same in every region."""

    def __init__(self, account_id: str) -> None:
        self._account_id = account_id
        vcpus = [quota for quota in quotas() if quota.service == "ec2"]
        self._known: dict[str, Quota | Limit] = {each.code: each for each in (*vcpus, *LIMITS)}
        self.granted: dict[str, float | None] = dict.fromkeys(self._known)
        self._requests: list[Document] = []
        self._operations: dict[str, Callable[[str, Document], Document]] = {
            "GetServiceQuota": self._get,
            "ListServiceQuotas": self._list,
            "GetAWSDefaultServiceQuota": self._default,
            "ListAWSDefaultServiceQuotas": self._defaults,
            "RequestServiceQuotaIncrease": self._request,
            "GetRequestedServiceQuotaChange": self._requested,
            "ListRequestedServiceQuotaChangeHistoryByQuota": self._history,
        }

    def grant(self, values: Document) -> Document:
        for code, value in values.items():
            if code not in self._known:
                raise ValueError(f"{code!r} is no quota that the sandbox knows: {', '.join(sorted(self._known))}")
            self.granted[code] = None if value is None else float(value)
        return dict(self.granted)

    def limit(self, quota: Quota) -> float | None:
        granted = self.granted.get(quota.code)
        return quota.default if granted is None else granted

    def answer(self, operation: str, region: str, body: bytes) -> Answer | None:
        """Return None for another service or operation, which moto answers."""
        request: Document = json.loads(body or b"{}")
        raised = self.granted.get(request.get("QuotaCode", "")) is not None
        ours = request.get("ServiceCode") == "ec2" or "RequestId" in request or raised
        if operation not in self._operations or not ours:
            return None
        headers = [("Content-Type", "application/x-amz-json-1.1")]
        try:
            return 200, headers, json.dumps(self._operations[operation](region, request)).encode()
        except ServiceQuotasError as refused:
            document = {"__type": refused.code, "message": str(refused)}
            return 400, [*headers, ("x-amzn-ErrorType", refused.code)], json.dumps(document).encode()

    def _quota(self, request: Document) -> Quota | Limit:
        code, service = request.get("QuotaCode", ""), request["ServiceCode"]
        if code not in self._known or self._known[code].service != service:
            raise ServiceQuotasError("NoSuchResourceException", f"The specified quota {code} does not exist.")
        return self._known[code]

    def _of(self, request: Document) -> list[Quota | Limit]:
        return [each for each in self._known.values() if each.service == request["ServiceCode"]]

    def _shown(self, quota: Quota | Limit, value: float | None, region: str) -> Document:
        return {
            "ServiceCode": quota.service,
            "ServiceName": _NAMES[quota.service],
            "QuotaArn": f"arn:aws:servicequotas:{region}:{self._account_id}:{quota.service}/{quota.code}",
            "QuotaCode": quota.code,
            "QuotaName": quota.name,
            "Value": value,
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }

    def _get(self, region: str, request: Document) -> Document:
        quota = self._quota(request)
        granted = self.granted[quota.code]
        if granted is None:
            raise ServiceQuotasError("NoSuchResourceException", "The quota has no applied value.")
        return {"Quota": self._shown(quota, granted, region)}

    def _list(self, region: str, request: Document) -> Document:
        rows = [(quota, self.granted[quota.code]) for quota in self._of(request)]
        return {"Quotas": [self._shown(quota, value, region) for quota, value in rows if value is not None]}

    def _default(self, region: str, request: Document) -> Document:
        quota = self._quota(request)
        return {"Quota": self._shown(quota, quota.default, region)}

    def _defaults(self, region: str, request: Document) -> Document:
        return {"Quotas": [self._shown(quota, quota.default, region) for quota in self._of(request)]}

    def _request(self, region: str, request: Document) -> Document:
        """Open a request, which stays open as one for GPUs does until a person reviews it. AWS allows one at a time."""
        quota = self._quota(request)
        granted = self.granted[quota.code]
        now = quota.default or 0 if granted is None else granted
        if float(request["DesiredValue"]) <= now:
            raise ServiceQuotasError(
                "IllegalArgumentException", f"The desired value must be above the current one, {now}."
            )
        if self._open(quota.code, region):
            raise ServiceQuotasError(
                "ResourceAlreadyExistsException", "Only one open service quota increase request is allowed."
            )
        shown = self._shown(quota, None, region)
        asked = {key: value for key, value in shown.items() if key not in ("Value", "Adjustable")} | {
            "Id": uuid.uuid4().hex,
            "DesiredValue": float(request["DesiredValue"]),
            "Status": "PENDING",
            "Created": time.time(),
            "LastUpdated": time.time(),
        }
        self._requests.append(asked)
        return {"RequestedQuota": asked}

    def _open(self, code: str, region: str) -> list[Document]:
        return [each for each in self._requests if each["QuotaCode"] == code and f":{region}:" in each["QuotaArn"]]

    def _requested(self, region: str, request: Document) -> Document:
        found = [each for each in self._requests if each["Id"] == request["RequestId"]]
        if not found:
            raise ServiceQuotasError("NoSuchResourceException", "The request does not exist.")
        return {"RequestedQuota": found[0]}

    def _history(self, region: str, request: Document) -> Document:
        return {"RequestedQuotas": self._open(self._quota(request).code, region)}
