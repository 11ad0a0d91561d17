"""Translation between HTTP requests and operations. The service's own model checks the input."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs

from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from .. import account
from . import definitions, environments, jobs, policies, queues
from .state import Batch, BatchError, Document, require

# Any: botocore's annotations describe its cached properties wrongly.
SERVICE: Any = ServiceModel(Loader().load_service_model("batch", "service-2"), "batch")
ROUTES = {
    (model.http["method"], model.http["requestUri"]): name
    for name in SERVICE.operation_names
    for model in (SERVICE.operation_model(name),)
}
# "The values aren't case sensitive", EvaluateOnExit.action of the model.
ANY_CASE = ("RetryAction",)
Handler = Callable[[Batch, Document], Document]


def _tags(batch: Batch, request: Document) -> Document:
    return {"tags": batch.list_tags_for_resource(request["resourceArn"])}


def _tag(batch: Batch, request: Document) -> Document:
    batch.tag_resource(request["resourceArn"], request["tags"])
    return {}


def _untag(batch: Batch, request: Document) -> Document:
    batch.untag_resource(request["resourceArn"], request["tagKeys"])
    return {}


OPERATIONS: dict[str, Handler] = {
    **environments.OPERATIONS,
    **queues.OPERATIONS,
    **definitions.OPERATIONS,
    **jobs.OPERATIONS,
    **policies.OPERATIONS,
    "ListTagsForResource": _tags,
    "TagResource": _tag,
    "UntagResource": _untag,
}


def _enum_faults(value: Any, shape: Any, path: str) -> Iterator[str]:
    """Yield values outside an enum, which ParamValidator leaves to the service."""
    match shape.type_name:
        case "structure":
            for name, member in value.items():
                yield from _enum_faults(member, shape.members[name], f"{path}.{name}".lstrip("."))
        case "list":
            for at, member in enumerate(value):
                yield from _enum_faults(member, shape.member, f"{path}[{at}]")
        case "string" if shape.enum:
            if (value.upper() if shape.name in ANY_CASE else value) not in shape.enum:
                yield f"{path} {value!r} must be one of {', '.join(shape.enum)}"
        case _:
            return


def _check(name: str, request: Document) -> None:
    shape = SERVICE.operation_model(name).input_shape
    if shape is None:
        return
    report = ParamValidator().validate(request, shape)
    require(not report.has_errors(), f"Error executing request, Exception : {report.generate_report()}")
    faults = list(_enum_faults(request, shape, ""))
    require(not faults, f"Error executing request, Exception : {'; '.join(faults)}")


def operation(method: str, path: str) -> str:
    uri = "/v1/tags/{resourceArn}" if path.startswith("/v1/tags/") else path
    return ROUTES.get((method, uri), "")


def answer(batch: Batch, method: str, path: str, query: str, body: bytes) -> tuple[int, Document]:
    name = operation(method, path)
    try:
        require(name in OPERATIONS, f"the sandbox's Batch has no {name or path}")
        request = json.loads(body or b"{}")
        require(isinstance(request, dict), "the body must be a JSON object")
        if path.startswith("/v1/tags/"):
            request["resourceArn"] = path.removeprefix("/v1/tags/")
            request |= {key: values for key, values in parse_qs(query).items() if key == "tagKeys"}
        _check(name, request)
        if above := account.refusal("batch", name, batch, request, batch.world.quotas.granted):
            raise BatchError(above.text)
        return 200, OPERATIONS[name](batch, request)
    except (BatchError, json.JSONDecodeError) as refusal:
        return 400, {"__type": "ClientException", "message": str(refusal)}
