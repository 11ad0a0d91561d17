"""Looking on Google Cloud for what a killed run may have made: by the rows of google.yaml."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from string import Template
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import part
from accel.diagnostics.errors import NotFound

from .lookup import GONE, Candidate, MadeAgain, NotSought, moment, proof
from .pending import Json, Pending, setting


@dataclass(frozen=True)
class Row:
    """A row of google.yaml; its head says what each field is."""

    api: str = ""
    under: str = ""
    path: str = ""
    id: str = ""
    state: str = "state"
    labels: str = ""
    found: str = ""
    at: str = ""
    """The property that begins the host, where the API has one a region."""
    part: bool = False
    over: bool = False
    again: bool = False

    @property
    def within(self) -> frozenset[str]:
        """The properties that the path is made of."""
        return frozenset(re.findall(r"\{(\w+)\}", self.path))


@cache
def rows() -> dict[str, Row]:
    """By Pulumi type."""
    import yaml

    table = yaml.safe_load(Path(__file__).with_name("google.yaml").read_text())
    return {token: Row(**row) for token, row in table.items()}


@dataclass(frozen=True)
class GoogleCloud:
    """Google Cloud with this shell's credentials."""

    provider: Callable[[Pending], Json]

    @cached_property
    def _google(self) -> Google:
        return Google()

    def find(self, operation: Pending) -> Sequence[Candidate]:
        """Raises NotSought, MadeAgain, and what the API raises."""
        import jmespath

        row = rows().get(operation.type)
        if row is None:
            raise NotSought(f"no row of google.yaml says how to look for {operation.type}")
        if row.again:
            raise MadeAgain
        settings, inputs = self.provider(operation), self._inputs(operation)
        api = f"{_value(inputs, row.at)}-{row.api}" if row.at else row.api
        try:
            answer = self._google.get(api, "/".join(filter(None, (row.under, _path(row.path, inputs, quoted=True)))))
        except NotFound:
            return []
        item: Any = jmespath.search(Template(row.found).safe_substitute(inputs), answer) if row.found else answer
        state = str(jmespath.search(row.state, item) or "") if isinstance(item, dict) else ""
        if item is None or state.lower() in GONE:
            return []
        seen: Json | None = (answer.get(row.labels) or {}) if row.labels else None
        why, _ = proof(operation, row.part, row.over, row.within, _labels(inputs, settings, row.labels), seen)
        made = moment(answer.get("creationTimestamp") or answer.get("createTime") or answer.get("timeCreated"))
        id = _path(row.id or row.path, inputs)
        return [Candidate(id, state, why, None if row.found else made, row.part, row.over)]

    def names(self, operation: Pending) -> Sequence[str]:
        """Those that all of its kind have, in its project and place."""
        row = rows().get(operation.type, Row())
        folder, slash, last = row.path.rpartition("/")
        if last != f"{{{operation.naming}}}" or not slash or row.at:
            raise NotSought(f"no row of google.yaml says how {operation.type} are listed")
        inputs = self._inputs(operation)
        member = "items" if row.api in ("compute", "storage") else folder.rpartition("/")[2]
        query = {"project": inputs.get("project")} if folder == "b" else {}
        path = "/".join(filter(None, (row.under, _path(folder, inputs, quoted=True))))
        return [str(each.get("name")).rpartition("/")[2] for each in self._google.pages(row.api, path, member, **query)]

    def _inputs(self, operation: Pending) -> Json:
        """With the places of its provider, and its cluster by its whole name."""
        settings = self.provider(operation)
        places = {name: settings[name] for name in ("project", "region", "zone") if name in settings}
        inputs: Json = {**places, **operation.inputs}
        cluster = str(inputs.get("cluster") or "")
        if cluster and not cluster.startswith("projects/"):
            place = f"projects/{inputs.get('project')}/locations/{inputs.get('location')}"
            inputs["cluster"] = f"{place}/clusters/{cluster}"
        return inputs


def _path(template: str, inputs: Mapping[str, Any], quoted: bool = False) -> str:
    def value(found: re.Match[str]) -> str:
        text = _value(inputs, found[1])
        return part(text) if quoted and found[1] != "cluster" else text

    return re.sub(r"\{(\w+)\}", value, template)


def _value(inputs: Mapping[str, Any], name: str) -> str:
    given = inputs.get(name)
    if not isinstance(given, str):
        raise NotSought(f"its {name} is not in the state")
    return given.rpartition("/")[2] if name in ("region", "zone", "router") else given


def _labels(inputs: Json, settings: Json, name: str) -> dict[str, str]:
    return {**setting(settings, "defaultLabels"), **(inputs.get(name) or {})} if name else {}
