"""The engine in memory with a state: several runs of one program over it, in which creates fail as they do in the
real engine, and calls are answered in an order that is drawn.

What a program sees of a failed create, from pkg/resource/deploy of Pulumi 3.250 (step_executor.go, source_eval.go):
without --continue-on-error its call and every later one end as UNAVAILABLE, but for a few that were on their way; with
it the call is answered with FAIL and no outputs, what depends on it with SKIP, and the program runs to its end.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from unittest.mock import patch

import grpc
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime import resource as runtime
from pulumi.runtime import rpc, stack
from pulumi.runtime.mocks import MockMonitor, MockResourceArgs, MockSettings
from pulumi.runtime.proto import engine_pb2, resource_pb2, source_pb2
from pulumi.runtime.settings import SETTINGS, configure, set_root_resource
from pulumi.runtime.stack import wait_for_rpcs

from . import gcp, memory
from .drawn_loop import Loop

ENDED = "Resource monitor has terminated, shutting down"
"""What the SDK says of a call that the engine does not answer any more (pulumi/runtime/settings.py)."""
STACK = "pulumi:pulumi:Stack"
Op = Literal["same", "create", "update", "delete"]


@dataclass(frozen=True)
class Faults:
    """What goes wrong in a run."""

    creates: Mapping[int, bool] = field(default_factory=dict[int, bool])
    """Which creates fail, by their place among all of the run; true: half made, so that the state has it."""
    types: frozenset[str] = frozenset()
    """All creates of these types fail."""
    seed: int = 0
    """Of the order in which calls are answered."""
    goes_on: bool = False
    """--continue-on-error."""


@dataclass(frozen=True)
class Kept:
    """A resource in the state."""

    inputs: bytes
    id: str
    outputs: bytes
    half: bool = False


@dataclass
class Run:
    """What one run did."""

    ops: dict[str, Op]
    """By URN."""
    failed: list[str]
    """URNs of what could not be made."""
    raised: BaseException | None
    """What the program ended with."""
    others: list[BaseException]
    """What tasks raised beside it."""
    waiting: list[str]
    """Tasks that never ended."""
    logged: list[str]
    """Errors that the program logged."""
    outputs: dict[str, Any] | None
    """Of the stack, as the program registered them; None: it did not come to that."""

    def changes(self) -> dict[str, Op]:
        return {urn: op for urn, op in self.ops.items() if op != "same"}


class Unavailable(grpc.RpcError):
    """The engine is gone."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


class _Log:
    """Takes what the program logs."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def Log(self, request: Any) -> None:  # noqa: N802 - the engine's name
        if request.severity == engine_pb2.ERROR:
            self.errors.append(request.message)


class _Monitor(MockMonitor):
    def __init__(self, engine: "Engine", faults: Faults, preview: bool) -> None:
        super().__init__(engine.cloud)
        self._engine, self._faults, self._preview = engine, faults, preview
        self._dice = random.Random(faults.seed)
        self._left: int | None = None
        """Calls that are still answered, once a create has failed."""
        self._creates = 0
        self._skipped: set[str] = set()
        self.ops: dict[str, Op] = {}
        self.failed: list[str] = []
        self.outputs: dict[str, Any] | None = None

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        self._answered()
        urn = self.make_urn(request.parent, request.type, request.name)
        assert urn not in self.ops, f"{urn} is registered twice"
        if request.type == STACK:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        if self._needs(request) & self._skipped:
            self._skipped.add(urn)
            return resource_pb2.RegisterResourceResponse(urn=urn, result=resource_pb2.Result.SKIP)
        state, inputs = self._engine.state, request.object.SerializeToString(deterministic=True)
        old = state.get(urn)
        if old and old.inputs == inputs and not old.half:
            self.ops[urn] = "same"
            return self._response(urn, old, request.custom)
        self.ops[urn] = "update" if old else "create"
        if self._preview:
            return resource_pb2.RegisterResourceResponse(urn=urn, object=request.object)
        made = Kept(inputs, *self._engine.made(request)) if request.custom else Kept(inputs, "", b"")
        if request.custom and not old:
            self._creates += 1
            half = self._faults.creates.get(self._creates - 1)
            if half is not None or request.type in self._faults.types:
                return self._fail(urn, Kept(made.inputs, made.id, made.outputs, half=True) if half else None)
        state[urn] = made
        return self._response(urn, made, request.custom)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        self._answered()
        return super().ReadResource(request)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        self._answered()
        if f"::{STACK}::" in request.urn:
            self.outputs = rpc.deserialize_properties(request.outputs, keep_unknowns=True)
        elif request.urn in self._skipped:
            self._left = 0  # "cannot complete a resource whose registration isn't pending", and the run is over
            raise Unavailable
        elif not self._preview:
            kept = self._engine.state[request.urn]
            outputs = request.outputs.SerializeToString(deterministic=True)
            self._engine.state[request.urn] = Kept(kept.inputs, kept.id, outputs)
        return empty_pb2.Empty()

    def _answered(self) -> None:
        """Raises Unavailable once the engine has stopped."""
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise Unavailable

    def _fail(self, urn: str, half: Kept | None) -> Any:
        self.failed.append(urn)
        if half:
            self._engine.state[urn] = half
        if self._faults.goes_on:
            self._skipped.add(urn)
            return resource_pb2.RegisterResourceResponse(
                urn=urn,
                id=half.id if half else "",
                object=Struct.FromString(half.outputs) if half else Struct(),
                result=resource_pb2.Result.FAIL,
            )
        self._left = self._dice.randrange(4)
        raise Unavailable

    def _needs(self, request: Any) -> set[str]:
        """As GetAllDependencies in sdk/go/common/resource/resource_state.go."""
        named = {urn for each in request.propertyDependencies.values() for urn in each.urns}
        provider = request.provider.rpartition("::")[0]
        return {request.parent, provider, request.deletedWith, *request.dependencies, *named}

    @staticmethod
    def _response(urn: str, kept: Kept, custom: bool) -> Any:
        # The outputs of a component stay with the engine: the program has its own.
        outputs = Struct.FromString(kept.outputs) if custom else Struct()
        return resource_pb2.RegisterResourceResponse(urn=urn, id=kept.id, object=outputs)


class Cloud(memory._Provider):  # pyright: ignore[reportPrivateUsage]
    """What resources become, and what other stacks promise."""

    def __init__(self, stacks: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(preview=False)
        self._stacks = {**memory.STACKS, **stacks}

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            return args.name, {"name": args.name, "outputs": self._stacks[args.name]}
        made, state = super().new_resource(args)
        return made, {**state, **gcp.computed(args)}

    def call(self, args: Any) -> dict[str, Any]:
        if args.token == "pulumi:pulumi:readStackOutputs":
            return {"name": args.args["name"], "outputs": self._stacks[args.args["name"]]}
        return super().call(args)


class Engine:
    """A stack: its state, and runs over it."""

    def __init__(self, stacks: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.state: dict[str, Kept] = {}
        self.outputs: dict[str, Any] = {}
        self.cloud = Cloud(stacks or {})

    def made(self, request: Any) -> tuple[str, bytes]:
        """Id and outputs of a resource: what the cloud fills in, its inputs, what the cloud makes up."""
        args = MockResourceArgs(typ=request.type, name=request.name, inputs={})
        made, filled_in = self.cloud.new_resource(args)
        made_up = {**memory.COMPUTED.get(request.type, {}), **gcp.computed(args)}
        outputs = Struct()
        outputs.update(filled_in)
        outputs.MergeFrom(request.object)
        outputs.update(made_up)
        return made or "", outputs.SerializeToString(deterministic=True)

    def up(self, program: Callable[[], Any], faults: Faults | None = None) -> Run:
        """`pulumi up`. What is in the state and was not registered is deleted, unless something failed."""
        monitor, run = self._run(program, faults or Faults(), preview=False)
        if not monitor.failed and run.raised is None:
            for urn in [urn for urn in self.state if urn not in monitor.ops]:
                run.ops[urn] = "delete"
                del self.state[urn]
            self.outputs = {}
        self.outputs |= run.outputs or {}
        return run

    def preview(self, program: Callable[[], Any]) -> Run:
        """`pulumi preview`: of what is in the state all outputs are known, and of nothing else."""
        monitor, run = self._run(program, Faults(), preview=True)
        run.ops.update({urn: "delete" for urn in self.state if urn not in monitor.ops})
        return run

    def _run(self, program: Callable[[], Any], faults: Faults, *, preview: bool) -> tuple[_Monitor, Run]:
        monitor, log = _Monitor(self, faults, preview), _Log()
        loop = Loop(random.Random(~faults.seed))
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(lambda *_: None)  # what tasks raise is read off them
        configure(MockSettings(monitor=monitor, engine=log, project="accel", stack="dev", dry_run=preview))
        SETTINGS.outputs.clear()  # pyright: ignore[reportAttributeAccessIssue]
        set_root_resource(None)  # pyright: ignore[reportArgumentType]
        SETTINGS.callbacks = memory._Callbacks()  # pyright: ignore

        def evaluate() -> None:
            program()

        async def wait() -> None:
            await loop.quiet()  # the SDK waits for every output anew whenever one of them is done
            await wait_for_rpcs()

        # Where in the program a resource is made is of interest to nobody here, and would be half of the time.
        without = patch.object(runtime, "_get_stack_trace", source_pb2.StackTrace)
        with without, patch.object(stack, "wait_for_rpcs", wait):
            whole = loop.create_task(stack.run_in_stack(evaluate))
            loop.run_until_complete(asyncio.wait([whole]))
            loop.run_until_complete(loop.quiet())
        raised = whole.exception()
        others = [task for task in loop.tasks if task.done() and not task.cancelled() and task is not whole]
        waiting = [task for task in loop.tasks if not task.done()]
        run = Run(
            monitor.ops,
            monitor.failed,
            raised,
            [error for task in others if (error := task.exception())],
            [str(task.get_coro()) for task in waiting],
            log.errors,
            monitor.outputs,
        )
        for task in waiting:
            task.cancel()
        loop.run_until_complete(loop.quiet())
        loop.close()
        return monitor, run
