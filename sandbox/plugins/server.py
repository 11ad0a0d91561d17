"""gRPC side of a stand-in: Pulumi's provider protocol on one side, plain dictionaries on the other."""

import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2  # pyright: ignore[reportMissingImports] - not sandbox.google
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from .. import peers
from .mapping import plain

State = dict[str, Any]
_DIFF = provider_pb2.PropertyDiff.Kind
_log = logging.getLogger("sandbox.plugins")


class ProviderError(Exception):
    """Refusal of the cloud or its client. The message is what the user reads."""


def one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", "; ", text.strip())


class PartialCreation(Exception):
    """Resource that exists, but did not become what was requested: the engine keeps it, tainted."""

    def __init__(self, id: str, outputs: State, inputs: State, reason: str) -> None:
        super().__init__(reason)
        self.id, self.outputs, self.inputs = id, outputs, inputs


class Plugin(Protocol):
    """One provider. `config` is that of the provider instance through which the engine calls."""

    version: str

    def configured(self, args: State) -> State: ...
    def check_config(self, news: State) -> list[tuple[str, str]]: ...
    def check(self, type: str, name: str, olds: State, news: State, config: State, seed: str) -> State: ...
    def diff(self, type: str, olds: State, news: State) -> tuple[dict[str, str], set[str], bool]: ...
    def create(self, type: str, inputs: State, preview: bool) -> tuple[str, State]: ...
    def read(self, type: str, id: str, inputs: State, outputs: State, config: State) -> Any: ...
    def update(self, type: str, id: str, outputs: State, olds: State, news: State, preview: bool) -> State: ...
    def delete(self, type: str, id: str, outputs: State) -> None: ...
    def invoke(self, token: str, args: State, config: State) -> State: ...


def _read(struct: struct_pb2.Struct) -> State:
    return plain(json_format.MessageToDict(struct))


def _struct(values: State) -> struct_pb2.Struct:
    return json_format.ParseDict(values, struct_pb2.Struct())


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Servicer of a plugin. `make` returns the plugin of one provider instance. `moved` returns which of its settings,
    if changed, replace all resources of that instance."""

    def __init__(self, make: Callable[[], Plugin], moved: Callable[[State, State], set[str]] | None = None) -> None:
        self._make, self._moved = make, moved
        # The engine dials once for each provider instance, and its requests carry no other name of the instance.
        self._plugins: dict[str, Plugin] = {}
        self._configs: dict[str, State] = {}

    def _plugin(self, context: grpc.ServicerContext) -> Plugin:
        if context.peer() not in self._plugins:
            self._plugins[context.peer()] = self._make()
        return self._plugins[context.peer()]

    def _config(self, context: grpc.ServicerContext) -> State:
        if context.peer() not in self._configs:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "this connection was never configured")
        return self._configs[context.peer()]

    def Attach(self, request, context):
        return empty_pb2.Empty()

    def Handshake(self, request, context):
        return provider_pb2.ProviderHandshakeResponse()

    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version=self._plugin(context).version)

    def Cancel(self, request, context):
        return empty_pb2.Empty()

    def CheckConfig(self, request, context):
        failures = self._plugin(context).check_config(_read(request.news))
        return provider_pb2.CheckResponse(
            inputs=request.news,
            failures=[provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in failures],
        )

    def DiffConfig(self, request, context):
        olds, news = _read(request.olds), _read(request.news)
        response = provider_pb2.DiffResponse
        # Without `moved` nothing is replaced: `region` is an input of each resource (pulumi-aws, provider/region.go).
        return response(
            changes=response.DIFF_NONE if olds == news else response.DIFF_SOME,
            replaces=sorted(self._moved(olds, news)) if self._moved else [],
        )

    def Configure(self, request, context):
        self._configs[context.peer()] = self._plugin(context).configured(_read(request.args))
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Check(self, request, context):
        config, seed = self._config(context), request.randomSeed.hex()
        name = request.name or request.urn.rpartition("::")[2]
        olds, news = _read(request.olds), _read(request.news)
        inputs = self._plugin(context).check(_type(request), name, olds, news, config, seed)
        return provider_pb2.CheckResponse(inputs=_struct(inputs))

    def Diff(self, request, context):
        olds = _read(request.old_inputs) or _read(request.olds)
        news = _read(request.news)
        changed, forcing, first = self._plugin(context).diff(_type(request), olds, news)
        response = provider_pb2.DiffResponse
        return response(
            changes=response.DIFF_SOME if changed else response.DIFF_NONE,
            diffs=sorted({path.partition(".")[0].partition("[")[0] for path in changed}),
            replaces=sorted({path.partition(".")[0].partition("[")[0] for path in forcing}),
            deleteBeforeReplace=first,
            hasDetailedDiff=True,
            detailedDiff={
                path: provider_pb2.PropertyDiff(
                    kind=_DIFF.Value(f"{kind}_REPLACE" if path in forcing else kind), inputDiff=True
                )
                for path, kind in changed.items()
            },
        )

    def Create(self, request, context):
        inputs = _read(request.properties)
        id, outputs = self._plugin(context).create(_type(request), inputs, request.preview)
        return provider_pb2.CreateResponse(id=id, properties=_struct(outputs))

    def Read(self, request, context):
        inputs, outputs = _read(request.inputs), _read(request.properties)
        seen = self._plugin(context).read(_type(request), request.id, inputs, outputs, self._config(context))
        if seen is None:
            return provider_pb2.ReadResponse()
        inputs, outputs = seen
        return provider_pb2.ReadResponse(id=request.id, inputs=_struct(inputs), properties=_struct(outputs))

    def Update(self, request, context):
        olds, news, outputs = _read(request.old_inputs), _read(request.news), _read(request.olds)
        made = self._plugin(context).update(_type(request), request.id, outputs, olds, news, request.preview)
        return provider_pb2.UpdateResponse(properties=_struct(made))

    def Delete(self, request, context):
        self._plugin(context).delete(_type(request), request.id, _read(request.properties))
        return empty_pb2.Empty()

    def Invoke(self, request, context):
        answer = self._plugin(context).invoke(request.tok, _read(request.args), self._config(context))
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(_struct(answer))
        return response


def _type(request: Any) -> str:
    return request.type or request.urn.split("::")[2].rpartition("$")[2]


class Boundary(grpc.ServerInterceptor):
    """Interceptor that serves this user alone, since the engine sends no secret. It turns an exception of a plugin into
    a status of one line; an unforeseen one names its type."""

    port = 0

    def intercept_service(self, continuation, handler_call_details):
        handler = continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        method = handler_call_details.method.rpartition("/")[2]
        return grpc.unary_unary_rpc_method_handler(
            _guarded(method, handler.unary_unary, self),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def _guarded(method: str, act: Callable[[Any, grpc.ServicerContext], Any], boundary: Boundary) -> Callable[..., Any]:
    def run(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            if not peers.ours(int(context.peer().rpartition(":")[2]), boundary.port):
                raise ProviderError("the sandbox serves its own user alone")
            return act(request, context)
        except PartialCreation as error:
            detail = provider_pb2.ErrorResourceInitFailed(
                id=error.id,
                properties=_struct(error.outputs),
                inputs=_struct(error.inputs),
                reasons=[str(error)],
            )
            status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
            status.details.add().Pack(detail)
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except ProviderError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:
            if context.code() is None:  # else `abort` itself raised, and has set the status
                _log.exception("%s failed", method)
                context.abort(grpc.StatusCode.INTERNAL, f"sandbox: {type(error).__name__} in {method}: {error}")
            raise

    return run


_THREADS = 64  # a create that waits for its resource holds one


def serve(servicer: Servicer) -> tuple[grpc.Server, int]:
    boundary = Boundary()
    server = grpc.server(
        ThreadPoolExecutor(_THREADS),
        interceptors=[boundary],
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    boundary.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, boundary.port
