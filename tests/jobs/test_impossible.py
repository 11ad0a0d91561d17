"""What no cloud has, asked for through the commands: one line with place, value and what there is instead; exit 2."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from accel.catalog import tables
from stacks.cli.main import stacks
from tests.jobs.test_offers import LARGE, SPOT, queue
from tests.jobs.test_offers import environment as types
from tests.support.catalog import Damage, line_of, replaced

ROOT = Path(__file__).parents[2]
JOB = "name: a\ncommand: ['true']\ntimeout_s: 1h\n"
T4 = queue(types("on-demand", "g4dn.12xlarge"))


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    documents = {
        name: target.model_dump(mode="json", by_alias=True)
        for name, target in (("a10g", SPOT), ("a100", LARGE), ("t4", T4))
    }
    (home / "targets.json").write_text(json.dumps(documents))
    monkeypatch.setenv("ACCEL_TARGETS", "targets.json")
    (home / "Pulumi.dev.yaml").write_text((ROOT / "Pulumi.dev.yaml").read_text())
    return home


def one_error(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    errors = [line for line in result.stderr.splitlines() if not line.startswith("hint: ")]
    assert len(errors) == 1 and errors[0].startswith("error: "), errors
    return errors[0].removeprefix("error: ")


L4 = "nvidia-l4 (24 GB), nvidia-rtx-pro-6000 (96 GB)"


@pytest.mark.parametrize(
    "gpu, line",
    [
        ("a100-80gb:16", "nvidia-a100-80gb: 16 is not a count that any machine has; 1, 2, 4, 8"),
        ("h100-mega:2", "nvidia-h100-mega-80gb: 2 is not a count that any machine has; 8"),
        ("h100-mega:4", "nvidia-h100-mega-80gb: 4 is not a count that any machine has; 8"),
        ("rtx-4090", f'accelerator "rtx-4090" is not offered on AWS or Google Cloud; nearest: {L4}'),
        ("NVIDIA_RTX_4090:2", f'accelerator "NVIDIA_RTX_4090" is not offered on AWS or Google Cloud; nearest: {L4}'),
        ("k80", 'accelerator "k80" has reached its end of support (https://'),
        ("NVIDIA_TESLA_K80:4", 'accelerator "NVIDIA_TESLA_K80" has reached its end of support (https://'),
        ("h1000:8", 'unknown accelerator "h1000"; nearest: h100'),
        ("zzz", 'unknown accelerator "zzz"; known: p4, p100, v100, '),
    ],
)
def test_gpus_that_nobody_sells(gpu: str, line: str, invoke: Callable[..., Result], here: Path) -> None:
    assert one_error(invoke("offers", "--gpu", gpu)).startswith(f"--gpu: {line}")


@pytest.mark.parametrize("to", [(), ("--to", "a10g")])
@pytest.mark.parametrize(
    "image, why",
    [
        ("ghcr.io/Acme/train:1", "the repository is not in lower case"),
        ("https://ghcr.io/acme/train:1", "it is a URL"),
        ("ghcr.io/acme/train@sha256:12", "the digest is not sha256: and 64 digits"),
    ],
)
def test_an_image_that_nothing_can_pull(
    image: str, why: str, to: tuple[str, ...], invoke: Callable[..., Result], here: Path
) -> None:
    (here / "j.yaml").write_text(f"{JOB}image: {image}\ncpus: 1\nmemory_mib: 1000\naccelerator: {{type: a10g}}\n")
    assert one_error(invoke("validate", "j.yaml", *to)).startswith(
        f'j.yaml:4: image: is "{image}", which is no image name: {why}; write registry/repository:tag'
    )


def test_eight_t4_are_sold_by_aws_alone(invoke: Callable[..., Result], here: Path) -> None:
    said = one_error(invoke("offers", "--gpu", "t4:8", "--cloud", "gcp"))
    assert said == "--gpu: nvidia-tesla-t4: 8 is not a count that any machine of Google Cloud has; 1, 2, 4"
    assert invoke("offers", "--gpu", "t4:8", "--cloud", "aws", "-o", "id").stdout.startswith("g4dn.metal")


@pytest.mark.parametrize("zone, region", [("us-east-1a", "us-east-1"), ("use1-az1", "us-east-1")])
def test_a_zone_where_a_region_belongs(zone: str, region: str, invoke: Callable[..., Result], here: Path) -> None:
    said = one_error(invoke("offers", "--gpu", "a10g", "--region", zone))
    assert said == f"--region: {zone} is a zone; the region is {region}"
    config = (here / "Pulumi.dev.yaml").read_text().replace("region: us-east-1", f"region: {zone}")
    (here / "Pulumi.dev.yaml").write_text(config)
    for verb in ("validate", "cost", "quota"):
        line = config.splitlines().index(f"      region: {zone}") + 1
        assert one_error(CliRunner().invoke(stacks, [verb, "dev"])) == (
            f'Pulumi.dev.yaml:{line}: environment.aws.region: is "{zone}", which is a zone; use {region}'
        )


@pytest.mark.parametrize(
    "accelerator, said",
    [
        ("{type: a100-80gb, count: 16}", "accelerator.count: is 16, and no machine has that many nvidia-a100-80gb; "
         "machines have 1, 2, 4 or 8"),
        ("{type: h100-mega, count: 2}", "accelerator.count: is 2, and no machine has that many nvidia-h100-mega-80gb; "
         "machines have 8"),
        ("{type: t4, count: 16}", "accelerator.count: is 16, and no machine has that many nvidia-tesla-t4; "
         "machines have 1, 2, 4 or 8"),
        ("{type: rtx-4090}", 'accelerator.type: is "rtx-4090", which is not offered on AWS or Google Cloud; '
         "use nvidia-l4 or nvidia-rtx-pro-6000"),
        ("{type: k80}", 'accelerator.type: is "k80", which is no longer offered; use nvidia-tesla-t4 or nvidia-l4'),
        ("{type: h1000}", 'accelerator.type: is "h1000", which is no known accelerator; use h100 or '),
        ("{type: zzz}", 'accelerator.type: is "zzz", which is no known accelerator; use one of p4, '),
    ],
)  # fmt: skip
def test_a_job_file_with_gpus_that_nobody_sells(
    accelerator: str, said: str, invoke: Callable[..., Result], here: Path
) -> None:
    (here / "j.yaml").write_text(f"{JOB}accelerator: {accelerator}\n")
    assert one_error(invoke("validate", "j.yaml")).startswith(f"j.yaml:4: {said}")
    for target in ("a10g", "a100", "t4"):
        refused = invoke("submit", "j.yaml", "--dry-run", "--to", target)
        assert refused.exit_code == 2 and refused.stdout == ""
        for line in refused.stderr.splitlines():
            assert re.match(r"error: j\.yaml:4: accelerator\.(type|count): ", line)
    assert invoke("validate", "j.yaml", "--to", "local").exit_code == 0, "this machine may have what no cloud has"


def test_eight_t4_on_a_queue_of_four(invoke: Callable[..., Result], here: Path) -> None:
    (here / "j.yaml").write_text(f"{JOB}accelerator: {{type: t4, count: 8}}\n")
    said = one_error(invoke("submit", "j.yaml", "--dry-run", "--to", "t4"))
    assert said.startswith("j.yaml:4: accelerator.count: is 8, and no allowed instance type has more than 4; ")


@pytest.mark.parametrize("verb", [["validate"], ["submit", "--dry-run"], ["cost"]])
def test_memory_above_the_machines(verb: list[str], invoke: Callable[..., Result], here: Path) -> None:
    (here / "j.yaml").write_text(f"{JOB}accelerator: {{count: 1}}\nmemory_mib: 900000\n")
    said = one_error(invoke(*verb, "j.yaml", "--to", "a10g"))
    assert "memory_mib: " in said and "g5.8xlarge has 131072 MiB of the 900000 asked for" in said
    assert "such as " in said
    if verb != ["cost"]:
        assert said.startswith("j.yaml:5: memory_mib: ")


def test_memory_set_over_the_file_is_said_at_the_option(invoke: Callable[..., Result], here: Path) -> None:
    (here / "j.yaml").write_text(JOB)
    said = one_error(invoke("submit", "j.yaml", "--dry-run", "--to", "a10g", "--set", "memory_mib=900000"))
    assert said.startswith("--set memory_mib=900000: memory_mib: ")


STACK = [
    ("instance_types: [g5, g6]", "instance_types: [p5.48xlarge]", "us-east-1", "eu-central-1",
     'environments.spot.instance_types[0]: is "p5.48xlarge", which is not offered in eu-central-1; use another type'),
    ("memory_mib: 14000", "memory_mib: 9000000", "", "",
     "definitions.training.memory_mib: 4 vCPUs, 9000000 MiB and 1 GPUs fit no allowed instance type"),
    ("gpus: 1", "gpus: 16", "", "", "definitions.training.gpus: is 16, and no allowed instance type has more than 8"),
    ("instance_types: [g5, g6]", "instance_types: [g6f.xlarge]", "", "",
     'environments.spot.instance_types[0]: is "g6f.xlarge", whose sizes have 0.125 of a GPU'),
    ("instance_types: [g5, g6]", "instance_types: [a2-highgpu-1g]", "", "",
     'environments.spot.instance_types[0]: is "a2-highgpu-1g", which is no GPU type of the catalogue'),
]  # fmt: skip


@pytest.mark.parametrize("old, new, region, other, said", STACK, ids=[new for _, new, *_ in STACK])
@pytest.mark.parametrize("verb", ["validate", "cost", "quota"])
def test_an_environment_that_cannot_be(
    verb: str, old: str, new: str, region: str, other: str, said: str, here: Path
) -> None:
    config = (here / "Pulumi.dev.yaml").read_text().replace("max_vcpus: 64", "max_vcpus: 192")
    config = config.replace("max_vcpus: 128", "max_vcpus: 192").replace(region or "\0", other).replace(old, new, 1)
    (here / "Pulumi.dev.yaml").write_text(config)
    line = next(number for number, text in enumerate(config.splitlines(), 1) if new in text)
    assert one_error(CliRunner().invoke(stacks, [verb, "dev"])).startswith(
        f"Pulumi.dev.yaml:{line}: environment.aws.{said}"
    )


G5 = "aws,g5.8xlarge,"
COMMANDS = ["offers --gpu a10g", "offers j.yaml", "cost j.yaml --to a10g", "stacks cost dev"]


@pytest.mark.parametrize(
    "file, start, old, new, why, commands",
    [
        ("machines.csv", G5, ",32,", ",3x2,", "vcpus: not a number: 3x2",
         [*COMMANDS, "submit j.yaml --dry-run --to a10g", "stacks validate dev"]),
        ("prices.csv", "aws,us-east-1,,g5.8xlarge,", "2.448", "2;448", "on_demand_usd_hour: not a number: 2;448",
         COMMANDS),
        ("aws_network_prices.csv", "us-east-1,gp3-gib,", "0.08", "0;08", "usd: not a number: 0;08",
         ["stacks cost dev"]),
    ],
)  # fmt: skip
def test_a_damaged_data_file(
    file: str, start: str, old: str, new: str, why: str, commands: list[str],
    damage: Damage, invoke: Callable[..., Result], here: Path,
) -> None:  # fmt: skip
    (here / "j.yaml").write_text(f"{JOB}accelerator: {{count: 1}}\n")
    number = line_of(file, start)
    damage(file, replaced(start, old, new))
    for command in commands:
        verb, *rest = command.split()
        result = CliRunner().invoke(stacks, rest) if verb == "stacks" else invoke(verb, *rest)
        assert one_error(result) == f"{tables.DATA}/{file}:{number}: {why}", command
        assert "hint: accel's own data: install accel again" in result.stderr


def test_a_price_that_nobody_knows_is_said_so(invoke: Callable[..., Result], here: Path) -> None:
    target = queue(types("spot", "p5e.48xlarge"))
    (here / "targets.json").write_text(json.dumps({"rare": target.model_dump(mode="json", by_alias=True)}))
    (here / "j.yaml").write_text(f"{JOB}accelerator: {{count: 1}}\n")
    result = invoke("cost", "j.yaml", "--to", "rare")
    rows = [line.split() for line in result.stdout.splitlines()[1:3]]
    assert result.exit_code == 0 and [row[-2:] for row in rows] == [["unknown", "unknown"]] * 2
    assert "rare: worst case: unknown, since no price is known" in result.stdout
    (found,) = json.loads(invoke("cost", "j.yaml", "--to", "rare", "-o", "json").stdout)
    assert found["worst"] is None and found["environments"][0]["rates"][0]["on_demand"] is None
    config = (here / "Pulumi.dev.yaml").read_text().replace("us-east-1", "sa-east-1")
    (here / "Pulumi.dev.yaml").write_text(config)
    shown = CliRunner().invoke(stacks, ["cost", "dev"])
    assert shown.exit_code == 0 and re.search(r"g5,g6, 0 to 64 vCPUs +0\.000 +unknown +unknown", shown.stdout)
    assert "unknown: environments.spot: g6.xlarge is offered in sa-east-1; no price of it there" in shown.stdout
