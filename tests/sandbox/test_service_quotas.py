"""The EC2 part of Service Quotas, through plain boto3."""

from collections.abc import Iterator
from typing import Any

import pytest

from accel.catalog.quotas import quotas

from .conftest import Aws

G_SPOT, P = "L-3819A6DF", "L-417A185B"
EC2 = {"ServiceCode": "ec2"}


@pytest.fixture
def service(aws: Aws) -> Iterator[Any]:
    """The client; grants are as before afterwards."""
    yield aws.client("service-quotas", retries={"total_max_attempts": 1})
    aws.control("quotas", **dict.fromkeys([G_SPOT, P], 1024))


def test_what_is_granted(service: Any, aws: Aws) -> None:
    quota = service.get_service_quota(**EC2, QuotaCode=G_SPOT)["Quota"]
    assert (quota["QuotaName"], quota["Value"]) == ("All G and VT Spot Instance Requests", 1024)
    assert quota["QuotaArn"] == f"arn:aws:servicequotas:us-east-1:{aws.told['account_id']}:ec2/{G_SPOT}"
    aws.control("quotas", **{G_SPOT: 0})
    assert service.get_service_quota(**EC2, QuotaCode=G_SPOT)["Quota"]["Value"] == 0


def test_lists(service: Any, aws: Aws) -> None:
    codes = {quota.code for quota in quotas() if quota.service == "ec2"}
    addresses = "L-0263D0A3"
    granted = {row["QuotaCode"]: row["Value"] for row in service.list_service_quotas(**EC2)["Quotas"]}
    default = {row["QuotaCode"]: row["Value"] for row in service.list_aws_default_service_quotas(**EC2)["Quotas"]}
    assert granted.keys() == codes and default.keys() == codes | {addresses}
    assert (granted[P], default[P]) == (1024, 0)


def test_without_a_grant_there_is_the_default(service: Any, aws: Aws) -> None:
    aws.control("quotas", **{P: None})
    with pytest.raises(service.exceptions.NoSuchResourceException):
        service.get_service_quota(**EC2, QuotaCode=P)
    assert service.get_aws_default_service_quota(**EC2, QuotaCode=P)["Quota"]["Value"] == 0
    assert P not in {row["QuotaCode"] for row in service.list_service_quotas(**EC2)["Quotas"]}


def test_a_request_stays_open(service: Any) -> None:
    asked = service.request_service_quota_increase(**EC2, QuotaCode=P, DesiredValue=2000)["RequestedQuota"]
    assert (asked["Status"], asked["DesiredValue"]) == ("PENDING", 2000)
    assert service.get_requested_service_quota_change(RequestId=asked["Id"])["RequestedQuota"]["QuotaCode"] == P
    history = service.list_requested_service_quota_change_history_by_quota(**EC2, QuotaCode=P)["RequestedQuotas"]
    assert [row["Id"] for row in history] == [asked["Id"]]
    assert service.get_service_quota(**EC2, QuotaCode=P)["Quota"]["Value"] == 1024
    with pytest.raises(service.exceptions.ResourceAlreadyExistsException):
        service.request_service_quota_increase(**EC2, QuotaCode=P, DesiredValue=3000)
    with pytest.raises(service.exceptions.IllegalArgumentException):
        service.request_service_quota_increase(**EC2, QuotaCode=G_SPOT, DesiredValue=1)


def test_what_is_not_there(service: Any) -> None:
    with pytest.raises(service.exceptions.NoSuchResourceException):
        service.get_service_quota(**EC2, QuotaCode="L-00000000")
    with pytest.raises(service.exceptions.NoSuchResourceException):
        service.get_requested_service_quota_change(RequestId="none")


def test_other_services_are_motos(service: Any) -> None:
    assert service.get_service_quota(ServiceCode="vpc", QuotaCode="L-F678F1CE")["Quota"]["Value"] == 5


def test_a_wrong_grant_is_refused(aws: Aws) -> None:
    with pytest.raises(AssertionError, match="is no quota that the sandbox knows"):
        aws.control("quotas", **{"L-00000000": 1})


def test_faults_reach_it(service: Any, aws: Aws) -> None:
    aws.control("faults", operation="GetServiceQuota", kind="throttle-400")
    with pytest.raises(service.exceptions.ClientError, match="Throttling"):
        service.get_service_quota(**EC2, QuotaCode=P)
