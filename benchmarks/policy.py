"""The policy pack: what it takes for 500 resources, on its own and as the engine asks it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from policy.judge import config, findings
from policy.resource import from_preview

from .measure import ROOT, Line, medians_s, run

RESOURCES = 500
LIMIT_S = 1.0
PROGRAM = f"""
import json
import pulumi_aws as aws

for index in range({RESOURCES}):
    kind = index % 5
    if kind == 0:
        aws.ec2.LaunchTemplate(f"t{{index}}", image_id="ami-1", metadata_options={{"http_tokens": "required"}})
    elif kind == 1:
        aws.batch.JobDefinition(f"d{{index}}", type="container", container_properties='{{"image": "a@sha256:0"}}')
    elif kind == 2:
        aws.cloudwatch.LogGroup(f"l{{index}}", retention_in_days=30)
    elif kind == 3:
        statement = {{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/*"}}
        aws.iam.Policy(f"p{{index}}", policy=json.dumps({{"Statement": [statement]}}))
    else:
        aws.ecr.Repository(f"r{{index}}")
"""


def measure(scratch: Path) -> Iterator[Line]:
    """Allow one second more for a preview of 500 resources. The same pack with every policy disabled shows what the
    engine itself takes to ask a pack about each resource, whatever the pack answers."""
    (scratch / "Pulumi.yaml").write_text("name: policies\nruntime: python\n")
    (scratch / "Pulumi.bench.yaml").write_text("config:\n  aws:region: us-east-1\n")
    (scratch / "__main__.py").write_text(PROGRAM)
    run(("pulumi", "stack", "select", "--create", "bench"), scratch)
    preview = ("pulumi", "preview", "--stack", "bench", "--non-interactive")
    (scratch / "disabled.json").write_text('{"all": "disabled"}')
    packs = [
        (*preview, "--policy-pack", ROOT / "policy", "--policy-pack-config", config_file)
        for config_file in (scratch / "disabled.json", ROOT / "policy" / "dev.json")
    ]
    bare_s, silent_s, with_s = medians_s([(command, scratch) for command in (preview, *packs)], runs=2)
    asked = f"preview of {RESOURCES} resources with a pack that judges nothing"
    yield Line(asked, silent_s, "s", "without a pack", bare_s)
    yield Line("the same with all policies, beside that", with_s - silent_s, "s", limit=LIMIT_S)
    # Apart from the engine and the start of Python: what the policies themselves take.
    document = json.loads(run((*preview, "--json", "--show-sames"), scratch))
    using = config(json.loads((ROOT / "policy" / "dev.json").read_text()))
    started = time.perf_counter()
    found = findings(from_preview(document), using)
    took_s = time.perf_counter() - started
    yield Line(f"policies over {RESOURCES} resources, {len(found)} findings", took_s, "s", limit=0.1)
