"""Regions of AWS, and what is offered there."""

from accel.rules.aws import network, places, targets

from .case import Case

CASES = [
    Case(
        "aws.region.is-zone", "region", ('"us-east-1a"', "a zone"), "use us-east-1",
        lambda: places.region("us-east-1a"), lambda: places.region("us-east-1"),
    ),
    Case(
        "aws.region.name", "region", ('"us-east"',), "use us-east-",
        lambda: places.region("us-east"), lambda: places.region("us-esat-1"),
    ),
    Case(
        "aws.region.unknown", "region", ('"us-esat-1"', "does not know"), "use us-east-1",
        lambda: places.region("us-esat-1"), lambda: places.region("us-east-1"),
    ),
    Case(
        "aws.types.not-offered", "instance_types[1]", ('"p5.48xlarge"', "eu-west-3"), "such as eu-west-2",
        lambda: places.instance_types("eu-west-3", ["g6", "p5.48xlarge"]),
        lambda: places.instance_types("eu-west-2", ["g6", "p5.48xlarge"]),
    ),
    Case(
        "aws.network.closed-image", "image", ('"pytorch/pytorch:2"', "us-east-1 only"), "egress nat",
        lambda: network.closed_image("pytorch/pytorch:2", "us-east-1"),
        lambda: network.closed_image("210020003000.dkr.ecr.us-east-1.amazonaws.com/train:1", "us-east-1"),
    ),
    Case(
        "aws.targets.too-large", "definitions.train", ("8,193 characters", "8,192"), "fewer secrets",
        lambda: targets.sizes({"gpu": 8192}, {"train": 8193}),
        lambda: targets.sizes({"gpu": 8192}, {"train": 8192}),
    ),
]  # fmt: skip
