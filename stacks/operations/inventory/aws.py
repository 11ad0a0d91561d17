"""Existing resources in a region of AWS."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.clouds.aws.responses import structures

AT_ONCE = 100
"""Maximum number of names in a Describe call of Batch. Source:
https://docs.aws.amazon.com/batch/latest/APIReference/API_DescribeComputeEnvironments.html"""
_DESCRIBE = {"computeEnvironments": "describe_compute_environments", "jobQueues": "describe_job_queues"}


@dataclass(frozen=True)
class Region:
    """A region: its APIs, and their lists. A list is requested without filter if a single deleted name would make AWS
    refuse the call. Raises as accel.clouds.aws.errors.asking does."""

    name: str

    @cached_property
    def batch(self) -> Any:
        return self._client("batch")

    @cached_property
    def ec2(self) -> Any:
        return self._client("ec2")

    @cached_property
    def iam(self) -> Any:
        return self._client("iam")

    def environments(self) -> list[dict[str, Any]]:
        return self.pages(self.batch, "describe_compute_environments", "computeEnvironments")

    def environment(self, name: str) -> dict[str, Any] | None:
        """Return None once the environment is gone."""
        found = next(iter(self.described("computeEnvironments", [name])), None)
        return None if found is None or found["status"] == "DELETED" else found

    def queues(self) -> list[dict[str, Any]]:
        return self.pages(self.batch, "describe_job_queues", "jobQueues")

    def described(self, what: str, wanted: Sequence[str]) -> list[dict[str, Any]]:
        """Describe existing `computeEnvironments` or `jobQueues` by name or ARN."""
        found: list[dict[str, Any]] = []
        for start in range(0, len(wanted), AT_ONCE):
            some = list(wanted[start : start + AT_ONCE])
            with asking(f"{_DESCRIBE[what]} {', '.join(some[:3])} in {self.name}"):
                found += getattr(self.batch, _DESCRIBE[what])(**{what: some})[what]
        return found

    def instances(self, states: Iterable[str], tags: Mapping[str, Iterable[str]] | None = None) -> list[dict[str, Any]]:
        wanted = [{"Name": "instance-state-name", "Values": list(states)}]
        found = self.tagged("describe_instances", "Reservations", tags or {}, wanted)
        return [each for reservation in found for each in reservation["Instances"]]

    def tagged(
        self,
        operation: str,
        key: str,
        tags: Mapping[str, Iterable[str]],
        filters: Iterable[Mapping[str, Any]] = (),
    ) -> list[dict[str, Any]]:
        named = [{"Name": f"tag:{name}", "Values": list(values)} for name, values in tags.items()]
        return self.pages(self.ec2, operation, key, Filters=[*named, *filters])

    def templates(self) -> dict[str, dict[str, Any]]:
        found = self.pages(self.ec2, "describe_launch_templates", "LaunchTemplates")
        return {each[key]: each for each in found for key in ("LaunchTemplateId", "LaunchTemplateName")}

    def images(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the existing ones of these images, deprecated ones too. A filter omits deleted ones."""
        named = [{"Name": "image-id", "Values": sorted(set(ids))}]
        found = self.pages(self.ec2, "describe_images", "Images", Filters=named, IncludeDeprecated=True)
        return {each["ImageId"]: each for each in found}

    def reservations(self) -> dict[str, dict[str, Any]]:
        found = self.pages(self.ec2, "describe_capacity_reservations", "CapacityReservations")
        return {each["CapacityReservationId"]: each for each in found}

    def pages(self, api: Any, operation: str, key: str, **given: Any) -> list[dict[str, Any]]:
        with asking(f"{operation} in {self.name}"):
            if not api.can_paginate(operation):
                return getattr(api, operation)(**given)[key]
            return [each for page in api.get_paginator(operation).paginate(**given) for each in page[key]]

    def _client(self, service: str) -> Any:
        with asking(f"{service} in {self.name}"):
            return client(service, self.name, connect_s=5, read_s=20, attempts=6)


def tags_of(resource: Mapping[str, Any], key: str = "Tags") -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in structures(resource, key)}
