"""Cost of an environment, from its model alone: idle, expected, and worst case. It calls no cloud."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from accel import cost
from accel.catalog import Machine, UnknownName, expand
from accel.catalog.network_prices import GP3_IOPS, GP3_MIB_S, PartPrice, part_price
from accel.catalog.node_prices import find_price
from accel.catalog.prices import Price
from accel.cost import Amount, Envelope
from accel.rules.aws.environments import instances_within
from components.aws.compute_environment import OnDemandSpec, SpotSpec
from components.aws.network import AGENT_ENDPOINTS, JOB_ENDPOINTS

from ...environment.aws.config import Aws, CreatedNetwork
from ...environment.config import Environment
from ..stack_files import read_stacks
from . import google
from .lines import Line, unlisted_types

ComputeSpec = OnDemandSpec | SpotSpec

LARGEST = 2
"""Number of instance types in the description of max_vcpus."""

SCENARIOS = ("floor", "expected", "worst")

CENTS_BELOW = 10
"""USD, above which the one line of a summary omits the cents."""


@dataclass(frozen=True)
class Estimate:
    """All lines of one environment, and the costs that have none."""

    stack: str
    region: str
    utilisation: float
    lines: tuple[Line, ...]
    unknown: tuple[str, ...] = ()
    not_included: tuple[str, ...] = ()
    totals: dict[str, Amount] = field(default_factory=dict[str, Amount])
    """USD per hour, by scenario."""


def estimates(paths: list[Path], utilisation: float, strict: bool = False) -> list[Estimate]:
    """Raise BadInputs with every fault, as `stacks validate` does."""
    return [estimate(stack.name, stack.environment, utilisation) for stack in read_stacks(paths, strict)]


def estimate(stack: str, environment: Environment, utilisation: float, beside: Iterable[str] = ()) -> Estimate:
    """Name the types in `beside`, further ones of the stack, that have no price: they make the totals "at least"."""
    lines: list[Line] = []
    not_included: list[str] = []
    if section := environment.aws:
        lines += [*_pools(section, utilisation), *_network(section)]
        not_included += _not_included(section)
    if gcp := environment.gcp:
        lines += google.lines(gcp, utilisation)
        not_included += google.excluded_costs(gcp)
    strange = unlisted_types(beside)
    not_included += [f"{each}: it has no price here" for each in strange]
    return Estimate(
        stack,
        ", ".join(each.region for each in (section, gcp) if each),
        utilisation,
        tuple(lines),
        tuple(text for line in lines for text in line.unknown),
        tuple(not_included),
        {name: _total(lines, name, partly=bool(strange)) for name in SCENARIOS},
    )


def _total(lines: list[Line], scenario: str, *, partly: bool) -> Amount:
    found = cost.total(getattr(line.envelope, scenario) for line in lines)
    return Amount(found.usd, found.at_least or partly)


def _pools(section: Aws, utilisation: float) -> Iterator[Line]:
    for name, spec in section.environments.items():
        path = f"environments.{name}"
        machines, prices, unknown = _prices(section.region, spec, path)
        yield replace(_instances(path, spec, machines, prices, utilisation), unknown=unknown)
        yield _volumes(section.region, path, spec, machines, utilisation)


def _prices(region: str, spec: ComputeSpec, path: str) -> tuple[list[Machine], list[Price], tuple[str, ...]]:
    """Return the instance types of a compute environment, their prices, and a line for each that has none."""
    unknown: list[str] = []
    machines: dict[str, Machine] = {}
    for name in spec.instance_types:
        try:
            machines.update((machine.name, machine) for machine in expand([name]))
        except UnknownName as error:
            unknown.append(f"{path}: {error}")
    prices: list[Price] = []
    for name in list(machines):
        prices.append(find_price("aws", region, name))
        if prices[-1].on_demand is None:
            unknown.append(f"{path}: {prices[-1].why_unknown or f'no on-demand price of {name}'}")
    return list(machines.values()), prices, tuple(unknown)


def _option(machine: Machine, each: Price) -> cost.Option:
    return cost.Option(machine.name, machine.vcpus, each.on_demand, each.spot, each.spot_low)


def _instances(path: str, spec: ComputeSpec, machines: list[Machine], prices: list[Price], utilisation: float) -> Line:
    on_spot = spec.capacity == "spot"
    options = [_option(machine, each) for machine, each in zip(machines, prices, strict=True)]
    envelope = cost.pool(options, utilisation=utilisation, on_spot=on_spot, **_scale(spec))
    with_spot = [option.name for option in options if option.spot is not None]
    notes: list[str] = []
    if on_spot and len(with_spot) < len(options):
        seen = f"of {len(with_spot)} of {len(options)} types" if with_spot else "of no type: on demand is counted"
        notes.append(f"a Spot price is known {seen}")
    if spec.state == "ENABLED":
        notes += _room(spec)
    if envelope.overshoot and spec.state == "ENABLED":
        notes.append(f"Batch may exceed max_vcpus by one instance, at most {envelope.overshoot:.2f} USD an hour more")
    if spec.state != "ENABLED":
        notes.append("disabled: it keeps min_vcpus and starts nothing")
    dates = {each.on_demand_date: None for each in prices if each.on_demand is not None}
    dates |= {each.spot_date: None for each in prices if on_spot and each.spot is not None}
    known = [each.confidence for each in prices if each.on_demand is not None or each.spot is not None]
    what = f"{spec.capacity} {','.join(spec.instance_types)}, {spec.min_vcpus} to {spec.max_vcpus} vCPUs"
    confidence = cost.least_sure(known)
    return Line(path, what, envelope, tuple(date for date in dates if date), confidence, tuple(notes))


def _room(spec: ComputeSpec) -> list[str]:
    room = sorted(instances_within(spec.max_vcpus, spec.instance_types).items(), key=lambda each: each[1])
    shown = " or ".join(f"{count} {name}" for name, count in room[:LARGEST])
    return [f"max_vcpus has room for {shown}"] if shown else []


def _scale(spec: ComputeSpec) -> dict[str, int]:
    return {"min_vcpus": spec.min_vcpus, "max_vcpus": spec.max_vcpus if spec.state == "ENABLED" else spec.min_vcpus}


def _volumes(region: str, path: str, spec: ComputeSpec, machines: list[Machine], utilisation: float) -> Line:
    disk = spec.instance
    amounts = {
        "gp3-gib": disk.disk_gib,
        "gp3-iops": disk.disk_iops - GP3_IOPS,
        "gp3-mib-s": disk.disk_mib_s - GP3_MIB_S,
    }
    found, unknown = _parts(region, [item for item, amount in amounts.items() if amount], path)
    what = f"root volumes, gp3 {disk.disk_gib} GiB an instance"
    if unknown:
        return Line(path, what, Envelope(cost.UNKNOWN, cost.UNKNOWN, cost.UNKNOWN), unknown=unknown)
    each = sum(amounts[item] * part.usd for item, part in found.items()) / cost.HOURS_A_MONTH
    options = [cost.Option(machine.name, machine.vcpus, None) for machine in machines]
    envelope = cost.cost_per_instance(options, utilisation=utilisation, each=each, **_scale(spec))
    return _sourced(path, what, envelope, found)


def _parts(region: str, items: list[str], path: str) -> tuple[dict[str, PartPrice], tuple[str, ...]]:
    """Return the prices of all items; if one has none, return no prices and a line about it."""
    found = {item: part_price(region, item) for item in items}
    lacking = [item for item, part in found.items() if part is None]
    if lacking:
        return {}, (f"{path}: {', '.join(lacking)} in {region}: no price was seen for this region",)
    return {item: part for item, part in found.items() if part is not None}, ()


def _sourced(path: str, what: str, envelope: Envelope, found: dict[str, PartPrice]) -> Line:
    dates = tuple(dict.fromkeys(part.date for part in found.values()))
    return Line(path, what, envelope, dates, cost.least_sure(part.confidence for part in found.values()))


def _network(section: Aws) -> Iterator[Line]:
    spec = section.network
    if not isinstance(spec, CreatedNetwork):
        return
    zones = len(spec.zones)
    gateways = {"nat": 1, "nat-per-zone": zones, "endpoints": 0}[spec.egress]
    services = set(spec.interface_endpoints)
    if spec.egress == "endpoints":
        services |= {*JOB_ENDPOINTS, *AGENT_ENDPOINTS}
    counts = {
        "nat-gateway": (gateways, f"NAT gateways: {gateways}"),
        "public-ipv4": (gateways, f"public IPv4 addresses: {gateways}"),
        "interface-endpoint": (zones * len(services), f"interface endpoints: {len(services)} in {zones} zones"),
    }
    for item, (count, what) in counts.items():
        if not count:
            continue
        found, unknown = _parts(section.region, [item], "network")
        none = Envelope(cost.UNKNOWN, cost.UNKNOWN, cost.UNKNOWN)
        line = _sourced("network", what, cost.fixed_cost(count * found[item].usd) if found else none, found)
        yield replace(line, unknown=unknown)


def _not_included(section: Aws) -> Iterator[str]:
    if not isinstance(section.network, CreatedNetwork):
        yield "network: it belongs to someone else"
    else:
        yield "network: data through gateways and endpoints, and between zones (by the GB)"
        if section.network.flow_logs_days is not None:
            yield "network: flow logs (by the GB)"
    yield "logs: what jobs print (by the GB, and kept by the GB-month)"
    if section.monitoring:
        yield "monitoring: the log of events (by the GB), alarms, custom metrics and the dashboard (each by the month)"
        if section.monitoring.gpu_metrics:
            yield "monitoring: metrics of GPUs (each one of an instance that runs, by the month)"
    if section.repositories:
        yield "repositories: images (by the GB-month)"
    if section.claims:
        yield "claims: requests of submit (by the million)"
    yield "jobs: buckets, file systems and other services that they use"


def document(found: Estimate) -> dict[str, Any]:
    lines = [
        {
            "component": line.component,
            "what": line.what,
            **{name: usd(getattr(line.envelope, name)) for name in SCENARIOS},
            "spot_range_usd_hour": [round(usd, 4) for usd in line.envelope.spot] if line.envelope.spot else None,
            "price_dates": list(line.dates),
            "confidence": line.confidence,
            "notes": list(line.notes),
        }
        for line in found.lines
    ]
    rest = asdict(found)
    return {
        **{key: rest[key] for key in ("stack", "region", "utilisation")},
        "lines": lines,
        "totals": {name: usd(amount) for name, amount in found.totals.items()},
        "unknown": list(found.unknown),
        "not_included": list(found.not_included),
    }


def usd(amount: Amount) -> dict[str, Any]:
    """Return USD per hour and per month of 730 hours."""
    month = amount.times(cost.HOURS_A_MONTH).usd
    return {
        "usd_hour": None if amount.usd is None else round(amount.usd, 4),
        "usd_month": None if month is None else round(month, 2),
        "at_least": amount.at_least,
    }


def amount_text(amount: Amount, decimals: int = 2) -> str:
    """Return an amount for people: `1,234.50`, `at least 1.00`, `unknown`."""
    if amount.usd is None:
        return "unknown"
    return f"{'at least ' if amount.at_least else ''}{amount.usd:,.{decimals}f}"


def summary(found: Estimate) -> str:
    """Return the monthly totals in one line: `dev: idle $80 a month, expected $7,302, at most $36,239`."""
    floor, expected, worst = (_dollars(found.totals[name].times(cost.HOURS_A_MONTH)) for name in SCENARIOS)
    partly = found.totals["worst"].at_least
    largest = f"{worst} at its largest" if partly else f"at most {worst}"
    return f"{found.stack}: idle {floor} a month, expected {expected}, {largest}"


def _dollars(amount: Amount) -> str:
    if amount.usd is None:
        return "unknown"
    return f"{'at least ' * amount.at_least}${amount.usd:,.{0 if amount.usd >= CENTS_BELOW else 2}f}"


def rows(found: Estimate) -> list[dict[str, str]]:
    made = [
        {
            "component": line.component,
            "what": line.what,
            **{name: amount_text(getattr(line.envelope, name), 3) for name in SCENARIOS},
            "spot": "..".join(f"{usd:,.2f}" for usd in line.envelope.spot) if line.envelope.spot else "",
            "prices_of": ", ".join(line.dates),
            "confidence": line.confidence,
        }
        for line in found.lines
    ]
    for what, hours in (("an hour", 1), ("a month of 730 hours", cost.HOURS_A_MONTH)):
        sums = {name: amount_text(amount.times(hours), 2) for name, amount in found.totals.items()}
        made.append({"component": "total", "what": what, **sums, "spot": "", "prices_of": "", "confidence": ""})
    return made
