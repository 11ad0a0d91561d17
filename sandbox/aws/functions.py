"""Lambda functions: the deployed archive is unpacked, and its handler runs in a process with the deployed environment.

A function is called for what a topic sends to it, and by POST /sandbox-api/functions {"function": NAME, "event": {}}.
GET /sandbox-api/functions lists the calls.

Not implemented: the role's permissions, schedules and other triggers, the retries of a failed call, timeout, memory,
layers.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from dataclasses import asdict, dataclass
from typing import Any

from ..keys import aws, key

_BOOT = """\
import importlib, json, sys
told = json.load(sys.stdin)
sys.path.insert(0, told["folder"])
module, _, name = told["handler"].rpartition(".")
print(json.dumps(getattr(importlib.import_module(module), name)(told["event"], None)))
"""
_GIVEN_S = 300
CONCURRENCY = 10
"""Concurrent executions of a newly opened account, all of which stay unreserved; of another, 100 of 1,000 do. Sources:
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html,
https://github.com/aws-samples/one-observability-demo/issues/278"""
_TOO_FEW = (
    "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its "
    f"minimum value of [{CONCURRENCY}]."
)


@dataclass
class Ran:
    """One call: what the handler returned, or how it failed; what it logged."""

    function: str
    event: Any
    result: Any = None
    failed: bool = False
    log: str = ""


class Functions:
    def __init__(self, world: Any) -> None:
        self._world = world
        self._ran: list[Ran] = []
        self._threads: list[threading.Thread] = []

    def install(self) -> None:
        """Patch moto: topics call functions here, not in containers, and no function can reserve concurrency."""
        from moto.awslambda.exceptions import InvalidParameterValueException
        from moto.awslambda.models import LambdaBackend
        from moto.sns.models import Subscription

        publish, reserve = Subscription.publish, LambdaBackend.put_function_concurrency

        def reserved(backend: Any, function_name: str, reserved_concurrency: str) -> str:
            if int(reserved_concurrency) > 0:
                raise InvalidParameterValueException(_TOO_FEW)
            return reserve(backend, function_name, reserved_concurrency)

        def called(subscription: Any, message: Any, message_id: str, *args: Any, **named: Any) -> None:
            if subscription.protocol != "lambda":
                publish(subscription, message, message_id, *args, **named)
                return
            # https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html
            told = {"MessageId": message_id, "TopicArn": subscription.topic.arn, "Message": message}
            event = {"Records": [{"EventSource": "aws:sns", "EventVersion": "1.0", "Sns": told}]}
            # In a thread: a function calls the APIs, and whoever publishes holds their lock.
            thread = threading.Thread(target=self.call, args=(subscription.endpoint, event), daemon=True)
            self._threads.append(thread)
            thread.start()

        def checked(backend: Any, spec: dict[str, Any]) -> Any:
            _check_environment(spec)
            return create(backend, spec)

        def changed(backend: Any, function_name: str, qualifier: str, body: dict[str, Any]) -> Any:
            _check_environment(body)
            return update(backend, function_name, qualifier, body)

        create, update = LambdaBackend.create_function, LambdaBackend.update_function_configuration
        LambdaBackend.create_function, LambdaBackend.update_function_configuration = checked, changed
        Subscription.publish = called
        LambdaBackend.put_function_concurrency = reserved

    def call(self, name: str, event: Any) -> dict[str, Any]:
        """Call a function by its name or ARN, and wait for it. Raises ValueError for an unknown one."""
        from moto.awslambda.models import lambda_backends

        function: Any = None
        for regions in lambda_backends.values():
            for backend in regions.values():
                function = function or next(
                    (each for each in backend.list_functions() if name in (each.function_name, each.function_arn)), None
                )
        if function is None:
            raise ValueError(f"there is no function {name!r}")
        with tempfile.TemporaryDirectory(prefix="function-") as folder:
            zipfile.ZipFile(io.BytesIO(function.code_bytes)).extractall(folder)
            done = subprocess.run(
                [sys.executable, "-c", _BOOT],
                input=json.dumps({"folder": folder, "handler": function.handler, "event": event}),
                cwd=folder,
                env=self._environment(function),
                capture_output=True,
                text=True,
                timeout=_GIVEN_S,
                check=False,
            )
        ran = Ran(function.function_name, event, failed=done.returncode != 0, log=done.stderr)
        ran.result = json.loads(done.stdout.splitlines()[-1]) if not ran.failed else None
        self._ran.append(ran)
        return asdict(ran)

    def wait(self) -> list[dict[str, Any]]:
        while self._threads:
            self._threads.pop().join()
        return [asdict(each) for each in self._ran]

    def _environment(self, function: Any) -> dict[str, str]:
        region = {"AWS_REGION": function.region, "AWS_DEFAULT_REGION": function.region}
        path = {"PATH": os.environ.get("PATH", ""), "AWS_LAMBDA_FUNCTION_NAME": function.function_name}
        reach = {**aws(key(self._world.home)), "AWS_ENDPOINT_URL": self._world.endpoint}
        return {**reach, **region, **path, **function.environment_vars}


def _check_environment(spec: dict[str, Any]) -> None:
    """Raise Lambda's error for more than 4 KB of variables. Source:
    https://docs.aws.amazon.com/lambda/latest/dg/troubleshooting-deployment.html"""
    from moto.awslambda.exceptions import InvalidParameterValueException

    text = json.dumps((spec.get("Environment") or {}).get("Variables") or {}, separators=(",", ":"))
    if len(text.encode()) > 4096:
        raise InvalidParameterValueException(
            "Lambda was unable to configure your environment variables because the environment variables you have "
            f"provided exceeded the 4KB limit. String measured: {text}"
        )
