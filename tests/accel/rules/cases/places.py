"""Regions of AWS, and what is offered there."""

from accel.rules import aws_places

from .case import Case

CASES = [
    Case(
        "aws.region.is-zone", "region", ('"us-east-1a"', "a zone"), "use us-east-1",
        lambda: aws_places.region("us-east-1a"), lambda: aws_places.region("us-east-1"),
    ),
    Case(
        "aws.region.name", "region", ('"us-east"',), "use us-east-",
        lambda: aws_places.region("us-east"), lambda: aws_places.region("us-esat-1"),
    ),
    Case(
        "aws.region.unknown", "region", ('"us-esat-1"', "does not know"), "use us-east-1",
        lambda: aws_places.region("us-esat-1"), lambda: aws_places.region("us-east-1"),
    ),
    Case(
        "aws.types.not-offered", "instance_types[1]", ('"p5.48xlarge"', "eu-west-3"), "such as eu-west-2",
        lambda: aws_places.instance_types("eu-west-3", ["g6", "p5.48xlarge"]),
        lambda: aws_places.instance_types("eu-west-2", ["g6", "p5.48xlarge"]),
    ),
]  # fmt: skip
