"""Networks exported for other stacks: output `network` of AWS, `gcp_network` of Google Cloud."""

from pydantic import Field

from .model import SCHEMA, Contract


class AwsNetwork(Contract):
    """The network of a stack's instances, which another stack can use too."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    vpc_id: str
    subnet_ids: list[str]
    security_group_ids: list[str]


class GcpSubnet(Contract):
    """One region of a network."""

    subnetwork: str = Field(description="Subnetwork: projects/<p>/regions/<r>/subnetworks/<s>")
    pods_range: str = Field(description="Name of the secondary range for pods")
    services_range: str = Field(description="Name of the secondary range for services")
    max_pods_per_node: int = Field(
        default=110, description="Maximum number of pods per node that the range for pods was sized for"
    )


class GcpNetwork(Contract):
    """The network of a stack's clusters, which another stack can use too."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str = Field(description="Project that the network is in")
    network: str = Field(description="VPC network: projects/<p>/global/networks/<n>")
    subnets: dict[str, GcpSubnet] = Field(description="Subnets by region")
