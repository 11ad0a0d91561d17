"""Every cloud that a state speaks of."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from .lookup import Candidate, NotSought
from .pending import Json, Pending, provider_inputs


class Clouds:
    """Those of one state; each is reached when something of it is first looked for."""

    def __init__(self, deployment: Json) -> None:
        self._deployment = deployment

    def find(self, operation: Pending) -> Sequence[Candidate]:
        cloud = operation.type.partition(":")[0]
        match cloud:
            case "aws":
                return self._aws.find(operation)
            case "gcp":
                return self._google.find(operation)
            case "kubernetes":
                return self._kubernetes.find(operation)
            case _:
                raise NotSought(f"there is no way here to look for {operation.type}")

    def names(self, operation: Pending) -> Sequence[str]:
        match operation.type.partition(":")[0]:
            case "aws":
                return self._aws.names(operation)
            case "gcp":
                return self._google.names(operation)
            case _:
                raise NotSought(f"there is no way here to list {operation.type}")

    def finish(self, operation: Pending, id: str) -> None:
        """Makes the calls that the creation of what was found had still to make. Only on AWS are there any."""
        self._aws.finish(operation, id)

    @cached_property
    def _aws(self) -> Any:
        from .aws import Aws, accounts

        return Aws(accounts(self._deployment), self._provider)

    @cached_property
    def _google(self) -> Any:
        from .google import GoogleCloud

        return GoogleCloud(self._provider)

    @cached_property
    def _kubernetes(self) -> Any:
        from .kubernetes import Kubernetes

        return Kubernetes(self._provider)

    def _provider(self, operation: Pending) -> Json:
        return provider_inputs(self._deployment, operation.resource)
