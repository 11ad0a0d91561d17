"""Networks, accounts, labels and clusters of Google Cloud."""

from datetime import UTC, datetime

from accel.rules.gcp import accounts, labels, network
from accel.rules.gke import access, clusters, maintenance

from .case import Case

JANUARY, MARCH, JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 3, 7))
HERE = {"private_nodes": True, "private_endpoint": False, "dns_endpoint": False, "authorized": {"vpn": "10.9.0.0/24"}}
PRIVATE = {**HERE, "private_endpoint": True}
CA = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="

NETWORK = [
    Case(
        "gcp.network.range", "subnets.a.pods", ('"10.64.0.1/14"',), "10.64.0.0/14",
        lambda: network.ranges({"subnets.a.pods": "10.64.0.1/14"}),
        lambda: network.ranges({"subnets.a.pods": "10.64.0.0/14"}),
    ),
    Case(
        "gcp.network.prohibited", "nodes", ("169.254.0.0/15", "link-local"), "private range",
        lambda: network.ranges({"nodes": "169.254.0.0/15"}), lambda: network.ranges({"nodes": "10.0.0.0/20"}),
    ),
    Case(
        "gcp.network.overlap", "services", ("10.64.16.0/20", "pods (10.64.0.0/14)"), "addresses of its own",
        lambda: network.ranges({"pods": "10.64.0.0/14", "services": "10.64.16.0/20"}),
        lambda: network.ranges({"pods": "10.64.0.0/14", "services": "10.68.0.0/20"}),
    ),
    Case(
        "gcp.network.nodes-size", "nodes", ("10.0.0.0/30",), "/20",
        lambda: network.subnet("10.0.0.0/30", "10.64.0.0/14", "10.1.0.0/20"),
        lambda: network.subnet("10.0.0.0/29", "10.64.0.0/14", "10.1.0.0/20"),
    ),
    Case(
        "gcp.network.pods-size", "pods", ("10.64.0.0/25", "/24"), "larger range",
        lambda: network.subnet("10.0.0.0/29", "10.64.0.0/25", "10.1.0.0/20"),
        lambda: network.subnet("10.0.0.0/29", "10.64.0.0/25", "10.1.0.0/20", pods_per_node=64),
    ),
    Case(
        "gcp.network.services-size", "services", ("10.1.0.0/29",), "/20",
        lambda: network.subnet("10.0.0.0/29", "10.64.0.0/14", "10.1.0.0/29"),
        lambda: network.subnet("10.0.0.0/29", "10.64.0.0/14", "10.1.0.0/28"),
    ),
    Case(
        "gcp.network.public", "pods", ("8.0.0.0/14", "public"), "default SNAT",
        lambda: network.ranges({"pods": "8.0.0.0/14"}), lambda: network.ranges({"pods": "240.0.0.0/14"}),
    ),
    Case(
        "gcp.network.pods-few", "pods", ("holds 1024 nodes of 110 pods", "holds 4092"), "larger range",
        lambda: network.subnet("10.0.0.0/20", "10.64.0.0/14", "10.1.0.0/20"),
        lambda: network.subnet("10.0.0.0/20", "10.64.0.0/12", "10.1.0.0/20"),
    ),
    Case(
        "gcp.network.nodes-few", "pools", ("13 nodes", "10.0.0.0/28", "12"), "lower max_nodes",
        lambda: network.growth({"a": (10, 110), "b": (3, 110)}, "10.0.0.0/28", "10.64.0.0/14"),
        lambda: network.growth({"a": (10, 110), "b": (2, 110)}, "10.0.0.0/28", "10.64.0.0/14"),
    ),
    Case(
        "gcp.network.pods-per-node", "max_pods_per_node", ("is 7",), "110",
        lambda: network.pods_per_node(7), lambda: network.pods_per_node(8),
    ),
    Case(
        "gcp.network.region", "region", ('"us-central1-a"',), "us-central1",
        lambda: network.region("us-central1-a", "region"), lambda: network.region("us-central1", "region"),
    ),
    Case(
        "gcp.region.unknown", "region", ('"us-centrall1"', "does not know"), "use us-central1",
        lambda: network.region("us-centrall1", "region"), lambda: network.region("us-central1", "region"),
    ),
    Case(
        "gcp.network.nat-ports", "min_ports_per_node", ("is 100",), "64",
        lambda: network.nat_ports(100, 4096), lambda: network.nat_ports(128, 4096),
    ),
    Case(
        "gcp.network.path", "subnetwork", ("regions/us-east1",), "regions/us-central1/subnetworks/",
        lambda: network.subnet_path("projects/p/regions/us-east1/subnetworks/s", "us-central1"),
        lambda: network.subnet_path("projects/p/regions/us-central1/subnetworks/s", "us-central1"),
    ),
]  # fmt: skip

LABELS = [
    Case(
        "gcp.label.spelling", "labels", ('"Team: ML Platform"', '"team: ml-platform"'), "expect it so",
        lambda: labels.labels({"Team": "ML Platform"}), lambda: labels.labels({"team": "ml-platform"}),
    ),
    Case(
        "gcp.label.clash", "labels", ('"cost:centre" and "cost-centre"',), "rename",
        lambda: labels.labels({"cost-centre": "1", "cost:centre": "2"}),
        lambda: labels.labels({"cost-centre": "1", "cost_centre": "2"}),
    ),
    Case(
        "gcp.label.key", "labels", ('no key for "vision"',), "write one",
        lambda: labels.labels({"": "vision"}), lambda: labels.labels({"team": ""}),
    ),
    Case(
        "gcp.label.count", "labels", ("are 62", "64"), "leave some out",
        lambda: labels.labels({f"k{i}": "" for i in range(62)}, own=3),
        lambda: labels.labels({f"k{i}": "" for i in range(61)}, own=3),
    ),
]  # fmt: skip

ACCOUNTS = [
    Case(
        "gcp.bucket.name", "read_buckets[1]", ('is "*"', "no bucket's name"), "the name alone",
        lambda: accounts.access(["data", "*"], []),
        lambda: accounts.access(["data_1", "a.company.com"], ["x" * 63]),
    ),
    Case(
        "gcp.account.basic-role", "roles[1]", ("roles/editor", "whole project"), "roles/storage.objectViewer",
        lambda: accounts.roles(["roles/storage.objectViewer", "roles/editor"]),
        lambda: accounts.roles(["roles/artifactregistry.reader"]),
    ),
    Case(
        "gcp.account.role", "roles[0]", ('"storage.objectViewer"',), "in full",
        lambda: accounts.roles(["storage.objectViewer"]),
        lambda: accounts.roles(["organizations/1234/roles/trainer"]),
    ),
    Case(
        "gcp.account.trusted-stores", "roles[0]", ("roles/storage.objectAdmin", "others trust"), "write_buckets",
        lambda: accounts.roles(["roles/storage.objectAdmin"]),
        lambda: accounts.roles(["roles/storage.objectViewer", "roles/bigquery.dataViewer"]),
    ),
    Case(
        "gcp.account.administers", "roles[0]", ("roles/iam.serviceAccountTokenCreator",), "one account",
        lambda: accounts.roles(["roles/iam.serviceAccountTokenCreator"]),
        lambda: accounts.roles(["roles/logging.logWriter"]),
    ),
    Case(
        "gcp.account.default", "email", ("1234-compute@developer.gserviceaccount.com",), "kind: create",
        lambda: accounts.nodes_email("1234-compute@developer.gserviceaccount.com"),
        lambda: accounts.nodes_email("nodes@ml-dev-1234.iam.gserviceaccount.com"),
    ),
    Case(
        "gcp.account.email", "email", ('"nodes"',), ".iam.gserviceaccount.com",
        lambda: accounts.nodes_email("nodes"),
        lambda: accounts.nodes_email("nodes@ml-dev-1234.iam.gserviceaccount.com"),
    ),
    Case(
        "gcp.account.repository", "repositories[0]", ("us-docker.pkg.dev",), "projects/p/locations/us/",
        lambda: accounts.repositories(["us-docker.pkg.dev/p/images"]),
        lambda: accounts.repositories(["projects/ml-dev-1234/locations/us/repositories/images"]),
    ),
    Case(
        "gcp.account.key-length", "workloads.x", ("has 23 characters", "22"), "shorten",
        lambda: accounts.key("a" * 23, "workloads.x"), lambda: accounts.key("a" * 22, "workloads.x"),
    ),
    Case(
        "gcp.project.id", "project", ('"ML Dev"',), "gcloud projects list",
        lambda: accounts.project("ML Dev"), lambda: accounts.project("ml-dev-1234"),
    ),
    Case(
        "gcp.account.shared-name", "b.service_account", ("training/trainer", "a is already"), "join the two",
        lambda: accounts.identities({"a": ("training", "trainer"), "b": ("training", "trainer")}),
        lambda: accounts.identities({"a": ("training", "trainer"), "b": ("research", "trainer")}),
    ),
]  # fmt: skip

PLACE = [
    Case(
        "gcp.cluster.location", "location", ('"us-central"',), "us-central1",
        lambda: clusters.location("us-central", []), lambda: clusters.location("us-central1-ai1a", []),
    ),
    Case(
        "gcp.cluster.region", "location", ("us-east1-b", "us-central1"), "write us-central1",
        lambda: clusters.in_region("us-east1-b", "us-central1"),
        lambda: clusters.in_region("us-central1-b", "us-central1"),
    ),
    Case(
        "gcp.cluster.region-unknown", "location", ("us-centrall1",), "make sure",
        lambda: clusters.location("us-centrall1", []), lambda: clusters.location("us-central1", []),
    ),
    Case(
        "gcp.cluster.zonal", "location", ("us-central1-a",), "write us-central1 ",
        lambda: clusters.location("us-central1-a", []), lambda: clusters.location("us-central1", []),
    ),
    Case(
        "gcp.cluster.node-locations", "node_locations[1]", ("us-east1-b", "us-central1"), "us-central1-b",
        lambda: clusters.location("us-central1", ["us-central1-a", "us-east1-b"]),
        lambda: clusters.location("us-central1", ["us-central1-a", "us-central1-f"]),
    ),
    Case(
        "gcp.cluster.pool-zones", "zones[0]", ("us-east1-b",), "us-central1-a",
        lambda: clusters.pool_zones(["us-east1-b"], "us-central1"),
        lambda: clusters.pool_zones(["us-central1-b"], "us-central1"),
    ),
    Case(
        "gcp.cluster.pool-zones-unsaid", "zones", ("missing",), "node_locations",
        lambda: clusters.pool_zones([], "us-central1"),
        lambda: clusters.pool_zones(["us-central1-b"], "us-central1"),
    ),
    Case(
        "gcp.cluster.no-system-pool", "pools", ("no node",), "kind: cpu",
        lambda: clusters.system_pool(0), lambda: clusters.system_pool(1),
    ),
    Case(
        "gcp.cluster.no-controller", "releases[0].install", ("has no kueue",), "sha256",
        lambda: clusters.controllers([("kueue", False, None)]),
        lambda: clusters.controllers([("kueue", True, None), ("jobset", False, "the platform team")]),
    ),
    Case(
        "gcp.cluster.name-length", "key", ("has 33 characters",), "shorten",
        lambda: clusters.key("a" * 33), lambda: clusters.key("a" * 32),
    ),
    Case(
        "gcp.cluster.channel-rapid", "channel", ("RAPID",), "REGULAR",
        lambda: clusters.version("RAPID", None), lambda: clusters.version("REGULAR", None),
    ),
    Case(
        "gcp.cluster.version", "version", ('"v1.33"',), "1.33",
        lambda: clusters.version("STABLE", "v1.33"), lambda: clusters.version("STABLE", "1.33.5-gke.1201000"),
    ),
    Case(
        "gcp.cluster.metrics-version", "metrics[1]", ("JOBSET", "1.31"), "raise version",
        lambda: clusters.version("STABLE", "1.31", ["DCGM", "JOBSET"]),
        lambda: clusters.version("STABLE", "1.32", ["DCGM", "JOBSET"]),
    ),
]  # fmt: skip

ACCESS = [
    Case(
        "gcp.cluster.control-plane-range", "control_plane_cidr", ("172.16.0.0/27",), "/28",
        lambda: access.control_plane("172.16.0.0/27"), lambda: access.control_plane("172.16.0.0/28"),
    ),
    Case(
        "gcp.cluster.private-endpoint", "private_endpoint", ("private_nodes is false",), "nodes private",
        lambda: access.access(**{**PRIVATE, "private_nodes": False}), lambda: access.access(**PRIVATE),
    ),
    Case(
        "gcp.cluster.authorized-range", "authorized_networks.vpn", ('"10.9.0.1/24"',), "IPv4 range",
        lambda: access.access(**{**HERE, "authorized": {"vpn": "10.9.0.1/24"}}), lambda: access.access(**HERE),
    ),
    Case(
        "gcp.cluster.authorized-internal", "authorized_networks.office", ("198.51.101.0/24", "public"), "internal",
        lambda: access.access(**{**PRIVATE, "authorized": {"office": "198.51.101.0/24"}}),
        lambda: access.access(**{**HERE, "authorized": {"office": "198.51.101.0/24"}}),
    ),
    Case(
        "gcp.cluster.authorized-none", "authorized_networks", ("none",), "dns_endpoint",
        lambda: access.access(**{**PRIVATE, "authorized": None}),
        lambda: access.access(**{**PRIVATE, "authorized": None, "dns_endpoint": True}),
    ),
    Case(
        "gcp.cluster.authorized-count", "authorized_networks", ("51",), "join",
        lambda: access.access(**{**HERE, "authorized": {f"n{i}": f"10.0.{i}.0/24" for i in range(51)}}),
        lambda: access.access(**{**HERE, "authorized": {f"n{i}": f"10.0.{i}.0/24" for i in range(50)}}),
    ),
    Case(
        "gcp.cluster.open", "authorized_networks.all", ("0.0.0.0/0",), "people and CI",
        lambda: access.access(**{**HERE, "authorized": {"all": "0.0.0.0/0"}}), lambda: access.access(**HERE),
    ),
    Case(
        "gcp.cluster.port", "webhook_ports[0]", ("is 0",), "9443",
        lambda: access.ports([0]), lambda: access.ports([9443]),
    ),
    Case(
        "gcp.cluster.endpoint", "endpoint", ('"https://203.0.113.7"',), "describe",
        lambda: access.cluster_access("https://203.0.113.7", CA), lambda: access.cluster_access("127.0.0.1:6443", CA),
    ),
    Case(
        "gcp.cluster.certificate", "ca_certificate", ("PEM",), "clusterCaCertificate",
        lambda: access.cluster_access("203.0.113.7", "-----BEGIN"), lambda: access.cluster_access("203.0.113.7", CA),
    ),
    Case(
        "gcp.cluster.snat", "default_snat", ("8.0.0.0/14",), "write false",
        lambda: access.snat(default_snat=True, private_nodes=True, pods="8.0.0.0/14"),
        lambda: access.snat(default_snat=False, private_nodes=True, pods="8.0.0.0/14"),
    ),
]  # fmt: skip

MAINTENANCE = [
    Case(
        "gcp.maintenance.window", "hours", ("is 3",), "4 or more",
        lambda: maintenance.window(["SA"], 3), lambda: maintenance.window(["SA"], 4),
    ),
    Case(
        "gcp.maintenance.window-scarce", "hours", ("is 4 on 2 days a week", "32 hours"), "write 6 hours",
        lambda: maintenance.window(["SA", "SU"], 4), lambda: maintenance.window(["SA", "SU"], 6),
    ),
    Case(
        "gcp.maintenance.exclusion", "exclusions.a.end", ("not after start",), "later",
        lambda: maintenance.exclusion("NO_MINOR_UPGRADES", MARCH, JANUARY, "exclusions.a"),
        lambda: maintenance.exclusion("NO_MINOR_UPGRADES", JANUARY, None, "exclusions.a"),
    ),
    Case(
        "gcp.maintenance.exclusion-long", "exclusions.a.end", ("181 days", "90"), "NO_MINOR_OR_NODE_UPGRADES",
        lambda: maintenance.exclusion("NO_UPGRADES", JANUARY, JULY, "exclusions.a"),
        lambda: maintenance.exclusion("NO_UPGRADES", JANUARY, MARCH, "exclusions.a"),
    ),
    Case(
        "gcp.maintenance.exclusion-count", "exclusions", ("4 of NO_UPGRADES",), "narrow",
        lambda: maintenance.exclusions(["NO_UPGRADES"] * 4),
        lambda: maintenance.exclusions(["NO_UPGRADES"] * 3 + ["NO_MINOR_UPGRADES"] * 17),
    ),
]  # fmt: skip

CASES = NETWORK + LABELS + ACCOUNTS + PLACE + ACCESS + MAINTENANCE
