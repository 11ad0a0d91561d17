"""Names, environments, types, images and roles."""

from accel.rules import Finding
from accel.rules.aws import environments, images, names, roles, types

from .case import Case


def _arn(kind: str, name: str) -> str:
    return f"arn:aws:iam::210987654321:{kind}/{name}"


def _roles(**given: str) -> list[Finding]:
    return roles.roles(**{"kind": "SPOT", "allocation_strategy": "SPOT_PRICE_CAPACITY_OPTIMIZED"} | given)


NAMES = [
    Case(
        "aws.name.environment", "name", ('"gpu env"', "letters, digits, - and _"), "write gpu-env",
        lambda: names.environment("gpu env"), lambda: names.environment("gpu_env-" + "x" * 120),
    ),
    Case(
        "aws.name.definition", "name", ("129 characters", "128"), "shorten",
        lambda: names.definition("d" * 129), lambda: names.definition("d" * 128),
    ),
    Case(
        "aws.name.job", "name", ('"-run"', "the first a letter or digit"), "write run",
        lambda: names.job("-run"), lambda: names.job("7-run"),
    ),
]  # fmt: skip

ENVIRONMENTS = [
    Case(
        "aws.environment.kind", "kind", ('"FARGATE"', "no GPUs"), "EC2, SPOT",
        lambda: environments.environment_kind("FARGATE"),
        lambda: environments.environment_kind("SPOT"),
    ),
    Case(
        "aws.environment.created-disabled", "state", ("DISABLED",), "create it ENABLED",
        lambda: environments.initial_state("DISABLED"),
        lambda: environments.initial_state("DISABLED", imported=True),
    ),
    Case(
        "aws.capacity.bounds", "min_vcpus", ("is 8", "max_vcpus 4"), "at most 4",
        lambda: environments.capacity(8, 4, []), lambda: environments.capacity(0, 4, ["g5.xlarge"]),
    ),
    Case(
        "aws.capacity.min-bills", "min_vcpus", ("is 4", "DISABLED"), "write 0",
        lambda: environments.capacity(4, 8, []), lambda: environments.capacity(0, 8, []),
    ),
    Case(
        "aws.capacity.max-too-small", "max_vcpus", ("is 47", "g5.12xlarge", "48 vCPUs"),
        "48 for one of them, 96 for two",
        lambda: environments.capacity(0, 47, ["p4d", "g5.12xlarge"]),
        lambda: environments.capacity(0, 48, ["p4d", "g5.12xlarge"]),
    ),
    Case(
        "aws.strategy.unknown", "allocation_strategy", ('"BEST_FIT_PROGRESIVE"',), "use BEST_FIT_PROGRESSIVE",
        lambda: environments.strategy("EC2", "BEST_FIT_PROGRESIVE"),
        lambda: environments.strategy("EC2", "BEST_FIT_PROGRESSIVE"),
    ),
    Case(
        "aws.strategy.spot-on-ec2", "allocation_strategy", ("SPOT_PRICE_CAPACITY_OPTIMIZED", "EC2"),
        "use BEST_FIT_PROGRESSIVE",
        lambda: environments.strategy("EC2", "SPOT_PRICE_CAPACITY_OPTIMIZED"),
        lambda: environments.strategy("SPOT", "SPOT_PRICE_CAPACITY_OPTIMIZED"),
    ),
    Case(
        "aws.strategy.ordered-on-spot", "allocation_strategy", ("BEST_FIT_PROGRESSIVE_ORDERED", "SPOT"),
        "use SPOT_PRICE_CAPACITY_OPTIMIZED",
        lambda: environments.strategy("SPOT", "BEST_FIT_PROGRESSIVE_ORDERED"),
        lambda: environments.strategy("EC2", "BEST_FIT_PROGRESSIVE_ORDERED"),
    ),
    Case(
        "aws.strategy.progressive-on-spot", "allocation_strategy", ("BEST_FIT_PROGRESSIVE", "interruption"),
        "use SPOT_PRICE_CAPACITY_OPTIMIZED",
        lambda: environments.strategy("SPOT", "BEST_FIT_PROGRESSIVE"),
        lambda: environments.strategy("EC2", "BEST_FIT_PROGRESSIVE"),
    ),
    Case(
        "aws.strategy.capacity-optimized", "allocation_strategy", ("SPOT_CAPACITY_OPTIMIZED", "price"),
        "use SPOT_PRICE_CAPACITY_OPTIMIZED",
        lambda: environments.strategy("SPOT", "SPOT_CAPACITY_OPTIMIZED"),
        lambda: environments.strategy("SPOT", "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED"),
    ),
    Case(
        "aws.strategy.best-fit", "allocation_strategy", ("BEST_FIT", "cannot be updated in place"),
        "use BEST_FIT_PROGRESSIVE",
        lambda: environments.strategy("EC2", "BEST_FIT"),
        lambda: environments.strategy("EC2", "BEST_FIT_PROGRESSIVE"),
    ),
    Case(
        "aws.strategy.order-lost", "allocation_strategy", ("SPOT_CAPACITY_OPTIMIZED_PRIORITIZED", "as a set"),
        "use SPOT_PRICE_CAPACITY_OPTIMIZED, or an environment for each",
        lambda: environments.order("SPOT_CAPACITY_OPTIMIZED_PRIORITIZED", ["g5.xlarge", "g6.xlarge"], "SPOT"),
        lambda: (
            environments.order("SPOT_CAPACITY_OPTIMIZED_PRIORITIZED", ["g5.xlarge"], "SPOT")
            + environments.order("BEST_FIT_PROGRESSIVE", ["g5.xlarge", "g6.xlarge"], "EC2")
        ),
    ),
    Case(
        "aws.environment.update-wait", "update_timeout_min", ("is 16", "20 minutes"), "write 15 or less",
        lambda: environments.update_wait(16),
        lambda: environments.update_wait(15) + environments.update_wait(None),
    ),
    Case(
        "aws.spot.bid-on-ec2", "bid_percentage", ("is 50", "EC2"), "kind SPOT",
        lambda: environments.bid("EC2", 50), lambda: environments.bid("EC2", None),
    ),
    Case(
        "aws.spot.bid-range", "bid_percentage", ("1 to 100", "is 101"), "leave it out",
        lambda: environments.bid("SPOT", 101), lambda: environments.bid("SPOT", 100),
    ),
    Case(
        "aws.spot.bid-set", "bid_percentage", ("is 60", "60 % of on-demand"), "leave it out",
        lambda: environments.bid("SPOT", 60), lambda: environments.bid("SPOT", None),
    ),
    Case(
        "aws.types.empty", "instance_types", ("no instance type",), "g5 or g6.xlarge",
        lambda: types.instance_types([]), lambda: types.instance_types(["g5"]),
    ),
    Case(
        "aws.types.unknown", "instance_types[1]", ('"g5.xlrge"',), "use g5.xlarge",
        lambda: types.instance_types(["g6", "g5.xlrge"]),
        lambda: types.instance_types(["g6", "g5.xlarge"]),
    ),
    Case(
        "aws.types.newer", "instance_types[0]", ('"g8.xlarge"', "the catalogue of 20"), "`stacks refresh --cloud aws`",
        lambda: types.instance_types(["g8.xlarge"]), lambda: types.instance_types(["g6.xlarge"]),
    ),
    Case(
        "aws.types.no-gpu", "instance_types[0]", ('"m6i"', "no GPU"), "g5, g6 or p4d",
        lambda: types.instance_types(["m6i"]), lambda: types.instance_types(["g6e"]),
    ),
    Case(
        "aws.types.fractional-gpu", "instance_types[0]", ('"g6f"', "0.125 of a GPU"), "such as g6",
        lambda: types.instance_types(["g6f"]), lambda: types.instance_types(["gr6"]),
    ),
    Case(
        "aws.types.mixed-architecture", "instance_types", ("x86_64 (g5)", "arm64 (g5g)"),
        "environment and queue",
        lambda: types.instance_types(["g5", "g5g"]),
        lambda: types.instance_types(["g5g", "g5g.metal"]),
    ),
    Case(
        "aws.types.mixed-gpu-counts", "instance_types", ("one-GPU sizes (g5)", "eight-GPU machines (p4d)"),
        "environment and queue of their own",
        lambda: types.instance_types(["g5", "p4d"]),
        lambda: types.instance_types(["g5.12xlarge", "p4d"]),
    ),
    Case(
        "aws.image.al2-nvidia", "image_type", ("ECS_AL2_NVIDIA", "2026-06-30"), "use ECS_AL2023_NVIDIA",
        lambda: images.image("ECS_AL2_NVIDIA", ["g5"]),
        lambda: images.image("ECS_AL2_NVIDIA", ["g5"], imported=True),
        "ECS_AL2023_NVIDIA",
    ),
    Case(
        "aws.image.al2", "image_type", ("ECS_AL2", "2026-06-30"), "use ECS_AL2023",
        lambda: images.image("ECS_AL2"),
        lambda: images.image("ECS_AL2", image_id_override="ami-12345678"),
        "ECS_AL2023",
    ),
    Case(
        "aws.image.al1", "image_type", ("ECS_AL1",), "use ECS_AL2023_NVIDIA",
        lambda: images.image("ECS_AL1", imported=True),
        lambda: images.image("ECS_AL1", image_id_override="ami-12345678"),
    ),
    Case(
        "aws.image.unknown", "image_type", ('"ECS_AL2023_NVIDA"',), "use ECS_AL2023_NVIDIA",
        lambda: images.image("ECS_AL2023_NVIDA"), lambda: images.image("ECS_AL2023_NVIDIA"),
    ),
    Case(
        "aws.image.old-gpu", "instance_types[1]", ('"p3.2xlarge"', "ECS_AL2023_NVIDIA"), "g5, g6 or p4d",
        lambda: images.image("ECS_AL2023_NVIDIA", ["g5", "p3.2xlarge"]),
        lambda: images.image("ECS_AL2023_NVIDIA", ["g5", "p3"], image_id_override="ami-12345678"),
    ),
    Case(
        "aws.image.graviton", "instance_types[0]", ('"g5g"', "Graviton"), "image_id_override",
        lambda: images.image("ECS_AL2023_NVIDIA", ["g5g"]),
        lambda: images.image("ECS_AL2023_NVIDIA", ["g5"]),
    ),
    Case(
        "aws.image.no-driver", "image_type", ("ECS_AL2023", "g5.xlarge has GPUs"), "use ECS_AL2023_NVIDIA",
        lambda: images.image("ECS_AL2023", ["m6i", "g5.xlarge"]),
        lambda: images.image("ECS_AL2023", ["m6i"]),
    ),
    Case(
        "aws.image.unlocked", "image_type", ("ECS_AL2023_NVIDIA", "does not pin in us-east-1"), "stacks images upgrade",
        lambda: images.image_lock("ECS_AL2023_NVIDIA", "us-east-1", {("ECS_AL2023_NVIDIA", "us-west-2")}),
        lambda: images.image_lock("ECS_AL2023_NVIDIA", "us-east-1", {("ECS_AL2023_NVIDIA", "us-east-1")})
        + images.image_lock("ECS_AL2023_NVIDIA", "us-east-1", None),
    ),
    Case(
        "aws.template.moving-version", "launch_template", ("gpu-template at $Latest",), "by its number",
        lambda: environments.launch_template("gpu-template", "$Latest"),
        lambda: environments.launch_template("gpu-template", "3"),
    ),
    Case(
        "aws.roles.custom-service-role", "service_role", ("AWSBatchServiceRole",), "AWSServiceRoleForBatch",
        lambda: _roles(service_role=_arn("role", "service-role/AWSBatchServiceRole")),
        lambda: _roles(service_role=_arn("role", "aws-service-role/batch/AWSServiceRoleForBatch")),
    ),
    Case(
        "aws.roles.not-an-instance-profile", "instance_profile", (":role/ecsInstanceRole", "ARN of a role"),
        ":instance-profile/ecsInstanceRole",
        lambda: _roles(instance_profile=_arn("role", "ecsInstanceRole")),
        lambda: _roles(instance_profile="ecsInstanceRole")
        + _roles(instance_profile=_arn("instance-profile", "ecsInstanceRole")),
    ),
    Case(
        "aws.roles.spot-fleet-missing", "spot_fleet_role", ("BEST_FIT",), "AmazonEC2SpotFleetTaggingRole",
        lambda: _roles(allocation_strategy="BEST_FIT"),
        lambda: _roles(kind="EC2", allocation_strategy="BEST_FIT"),
    ),
    Case(
        "aws.roles.spot-fleet-unused", "spot_fleet_role", ("fleet", "SPOT_PRICE_CAPACITY_OPTIMIZED"),
        "leave it out",
        lambda: _roles(spot_fleet_role=_arn("role", "fleet")),
        lambda: _roles(spot_fleet_role=_arn("role", "fleet"), allocation_strategy="BEST_FIT"),
    ),
    Case(
        "aws.roles.spot-fleet-cannot-tag", "spot_fleet_role", ("AmazonEC2SpotFleetRole", "cannot tag"),
        "AmazonEC2SpotFleetTaggingRole",
        lambda: _roles(spot_fleet_role="AmazonEC2SpotFleetRole", allocation_strategy="BEST_FIT"),
        lambda: _roles(spot_fleet_role="AmazonEC2SpotFleetTaggingRole", allocation_strategy="BEST_FIT"),
    ),
]  # fmt: skip

CASES = NAMES + ENVIRONMENTS
