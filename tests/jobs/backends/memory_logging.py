"""Cloud Logging in memory."""

from collections.abc import Mapping
from typing import Any, ClassVar

from accel.clouds.google.api import Google
from accel.clouds.timeouts import Timing
from sandbox.google.log_filter import nanoseconds, parse_filter
from sandbox.google.world import Logs


class MemoryLogging(Google):
    """Of one project; `rounds` are shown one after the other, one at each query."""

    PROJECT_ID: ClassVar[str]
    TIMING: ClassVar[Timing]

    def __init__(self, *rounds: list[dict[str, Any]], page: int = 1000) -> None:
        super().__init__(self.TIMING)
        self.kept, self.rounds, self.page = Logs(), list(rounds), page
        self.filters: list[str] = []
        self.shown = 0
        self.failing: list[Exception | None] = []

    def post(
        self, api: str, path: str, body: Mapping[str, Any], *, repeat: bool = False, **query: object
    ) -> dict[str, Any]:
        assert (api, path, repeat) == ("logging", "v2/entries:list", True)
        assert body["resourceNames"] == [f"projects/{self.PROJECT_ID}"]
        if self.failing and (failure := self.failing.pop(0)):
            raise failure
        if "pageToken" not in body:
            self.filters.append(body["filter"])
            for each in self.rounds.pop(0) if self.rounds else []:
                self.kept.add({**each, "__ns": nanoseconds(each["timestamp"])}, 0)
        size = min(body["pageSize"], self.page)
        newest_first = body["orderBy"].endswith("desc")
        found, token = self.kept.page(parse_filter(body["filter"]), newest_first, size, body.get("pageToken", ""))
        self.shown += len(found)
        return {"entries": found, **({"nextPageToken": token} if token else {})}
