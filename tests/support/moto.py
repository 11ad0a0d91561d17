"""moto in this process, on loopback, for who signs with the key of these tests. moto is imported when it is used:
processes that only want the key do not wait for it."""

import io
import threading
from typing import Any

from sandbox import keys

_KEY = "of these tests"
KEYS = keys.aws(_KEY)


class Moto:
    """A server that begins empty; what it keeps is this process's, whichever server is asked."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        from sandbox.aws import signatures
        from sandbox.aws.answers import send

        moto: Any = DomainDispatcherApplication(create_backend_app)

        def serve(environ: dict[str, Any], start_response: Any) -> Any:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            if refused := signatures.refusal(_KEY, environ, body):
                return send(start_response, *refused)
            return moto({**environ, "wsgi.input": io.BytesIO(body)}, start_response)

        self._server = make_server("127.0.0.1", 0, serve, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        self.reset()

    def reset(self) -> None:
        from moto.core.config import default_user_config
        from moto.moto_api._internal.models import moto_api_backend

        moto_api_backend.reset()
        default_user_config["batch"] = {"use_docker": False}

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
