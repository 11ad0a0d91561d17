"""TPU slices: chips, cores, hosts and machine types of a name or topology. The number after a name counts TensorCores,
two to a chip, for v2, v3, v4 and v5p, and chips for v5litepod and v6e. Sizes are computed; tests compare them with
every slice of machines.csv."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations_with_replacement

from accel.catalog.machines import kinds
from accel.catalog.nearest import UnknownName
from accel.catalog.places import where
from accel.catalog.tables import rows
from accel.catalog.tpu_generations import GENERATIONS, Api, Generation, Host

_LONGEST_SIDE = 256  # no published shape has a longer one, so v5p-8576 (67 cubes of 4x4x4) does not exist
_SMALL_3D = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))


@dataclass(frozen=True, slots=True)
class Slice:
    """A TPU slice. `name` is the catalogue's, `written` the one requested, such as `v5e-4` for v5litepod-4; `api_type`
    is the Cloud TPU API's `accelerator_type`, None for a generation that it lacks. `host` is the kind of its hosts."""

    name: str
    written: str
    generation: Generation = field(repr=False)
    chips: int
    topology: str
    host: Host

    @property
    def api(self) -> Api:
        """`tpu`: the Cloud TPU API and GKE; `gke-only`: GKE."""
        return self.generation.api

    @property
    def api_type(self) -> str | None:
        return self.name if self.api == "tpu" else None

    @property
    def version(self) -> str:
        """The `type` of the API's AcceleratorConfig, such as V5LITE_POD; empty for a `gke-only` one."""
        return self.generation.version

    @property
    def cores(self) -> int:
        """TensorCores."""
        return self.chips * self.generation.cores_per_chip

    @property
    def hosts(self) -> int:
        return self.chips // self.host.chips

    @property
    def chips_per_host(self) -> int:
        return self.host.chips

    @property
    def multi_host(self) -> bool:
        return self.hosts > 1

    @property
    def machine_type(self) -> str | None:
        """Of a host on GCE and GKE; None for v2, which has none."""
        return self.host.machine_type

    @property
    def gke_label(self) -> str:
        """Value of the node label cloud.google.com/gke-tpu-accelerator; empty for v2."""
        return self.host.gke_label

    @property
    def runtime_versions(self) -> dict[str, tuple[str, ...]]:
        """Recommended versions, with their frameworks; empty for generations outside the Cloud TPU API."""
        runtime = self.generation.runtime
        return {runtime.name: runtime.frameworks} if runtime else {}

    @property
    def published(self) -> bool:
        """Whether Google's tables of sizes go up to this one."""
        return self.chips <= self.generation.published_chips

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """Zones by region, known or published by Google for its generation; empty for a size without a row."""
        if self.name not in kinds("gcp"):  # a look for similar names would cost a hundred times as much
            return {}
        return _with_published(self.generation.prefix, where("gcp", self.name))


class NoSuchSlice(LookupError):
    """A size or shape that the generation does not have. `choices` are the nearest names or shapes."""

    def __init__(self, what: str, why: str, choices: Iterable[str]) -> None:
        self.what = what
        self.why = why
        self.choices = tuple(choices)
        super().__init__(f"{what} {why}; nearest: {', '.join(self.choices)}")


def tpu(name: str, topology: str | None = None) -> Slice:
    """Return the slice of a name: `v5litepod-16`, `v4-8`, `tpu7x-2x2x1`, also `v5e-16`, SkyPilot's `tpu-v4-8`, or a
    generation (`v5p`) with a topology, in any case. Raise UnknownName for a generation that does not exist, NoSuchSlice
    for a size or shape that it does not have."""
    generation, size = _parsed(name)
    if "x" in size:
        if topology not in (None, size):
            raise NoSuchSlice(f"topology {topology}", f"is not that of {name}", [size])
        topology, size = size, ""
    if not size:
        if not topology:
            raise NoSuchSlice(name, "has no size", [_name(generation, chips) for chips in sizes(generation)[:3]])
        chips = chips_of(topology, generation)
    else:
        chips, rest = divmod(int(size), generation.per_chip)
        if rest or chips not in sizes(generation):
            choices = [_name(generation, each) for each in _around(sizes(generation), int(size) / generation.per_chip)]
            raise NoSuchSlice(name, f"is no size of {generation.product}", choices)
        shape = default_topology(generation, chips)
        if topology and chips_of(topology, generation) != chips:
            why = f"has {chips_of(topology, generation)} chips, {name} has {chips}"
            raise NoSuchSlice(topology, why, [shape])
        topology = topology or shape
    topology = "x".join(str(side) for side in _sides(topology))
    own = f"{generation.prefix}-{topology}" if generation.api == "gke-only" else _name(generation, chips)
    single = {host.chips: host for host in generation.single}
    return Slice(own, name, generation, chips, topology, single.get(chips, generation.several))


def forms(name: str) -> tuple[Slice, ...]:
    """Return the slice with each possible kind of host, that of tpu() first: 8 chips of v5e or v6e are one host, or two
    of 4 chips in a GKE node pool. Raise as tpu().
    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus"""
    whole = tpu(name)
    several = whole.generation.several
    others = [replace(whole, host=several)] if several.chips < whole.host.chips else []
    return whole, *others


def generation_of(name: str) -> Generation:
    """Raise UnknownName if it is of none."""
    return _parsed(name)[0]


def find_generation(name: str) -> Generation | None:
    found = _split(name)
    return found[0] if found else None


def tpu_pool(machine_type: str, topology: str) -> Slice:
    """Return the slice of a GKE node pool, unlike tpu() also 8 chips of v5e or v6e on two 4-chip hosts. Raise
    UnknownName for a machine type that is not a TPU host, NoSuchSlice if the topology does not match it."""
    known = {name: generation for generation in GENERATIONS for name in generation.machine_types}
    if machine_type not in known:
        raise UnknownName("TPU machine type", machine_type, known)
    whole = tpu(known[machine_type].prefix, topology)
    host = whole.generation.machine_types[machine_type]
    one_host = host.chips == whole.chips
    if not one_host and (host != whole.generation.several or whole.chips < host.chips):
        raise NoSuchSlice(topology, f"is not made of {machine_type}", [f"{whole.machine_type} for {topology}"])
    return replace(whole, host=host)


def chips_of(topology: str, generation: Generation) -> int:
    """Count the chips of `2x4` or `4x4x8`. Raise NoSuchSlice for a shape that is not offered."""
    sides = _sides(topology)
    if sides and _offered(sides, generation):
        return math.prod(sides)
    near = _around(sizes(generation), math.prod(sides) if sides else 1)
    shapes = [default_topology(generation, chips) for chips in near]
    raise NoSuchSlice(topology, f"is no topology of {generation.product}", shapes)


@cache
def sizes(generation: Generation) -> tuple[int, ...]:
    """Return the chips of every named slice, smallest first."""
    if generation.sizes_2d:
        return tuple(math.prod(shape) for shape in generation.sizes_2d)
    small = [host.chips for host in generation.single if host.chips < 4] + [math.prod(shape) for shape in _SMALL_3D]
    stepped = range(64, generation.stepped_chips + 1, 64)
    cubes = [chips for chips in stepped if _cubic(chips)[-1] <= _LONGEST_SIDE]
    return tuple(dict.fromkeys([*small, *cubes, *generation.larger_chips]))


def default_topology(generation: Generation, chips: int) -> str:
    """Return the default shape: in three dimensions the one nearest to a cube."""
    named = {math.prod(shape): shape for shape in generation.sizes_2d or ((1, 1, 1), *_SMALL_3D)}
    sides: tuple[int, ...] = named.get(chips) or _cubic(chips)
    return "x".join(str(side) for side in sides)


def slice_names(generation: Generation) -> tuple[str, ...]:
    """Return the smallest first."""
    return tuple(tpu(_name(generation, chips)).name for chips in sizes(generation))


@cache
def _published_zones() -> dict[str, tuple[str, ...]]:
    """Return zones by the prefix of slice names, whatever the size. Of Google's page only North America, and v6e in
    Europe, were read, and it omits single-tenant zones. This supplements the third party's table in regions.csv, and a
    zone in neither may still have the TPU."""
    found: dict[str, list[str]] = {}
    for row in rows("tpu_zones.csv"):
        found.setdefault(row["generation"], []).append(row["zone"])
    return {generation: tuple(zones) for generation, zones in found.items()}


def _with_published(generation: str, places: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    found = dict(places)
    for zone in _published_zones().get(generation, ()):
        region = zone.rpartition("-")[0]
        found[region] = tuple(sorted({*found.get(region, ()), zone}))
    return found


def _name(generation: Generation, chips: int) -> str:
    return f"{generation.prefix}-{chips * generation.per_chip}"


def _split(name: str) -> tuple[Generation, str] | None:
    prefix, dash, size = name.lower().removeprefix("tpu-").partition("-")
    if dash and not re.fullmatch(r"[0-9]{1,6}|[0-9]+(x[0-9]+){1,2}", size, re.ASCII):
        return None
    return (_prefixes()[prefix], size) if prefix in _prefixes() else None


@cache
def _prefixes() -> dict[str, Generation]:
    return {alias: each for each in GENERATIONS for alias in (each.prefix, *each.aliases)}


def _parsed(name: str) -> tuple[Generation, str]:
    if found := _split(name):
        return found
    known, prefix = _prefixes(), name.lower().removeprefix("tpu-").partition("-")[0]
    like = [each for each in known if prefix == each] or list(known)
    raise UnknownName("TPU type", name, [_name(known[each], chips) for each in like for chips in sizes(known[each])])


def _sides(topology: str) -> tuple[int, ...]:
    found = re.fullmatch(r"[0-9]{1,4}(x[0-9]{1,4}){1,2}", topology.lower(), re.ASCII)
    return tuple(int(side) for side in topology.lower().split("x")) if found else ()


def _offered(sides: tuple[int, ...], generation: Generation) -> bool:
    if generation.sizes_2d:
        return sides in generation.sizes_2d
    if len(sides) != 3 or math.prod(sides) > generation.pod_chips:
        return False
    one_chip = sides == (1, 1, 1) and any(host.chips == 1 for host in generation.single)
    cubes = all(side >= 4 and side % 4 == 0 for side in sides) and list(sides) == sorted(sides)
    return one_chip or sides in _SMALL_3D or cubes


@cache
def _cubic(chips: int) -> tuple[int, ...]:
    """Return the sides, multiples of four, of the most cubic shape of whole cubes."""
    cubes = chips // 64
    sides = [side for side in range(1, cubes + 1) if cubes % side == 0]
    shapes = [each for each in combinations_with_replacement(sides, 3) if math.prod(each) == cubes]
    return tuple(4 * side for side in min(shapes, key=sum))


def _around(known: tuple[int, ...], wanted: float) -> list[int]:
    return [*[each for each in known if each <= wanted][-1:], *[each for each in known if each > wanted][:1]]
