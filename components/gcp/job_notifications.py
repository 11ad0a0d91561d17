"""A topic to which Google Batch publishes jobs' changes of state."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pydantic import Field

from ..base import Component, Spec, once
from ..sdk import gcp
from .services import enable_services


class JobNotificationsSpec(Spec):
    """Retention of messages."""

    retention_s: int | None = Field(
        default=None,
        ge=600,
        le=31 * 24 * 3600,
        description="Retention of messages in seconds, for later subscriptions. Default: no retention",
    )


@dataclass(frozen=True, kw_only=True)
class JobNotificationsArgs:
    """The spec, the project, and the jobs' account, which is the one that publishes. Source:
    https://docs.cloud.google.com/batch/docs/enable-notifications#before-you-begin"""

    spec: JobNotificationsSpec
    project: str
    publisher: pulumi.Input[str]


class JobNotifications(Component):
    """A Pub/Sub topic. Messages published before the first subscription reach nobody."""

    TYPE = "accel:gcp:JobNotifications"

    topic: pulumi.Output[str]

    def __init__(self, name: str, args: JobNotificationsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        services = enable_services(self, name, args.project, ["pubsub"])
        kept = args.spec.retention_s
        topic = gcp.pubsub.Topic(
            name,
            project=args.project,
            message_retention_duration=f"{kept}s" if kept else None,
            opts=self.child(depends_on=services),
        )
        publishes = gcp.pubsub.TopicIAMMember(
            f"{name}-publisher",
            project=args.project,
            topic=topic.name,
            role="roles/pubsub.publisher",
            member=args.publisher,
            opts=self.child(),
        )
        # In the contract's notation: projects/<p>/topics/<t>. A job that may not publish still runs, but sends no
        # messages.
        self.topic = once(topic.id, publishes.id)
        self.finish()
