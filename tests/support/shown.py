"""What README and the guide show together: environments and job files, as their fences have them, in pairs.

A block of YAML is a job, an environment, or a part of one. A part is put over what the page showed before it, or, where
that is nothing, over README's environment (docs/gke.md's for Google Cloud). An environment goes with the jobs that
follow it on its page, else with the job before it, else with README's; a page without an environment shows jobs for
those of `LENDERS`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from jobs.model.job import Job
from stacks.environment.aws.config import Aws
from stacks.environment.config import Environment
from stacks.environment.gcp.config import Gcp
from tests.support.pages import ROOT, Block, blocks, pages
from tests.support.project import KEY

Values = dict[str, Any]
README = ROOT / "README.md"
GKE = ROOT / "docs" / "gke.md"
LENDERS = (README, GKE, ROOT / "docs" / "google-jobs.md")
"""Pages whose environments serve the jobs of pages that show none."""
PROJECT = "ml-dev-4821"
"""The reader's own, for the `my-project` of the pages, which is refused as it stands."""
LEFT_OUT = {"sha256": "0" * 64}
"""What a page writes as `...`, by key; of any other key there is what was shown before."""


@dataclass(frozen=True)
class Pair:
    """An environment and a job of it; the job's own block is what it is known by."""

    at: Block
    environment: Values
    job: Values
    named: frozenset[str]
    """Targets to which a command of the page sends it."""

    def __str__(self) -> str:
        return str(self.at)


def kind_of(block: Block) -> str:
    """`job`, `environment`, `workflow`, or `unknown`."""
    values = _read(block)
    if not isinstance(values, dict):
        return "unknown"
    keys = set(values)
    if "jobs" in keys and True in keys:  # YAML 1.1 reads `on` so
        return "workflow"
    if keys <= set(Job.model_fields):
        return "job"
    return "environment" if keys <= {"config", KEY} or _way(values) is not None else "unknown"


def shown() -> list[Block]:
    """Every block of YAML of README and the guide."""
    return [block for page in pages() for block in blocks(page) if block.language == "yaml"]


def pairs() -> list[Pair]:
    """Every environment of the pages with every job that belongs to it, and every job with an environment."""
    found: list[Pair] = []
    for page in dict.fromkeys(block.page for block in shown()):
        steps = [(kind_of(block), block) for block in shown() if block.page == page]
        if any(kind == "environment" for kind, _ in steps):
            found += _of_page(steps)
        else:
            found += [pair for kind, block in steps if kind == "job" for pair in _lent(block)]
    return found


def lent() -> dict[str, Values]:
    """README's environment and the others that pages rely on, by page."""
    return {page.name: _last(page) for page in LENDERS}


def _of_page(steps: list[tuple[str, Block]]) -> Iterator[Pair]:
    environment: Values = {}
    job: Values | None = None
    for index, (kind, block) in enumerate(steps):
        if kind == "job":
            job = _job(block, job)
            if environment:
                yield Pair(block, environment, job, _named(block))
        elif kind == "environment":
            environment = _environment(block, environment)
            if [kind for kind, _ in steps[index + 1 : index + 2]] != ["job"]:
                yield Pair(block, environment, job or README_JOB, _named(block))


def _lent(block: Block) -> Iterator[Pair]:
    for page in LENDERS:
        yield Pair(block, _last(page), _job(block, None), _named(block))


def _last(page: Any) -> Values:
    environment: Values = {}
    for block in blocks(page):
        if block.language == "yaml" and kind_of(block) == "environment":
            environment = _environment(block, environment)
    return environment


def _environment(block: Block, before: Values) -> Values:
    """A block's environment, whole."""
    values = _read(block)
    values = values.get("config", values)
    values = values.get(KEY, values)
    for key in reversed(_way(values) or ()):
        values = {key: values}
    if "project" in values.get("gcp", {}):
        before = {}
    elif not before.keys() & values.keys() & {"aws", "gcp"} and block.page not in LENDERS:
        before = _last(README if "aws" in values else GKE)
    return _over({"owner": "ml-platform"} | before, values)


def _way(values: Values) -> tuple[str, ...] | None:
    """Where in an environment the keys of a block belong; None: nowhere."""
    for way, model in (((), Environment), (("aws",), Aws), (("gcp",), Gcp)):
        if values.keys() <= model.model_fields.keys():
            return way
    return None


def _read(block: Block) -> Any:
    return yaml.load(block.text.replace("my-project", PROJECT), yaml.CSafeLoader)  # ten times as fast


def _job(block: Block, before: Values | None) -> Values:
    own = _read(block)
    return own if "name" in own else _over(before or README_JOB, own)


def _named(block: Block) -> frozenset[str]:
    text = block.page.read_text() if "name:" in block.text or kind_of(block) != "job" else ""
    return frozenset(re.findall(r"submit (?!examples/)\S+\.yaml --to ([a-z0-9-]+)", text)) - {"local"}


def _over(below: Any, above: Any, key: str = "") -> Any:
    """Both, `above` first; what has another `kind` is taken whole."""
    if above == "...":
        return LEFT_OUT.get(key, below)
    if isinstance(above, list):
        return [_over(None, each) for each in above]
    if not isinstance(above, dict):
        return above
    if not isinstance(below, dict) or above.get("kind", below.get("kind")) != below.get("kind"):
        below = {}
    return {**below, **{name: _over(below.get(name), value, name) for name, value in above.items()}}


README_JOB: Values = next(
    _read(block) for block in blocks(README) if block.language == "yaml" and kind_of(block) == "job"
)
"""`job.yaml` of every page that shows no other."""
