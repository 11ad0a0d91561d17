"""The pack as the engine calls it: Pulumi's analyzer service, without an intermediate package for policies. Each
resource is read once for all policies. Source:
https://github.com/pulumi/pulumi/blob/v3.250.0/proto/pulumi/analyzer.proto"""

import sys
from collections.abc import Iterable
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime import proto
from pulumi.runtime.proto import analyzer_pb2_grpc

from .capacity import MAKERS
from .guard import Level, Policy, ResourcePolicy, Weight
from .judge import Config, Finding, resource_findings, stack_findings
from .resource import Resource, plain
from .table import POLICIES

PACK = "accel"
VERSION = "0.1.0"
MOST_BYTES = 400 * 1024 * 1024
"""Maximum size of one message, the engine's own: a whole stack is one message."""

_LEVELS: dict[Level, Any] = {"advisory": proto.ADVISORY, "mandatory": proto.MANDATORY, "disabled": proto.DISABLED}
_BY_NUMBER: dict[int, Level] = {
    proto.ADVISORY: "advisory",
    proto.MANDATORY: "mandatory",
    proto.DISABLED: "disabled",
    # No policy here changes a resource, so REMEDIATE counts as mandatory.
    proto.REMEDIATE: "mandatory",
}
_SEVERITIES: dict[Weight, Any] = {
    "low": proto.POLICY_SEVERITY_LOW,
    "medium": proto.POLICY_SEVERITY_MEDIUM,
    "high": proto.POLICY_SEVERITY_HIGH,
    "critical": proto.POLICY_SEVERITY_CRITICAL,
}


class Analyzer(proto.AnalyzerServicer):
    """A service that evaluates every policy at once. An unknown value makes a policy not applicable, with the path."""

    def __init__(self) -> None:
        self.config = Config()
        # For the whole stack the engine sends outputs, and a component's outputs lack what it was created from.
        self.asked: dict[str, Resource] = {}

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802 - the engine's name
        said = dict(request.policyConfig)
        self.config = Config(
            {name: _BY_NUMBER[each.enforcementLevel] for name, each in said.items()},
            {name: json_format.MessageToDict(each.properties) for name, each in said.items()},
        )
        return empty_pb2.Empty()

    def Analyze(self, request: Any, context: Any) -> Any:  # noqa: N802 - the engine's name
        if request.type not in self.config.by_type and request.type not in MAKERS:
            return proto.AnalyzeResponse()
        resource = _resource(request)
        if resource.type in MAKERS:
            self.asked[resource.urn] = resource
        return _response(resource_findings(resource, self.config))

    def AnalyzeStack(self, request: Any, context: Any) -> Any:  # noqa: N802 - the engine's name
        resources = [self.asked.get(each.urn) or _resource(each) for each in request.resources]
        return _response(stack_findings(resources, self.config))

    def Remediate(self, request: Any, context: Any) -> Any:  # noqa: N802 - the engine's name
        return proto.RemediateResponse()

    def GetAnalyzerInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the engine's name
        return proto.AnalyzerInfo(
            name=PACK, displayName="accel", version=VERSION, supportsConfig=True, policies=map(_info, POLICIES.values())
        )

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the engine's name
        return proto.PluginInfo(version=VERSION)


def _info(policy: Policy) -> Any:
    info = proto.PolicyInfo(
        name=policy.id,
        description=policy.summary,
        enforcementLevel=proto.ADVISORY,
        severity=_SEVERITIES[policy.severity],
        remediation_steps=policy.fix,
        url=policy.source,
        tags=policy.also,
        policy_type=proto.POLICY_TYPE_RESOURCE if isinstance(policy, ResourcePolicy) else proto.POLICY_TYPE_STACK,
    )
    for key, schema in policy.settings.items():
        info.configSchema.properties.update({key: dict(schema)})
    return info


def _response(findings: Iterable[Finding]) -> Any:
    response = proto.AnalyzeResponse()
    for finding in findings:
        if finding.unknown:
            response.not_applicable.add(policy_name=finding.policy.id, reason=f"{finding.message} is not known yet")
        else:
            response.diagnostics.add(
                policyName=finding.policy.id,
                policyPackName=PACK,
                policyPackVersion=VERSION,
                description=finding.policy.summary,
                message=f"{finding.message}; {finding.policy.fix}",
                urn=finding.urn,
                enforcementLevel=_LEVELS[finding.level],
                severity=_SEVERITIES[finding.policy.severity],
            )
    return response


def _resource(request: Any) -> Resource:
    return Resource(
        type=request.type,
        name=request.name,
        urn=request.urn,
        properties=_plain(request.properties),
        protect=request.options.protect,
        provider=_plain(request.provider.properties) if request.HasField("provider") else None,
    )


def _plain(struct: Any) -> dict[str, Any]:
    return plain({key: _value(value) for key, value in struct.fields.items()})


def _value(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            return {key: _value(each) for key, each in value.struct_value.fields.items()}
        case "list_value":
            return [_value(each) for each in value.list_value.values]
        case "null_value" | None:
            return None
        case str(kind):
            return getattr(value, kind)


def serve() -> None:
    """Answer the engine until it disconnects. The port is the only line on stdout, which the engine waits for."""
    options = [("grpc.max_receive_message_length", MOST_BYTES)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), options=options)
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Analyzer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()
