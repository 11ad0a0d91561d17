"""The sandbox's Google. Run as `python -m sandbox.google --home DIR`; it writes DIR/google.json.

Requests come as URL/<host>/<path>, with the bearer token of DIR/key. Control, besides Google's APIs, with that too:
    POST   /sandbox-api/faults  {"method": "container.*.create", "code": 503, "count": 2}: faults.py;
                                {"stockout": ["a3-highgpu-8g", "us-central1-a/g2-standard-4"]}: no more of these
                                machines, there or anywhere; [] ends it.
                                {"quota": {"tpu/us-central1-a/v5litepod": 16}}: chips; {} ends it. Of Compute Engine
                                GPUs: compute/us-central1/NVIDIA_L4_GPUS, compute/global/GPUS_ALL_REGIONS. Of Vertex AI:
                                aiplatform/us-central1/custom_model_training_nvidia_l4_gpus.
                                {"log_lag_s": 2}, {"list_lag_s": 2}: after which entries that a service writes can be
                                read, and lists have what was created or changed; {"minute_s": 60}: how long a minute
                                of a quota of calls lasts, else 1.
    POST   /sandbox-api/generations {"b/BUCKET/o/NAME": "123"}: the generation that an object has.
    POST   /sandbox-api/preempt {"name": KEY}: takes a machine away, as Google does; the key of an instance, a node or a
                                queued resource below its API: projects/PROJECT/zones/ZONE/instances/NAME; a custom
                                job of Vertex AI, which starts anew, or KEY/replicas/workerpool1-0, a worker that does.
    POST   /sandbox-api/batch   {"agent": false}, {"end": TASK, "exitCode": 50002} and others: batch.py.
    GET    /sandbox-api/faults  the plans, how often each fired, and what is out of stock; DELETE ends them.
    POST   /sandbox-api/spend   {"budget": NAME, "actual": 950}: what the budget's topic is told; billing.py.
    GET    /sandbox-api/functions  the calls of Cloud Run functions; functions.py.
    POST   /sandbox-api/sizes   {"projects/P/zones/Z/instanceGroupManagers/N": 2}: what the sandbox's autoscaler has
                                made of groups of node pools.
    POST   /sandbox-api/permissions  {"permissions": [...]}: what the user may do; DELETE ends it, GET tells what the
                                user's calls have needed since: permissions.py.
    GET    /computeMetadata/v1/...  the metadata server of a function.
    POST   /oauth2.googleapis.com/token  a token, for a grant that has the key: granted().
    GET    /openidconnect.googleapis.com/v1/userinfo  whose token it is.
    GET    /cloudquotas.googleapis.com/v1/...  what the project may use: quotas.py.
    GET    /v4/connect  the TCP relay of Identity-Aware Proxy: guests/relay.py.
"""

import argparse
import base64
import json
import os
import signal
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .. import keys, loopback, peers
from ..starting import announce, without_collector
from . import EMAIL, UNIQUE_ID, USER, billing, container, functions, permissions, quotas, scope_token, services
from .api import PREEMPT, Methods, answer, authorize
from .batch import api as batch
from .errors import ApiError
from .faults import Plan
from .guests import relay
from .world import Json, World

_PACES = {"log_lag_s": 0.0, "list_lag_s": 0.0, "minute_s": 1.0}


def control(world: World, http: str, body: bytes) -> Any:
    """Raise ValueError or TypeError for an invalid plan."""
    request = json.loads(body or b"{}")
    with world.lock:
        if http == "POST" and "stockout" in request:
            world.stockouts = set(request["stockout"])
        elif http == "POST" and "quota" in request:
            world.quota = {name: int(limit) for name, limit in request["quota"].items()}
        elif http == "POST" and request.keys() <= _PACES.keys() and request:
            for name, value in request.items():
                setattr(world, name, float(value))
        elif http == "POST":
            world.plans.append(Plan(**request))
        elif http == "DELETE":
            world.plans.clear()
            world.stockouts.clear()
            world.quota.clear()
            world.live.pop("batch", None)
            for name, value in _PACES.items():
                setattr(world, name, value)
        told = {"stockout": sorted(world.stockouts), "quota": world.quota}
        told |= {name: getattr(world, name) for name in _PACES}
        return {"plans": [plan.as_json() for plan in world.plans], **told}


def preempt(world: World, body: bytes) -> Any:
    """Preempt a machine, or a Batch job where no resource has the name. Raise ApiError for an unknown name."""
    name = json.loads(body)["name"]
    with world.lock:
        item = name.partition("/replicas/")[0]  # of a custom job: one of its workers
        api = next((api for api in world.preempt if f"{api}/{item}" in world.items), "batch")
        if api not in world.preempt:
            raise ApiError(404, f"no machine {name} that can be taken away")
        world.preempt[api](world, name)
    return {"name": name}


def regenerate(world: World, generations: Mapping[str, str]) -> Any:
    """Set the generations of stored objects, as if they were written again. Raises KeyError for an unknown object."""
    with world.lock:
        for name, generation in generations.items():
            world.items[f"storage/{name}"]["generation"] = generation
    return {}


def grant_token(world: World, body: bytes) -> tuple[int, Json]:
    """Grant a token to a refresh token, or to a service account whose private key's id is the sandbox's key; an
    account's token has the scopes that its assertion names. Source:
    https://www.rfc-editor.org/rfc/rfc6749#section-5.2"""
    given = dict(parse_qsl(body.decode()))
    head, claims, _ = (f"{given.get('assertion', '')}..").split(".", 2)
    about, claimed = (json.loads(base64.urlsafe_b64decode(f"{part}===") or b"{}") for part in (head, claims))
    if world.token not in (given.get("refresh_token"), about.get("kid")):
        return 400, {"error": "invalid_grant", "error_description": "Bad Request"}
    token = scope_token(world.token, claimed.get("scope", EMAIL))
    return 200, {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}


def userinfo(world: World, bearer: str | None) -> Any:
    """Return the owner of the token. Source: https://developers.google.com/identity/openid-connect/openid-connect"""
    authorize(world, bearer)
    return {"sub": UNIQUE_ID, "email": USER, "email_verified": True}


def handler(world: World, found: Methods) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body in one write

        def serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code = 200
            try:
                port = self.connection.getsockname()[1]
                if foreign := loopback.foreign(
                    port, self.headers.get("Host"), self.headers.get("Origin"), relay.ORIGIN
                ):
                    raise ApiError(403, foreign)
                if parts.path.startswith("/sandbox-api/"):
                    authorize(world, self.headers.get("Authorization"))
                if parts.path.startswith(relay.PATH):
                    allowed = self.headers.get("Authorization") == f"Bearer {world.token}"
                    with world.lock:  # the first call creates them
                        guests = world.guests
                    relay.serve(guests, self, parts.path, dict(parse_qsl(parts.query)), allowed)
                    return
                if parts.path == "/sandbox-api/preempt":
                    made = preempt(world, body)
                elif parts.path == "/sandbox-api/generations":
                    made = regenerate(world, json.loads(body))
                elif parts.path == "/sandbox-api/batch":
                    with world.lock:
                        made = batch.control(world, json.loads(body or b"{}"))
                elif parts.path == "/sandbox-api/spend":
                    with world.lock:
                        made = billing.spend(world, json.loads(body or b"{}"))
                elif parts.path == "/sandbox-api/functions":
                    with world.lock:
                        made = {"calls": json.loads(json.dumps(functions.calls(world)))}
                elif parts.path == "/sandbox-api/sizes":
                    made = container.resize(world, json.loads(body))
                elif parts.path == "/sandbox-api/permissions":
                    with world.lock:
                        made = permissions.control(world, self.command, json.loads(body or b"{}"))
                elif parts.path.startswith(functions.METADATA):
                    if not peers.ours(self.client_address[1], port):
                        raise ApiError(403, "the sandbox tells this to its own user alone")
                    scopes = dict(parse_qsl(parts.query)).get("scopes", "")
                    made = functions.metadata(world, parts.path, scopes, self.headers.get("Metadata-Flavor"))
                elif parts.path == "/sandbox-api/faults":
                    made = control(world, self.command, body)
                elif parts.path == "/oauth2.googleapis.com/token":
                    code, made = grant_token(world, body)
                elif parts.path == "/openidconnect.googleapis.com/v1/userinfo":
                    made = userinfo(world, self.headers.get("Authorization"))
                elif parts.path.startswith(quotas.PATH):
                    authorize(world, self.headers.get("Authorization"))
                    services.require(world, "cloudquotas.googleapis.com", "Cloud Quotas API")
                    made = quotas.answer(world, parts.path)
                else:
                    made = answer(world, found, self.command, parts.path, parts.query, body, self.headers)
            except ApiError as refused:
                code, made = refused.code, refused.body()
            except (TypeError, ValueError, KeyError) as error:
                code, made = 500, {"error": {"code": 500, "message": f"sandbox: {type(error).__name__}: {error}"}}
                self.log_error("%s %s: %r", self.command, self.path, error)
            data = made if isinstance(made, bytes) else json.dumps(made).encode()
            self.send_response(code)
            self.send_header(
                "Content-Type", "application/octet-stream" if isinstance(made, bytes) else "application/json"
            )
            if generation := getattr(made, "generation", ""):
                self.send_header("X-Goog-Generation", generation)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            pass

    for verb in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{verb}", Handler.serve)
    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sandbox.google", description="The sandbox's Google.")
    parser.add_argument("--home", type=Path, required=True, help="where it tells its port")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--all-services", action="store_true", help="every API is enabled; else none but Service Usage")
    given = parser.parse_args()
    home: Path = given.home.resolve()
    told = home / "google.json"
    told.unlink(missing_ok=True)  # the file of a killed server: nobody may mistake its port for this server's
    settle_s = float(os.environ.get("SANDBOX_SETTLE_S", "0.3"))
    world = World(home, keys.key(home), settle_s)
    world.preempt |= PREEMPT
    world.services = None if given.all_services else world.services
    with without_collector():
        methods = Methods()
    server = Server(("127.0.0.1", given.port), handler(world, methods))
    port = server.server_address[1]
    world.url = f"http://127.0.0.1:{port}"
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    announce(told, port=port, url=world.url)
    stop.wait()
    told.unlink(missing_ok=True)
    server.shutdown()
    for run in list(world.runs.values()):
        run.kill()
    world.guests.close()


if __name__ == "__main__":
    main()
