"""How many of an accelerator a machine can have, and the sizes of the machines, row by row of the clouds' tables."""

import pytest

from accel.catalog import NoMachine, UnavailableName, UnknownName, accelerator, hosts, machine, machines_for

COUNTS = """
nvidia-h100-80gb      1:a3-highgpu-1g 2:a3-highgpu-2g 4:a3-highgpu-4g 8:a3-highgpu-8g
nvidia-h100-mega-80gb 8:a3-megagpu-8g
nvidia-tesla-a100     1:a2-highgpu-1g 2:a2-highgpu-2g 4:a2-highgpu-4g 8:a2-highgpu-8g 16:a2-megagpu-16g
nvidia-a100-80gb      1:a2-ultragpu-1g 2:a2-ultragpu-2g 4:a2-ultragpu-4g 8:a2-ultragpu-8g
nvidia-l4             1:g2-standard-8 2:g2-standard-24 4:g2-standard-48 8:g2-standard-96
nvidia-tesla-t4       1:n1+nvidia-tesla-t4x1 2:n1+nvidia-tesla-t4x2 4:n1+nvidia-tesla-t4x4
nvidia-tesla-v100     1:n1+nvidia-tesla-v100x1 2:n1+nvidia-tesla-v100x2 4:n1+nvidia-tesla-v100x4 8:n1+nvidia-tesla-v100x8
nvidia-tesla-p100     1:n1+nvidia-tesla-p100x1 2:n1+nvidia-tesla-p100x2 4:n1+nvidia-tesla-p100x4
nvidia-tesla-p4       1:n1+nvidia-tesla-p4x1 2:n1+nvidia-tesla-p4x2 4:n1+nvidia-tesla-p4x4
nvidia-h200-141gb     8:a3-ultragpu-8g
nvidia-b200           8:a4-highgpu-8g
nvidia-gb200          4:a4x-highgpu-4g
nvidia-rtx-pro-6000   0.125:g4-standard-6 0.25:g4-standard-12 0.5:g4-standard-24 1:g4-standard-48 8:g4-standard-384
"""  # noqa: E501


@pytest.mark.parametrize(
    "name, count, wanted",
    [
        (line.split()[0], float(pair.partition(":")[0]), pair.partition(":")[2])
        for line in COUNTS.split("\n")[1:-1]
        for pair in line.split()[1:]
    ],
)
def test_counts_that_exist_on_google_cloud(name: str, count: float, wanted: str) -> None:
    found = machines_for(name, count, "gcp")
    assert wanted in [each.name for each in found]
    for each in found:
        assert (each.cloud, each.accelerator, each.accelerator_count) == ("gcp", name, count)
        assert each.is_attachment == each.name.startswith("n1+")


@pytest.mark.parametrize(
    "name, count, cloud, message",
    [
        ("h100-mega", 2, "gcp", "nvidia-h100-mega-80gb: 2 is not a count that any machine of Google Cloud has; 8"),
        ("h100-mega", 4, "gcp", "nvidia-h100-mega-80gb: 4 is not a count that any machine of Google Cloud has; 8"),
        ("a100-80gb", 16, None, "nvidia-a100-80gb: 16 is not a count that any machine has; 1, 2, 4, 8"),
        ("t4", 8, "gcp", "nvidia-tesla-t4: 8 is not a count that any machine of Google Cloud has; 1, 2, 4"),
        ("h100", 3, None, "nvidia-h100-80gb: 3 is not a count that any machine has; 1, 2, 4, 8"),
        ("h100", 2, "aws", "nvidia-h100-80gb: 2 is not a count that any machine of AWS has; 1, 8"),
        ("l4", 0.3, "aws", "nvidia-l4: 0.3 is not a count that any machine of AWS has; 0.125, 0.25, 0.5, 1, 4, 8"),
        ("l4", 0, None, "nvidia-l4: 0 is not a count that any machine has; 0.125, 0.25, 0.5, 1, 2, 4, 8"),
        ("l4", -1, "gcp", "nvidia-l4: -1 is not a count that any machine of Google Cloud has; 1, 2, 4, 8"),
        ("a10g", 1, "gcp", "nvidia-a10g: no machine of Google Cloud has it"),
        ("v4", 4, None, "tpu-v4: no machine has it; it is rented by the slice"),
        ("v5e", 4, "aws", "tpu-v5litepod: no machine of AWS has it"),
    ],
)
def test_counts_that_do_not_exist_are_refused_with_those_that_do(
    name: str, count: float, cloud: str | None, message: str
) -> None:
    with pytest.raises(NoMachine) as error:
        machines_for(name, count, cloud)
    assert str(error.value) == message


def test_the_refusal_carries_the_counts() -> None:
    with pytest.raises(NoMachine) as error:
        machines_for("a100-80gb", 16)
    assert (error.value.accelerator, error.value.count) == ("nvidia-a100-80gb", 16)
    assert error.value.counts == (1, 2, 4, 8)


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda: machines_for("h1000", 1), UnknownName),
        (lambda: machines_for("rtx-4090", 1), UnavailableName),
        (lambda: machines_for("k80", 1), UnavailableName),
        (lambda: machines_for("l4", 1, "azure"), UnknownName),
        (lambda: machines_for("nvidia-tesla-t5", 1), UnknownName),
        (lambda: machines_for("zzz", 1, "gcp"), UnknownName),
    ],
)
def test_unknown_names(call, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()


def test_both_clouds_together_the_smaller_first() -> None:
    found = machines_for("l4", 1)
    assert [each.cloud for each in found] == sorted(each.cloud for each in found)
    assert [each.name for each in found if each.cloud == "gcp"] == [
        "g2-standard-4", "g2-standard-8", "g2-standard-12", "g2-standard-16", "g2-standard-32",
    ]  # fmt: skip
    assert [each.name for each in machines_for("L4", 0.125, "aws")] == ["g6f.large", "g6f.xlarge"]


def test_tpu_hosts_have_chips() -> None:
    assert [each.name for each in machines_for("v6e", 8, "gcp")] == ["ct6e-standard-8t"]


@pytest.mark.parametrize(
    "gpu, count, inside, outside",
    [
        ("t4", 1, "n1-standard-8", "n1-standard-64"),
        ("v100", 1, "n1-standard-8", "n1-standard-16"),
        ("v100", 8, "n1-standard-96", None),
        ("t4", 4, "n1-standard-96", None),
    ],
)
def test_gpus_are_attached_to_n1_machines(gpu: str, count: int, inside: str, outside: str | None) -> None:
    (attachment,) = machines_for(gpu, count, "gcp")
    assert attachment.is_attachment
    names = [each.name for each in hosts(attachment)]
    assert inside in names
    assert outside not in names
    assert all(name.startswith("n1-") for name in names)


def test_a_machine_with_its_own_gpus_has_no_hosts() -> None:
    with pytest.raises(ValueError, match="a2-highgpu-1g is a machine of its own"):
        hosts(machine("gcp", "a2-highgpu-1g"))


@pytest.mark.parametrize(
    "name, gb", [("T4", 16), ("L4", 24), ("V100", 16), ("A100 40GB", 40), ("A100 80GB", 80), ("H100", 80)]
)
def test_the_guides_gpus_have_their_memory(name: str, gb: int) -> None:
    assert accelerator(name).nominal_memory_gb == gb


GOOGLE = """
a2-highgpu-1g   12  85 nvidia-tesla-a100 1
a2-highgpu-2g   24 170 nvidia-tesla-a100 2
a2-highgpu-4g   48 340 nvidia-tesla-a100 4
a2-highgpu-8g   96 680 nvidia-tesla-a100 8
a2-megagpu-16g  96 1360 nvidia-tesla-a100 16
a2-ultragpu-1g  12 170 nvidia-a100-80gb 1
a2-ultragpu-2g  24 340 nvidia-a100-80gb 2
a2-ultragpu-4g  48 680 nvidia-a100-80gb 4
a2-ultragpu-8g  96 1360 nvidia-a100-80gb 8
a3-highgpu-1g   26 234 nvidia-h100-80gb 1
a3-highgpu-2g   52 468 nvidia-h100-80gb 2
a3-highgpu-4g  104 936 nvidia-h100-80gb 4
a3-highgpu-8g  208 1872 nvidia-h100-80gb 8
a3-edgegpu-8g  208 1872 nvidia-h100-80gb 8
a3-megagpu-8g  208 1872 nvidia-h100-mega-80gb 8
a3-ultragpu-8g 224 2952 nvidia-h200-141gb 8
a4-highgpu-8g  224 3968 nvidia-b200 8
a4x-highgpu-4g 140 884 nvidia-gb200 4
g2-standard-4    4  16 nvidia-l4 1
g2-standard-8    8  32 nvidia-l4 1
g2-standard-12  12  48 nvidia-l4 1
g2-standard-16  16  64 nvidia-l4 1
g2-standard-24  24  96 nvidia-l4 2
g2-standard-32  32 128 nvidia-l4 1
g2-standard-48  48 192 nvidia-l4 4
g2-standard-96  96 384 nvidia-l4 8
g4-standard-48  48 180 nvidia-rtx-pro-6000 1
g4-standard-96  96 360 nvidia-rtx-pro-6000 2
g4-standard-192 192 720 nvidia-rtx-pro-6000 4
g4-standard-384 384 1440 nvidia-rtx-pro-6000 8
n1-standard-4    4  15 - 0
n1-standard-8    8  30 - 0
n1-standard-16  16  60 - 0
n1-standard-32  32 120 - 0
n1-highmem-2     2  13 - 0
n1-highmem-4     4  26 - 0
n1-highmem-8     8  52 - 0
n1-highmem-16   16 104 - 0
n1-highmem-32   32 208 - 0
"""

AWS = """
p3.2xlarge     8  61 nvidia-tesla-v100 1
p3.8xlarge    32 244 nvidia-tesla-v100 4
p3.16xlarge   64 488 nvidia-tesla-v100 8
p3dn.24xlarge 96 768 nvidia-tesla-v100-32gb 8
p4d.24xlarge  96 1152 nvidia-tesla-a100 8
p4de.24xlarge 96 1152 nvidia-a100-80gb 8
p5.4xlarge    16 256 nvidia-h100-80gb 1
p5.48xlarge  192 2048 nvidia-h100-80gb 8
g4dn.xlarge    4  16 nvidia-tesla-t4 1
g4dn.2xlarge   8  32 nvidia-tesla-t4 1
g4dn.4xlarge  16  64 nvidia-tesla-t4 1
g4dn.8xlarge  32 128 nvidia-tesla-t4 1
g4dn.12xlarge 48 192 nvidia-tesla-t4 4
g4dn.16xlarge 64 256 nvidia-tesla-t4 1
g4dn.metal    96 384 nvidia-tesla-t4 8
"""

SIZES = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge")
FAMILIES = [
    (f"{family}.{size}", vcpus, gib, gpu, count)
    for family, gpu, memory in (
        ("g5", "nvidia-a10g", (16, 32, 64, 128, 192, 256, 384, 768)),
        ("g6", "nvidia-l4", (16, 32, 64, 128, 192, 256, 384, 768)),
        ("g6e", "nvidia-l40s", (32, 64, 128, 256, 384, 512, 768, 1536)),
    )
    for size, vcpus, gib, count in zip(
        SIZES, (4, 8, 16, 32, 48, 64, 96, 192), memory, (1, 1, 1, 1, 4, 1, 4, 8), strict=True
    )
]


@pytest.mark.parametrize("cloud, line", [("gcp", x) for x in GOOGLE.split("\n")[1:-1]])
def test_machines_of_google_cloud(cloud: str, line: str) -> None:
    name, vcpus, gib, gpu, count = line.split()
    each = machine(cloud, name)
    assert (each.vcpus, each.memory_mib, each.accelerator or "-") == (int(vcpus), int(gib) * 1024, gpu)
    assert each.accelerator_count == int(count)


@pytest.mark.parametrize(
    "name, vcpus, gib, gpu, count",
    [*((n, int(v), int(g), gpu, int(c)) for n, v, g, gpu, c in (x.split() for x in AWS.split("\n")[1:-1])), *FAMILIES],
)
def test_instance_types_of_aws(name: str, vcpus: int, gib: int, gpu: str, count: int) -> None:
    each = machine("aws", name)
    assert (each.vcpus, each.memory_mib) == (vcpus, gib * 1024)
    assert (each.accelerator, each.accelerator_count) == (gpu, count)
    assert each in machines_for(gpu, count, "aws")


@pytest.mark.parametrize(
    "gpu, machine_type, memory_mib",
    [
        ("nvidia-tesla-t4", "n1-standard-8", 30720),
        ("nvidia-tesla-v100", "n1-standard-8", 30720),
        ("nvidia-tesla-a100", "a2-highgpu-1g", 87040),
        ("nvidia-l4", "g2-standard-8", 32768),
    ],
)
def test_the_machine_of_one_gpu(gpu: str, machine_type: str, memory_mib: int) -> None:
    found = machines_for(gpu, 1, "gcp")
    names = [host.name for each in found for host in (hosts(each) if each.is_attachment else (each,))]
    assert machine_type in names
    assert machine("gcp", machine_type).memory_mib == memory_mib


def test_some_gpus_of_aws_come_by_eight_only() -> None:
    for gpu in ("a100", "a100-80gb", "h200", "b200"):
        with pytest.raises(NoMachine, match="is not a count that any machine of AWS has; 8"):
            machines_for(gpu, 1, "aws")
