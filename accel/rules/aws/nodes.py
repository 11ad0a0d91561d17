"""A multi-node job, each node a container on its own instance, against the environments of a queue."""

from collections.abc import Iterable
from dataclasses import dataclass

from accel.diagnostics.findings import Finding
from accel.rules.aws import definitions
from accel.rules.table import rule

TOO_MANY = rule("aws.nodes.too-many")
APART = rule("aws.nodes.apart")
FIRST_ONLY = rule("aws.nodes.first-environment")


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """An environment of a queue. `least_vcpus` are those of its smallest instance that holds a node, or None if
    unknown. `close`: its instances are one cluster."""

    name: str
    kind: str
    max_vcpus: int
    least_vcpus: int | None
    close: bool


def job(nodes: int, environments: Iterable[NodeEnvironment]) -> list[Finding]:
    if nodes < 2:
        return []
    places = list(environments)
    found = definitions.multi_node(nodes, [place.kind for place in places])
    if found:
        return found
    need = {place.name: nodes * place.least_vcpus for place in places if place.least_vcpus}
    room = [place for place in places if place.name not in need or need[place.name] <= place.max_vcpus]
    if not room:
        shown = ", ".join(f"{place.name} has {place.max_vcpus} of {need[place.name]}" for place in places)
        message = f"is {nodes}, an instance each, and no environment has the vCPUs for all at once: {shown}"
        return [TOO_MANY.finding("nodes", message, "ask for fewer, or raise max_vcpus of an environment")]
    apart = [place.name for place in room if not place.close]
    if apart:
        message = f"is {nodes}, and {', '.join(apart)} places instances anywhere in its zones"
        found.append(APART.finding("nodes", message, "give the environment placement: cluster"))
    if len(places) > 1:
        message = f"is {nodes}, and {places[0].name} is the only environment that is tried when it lacks capacity"
        found.append(FIRST_ONLY.finding("nodes", message, "use a queue of one environment"))
    return found
