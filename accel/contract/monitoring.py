"""The `monitoring` output of a stack."""

from pydantic import Field

from .model import SCHEMA, Contract


class AwsMonitoring(Contract):
    """Monitoring of a stack's jobs: others subscribe to the topic and read the log and the metrics."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    topic_arn: str
    event_log: str
    """CloudWatch log group of every job event, as JSON."""
    namespace: str
    """CloudWatch namespace of the metrics counted from the events."""
    dashboard: str
