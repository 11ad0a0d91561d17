"""A relay of bytes in front of a server, which kills the client when it has sent so many."""

import os
import select
import signal
import socket
import threading
from contextlib import suppress

from tests.support.waiting import PATIENCE_S


class Relay:
    """Forwards connections to `server` ("host:port") until `close`; `sent` counts the bytes of the client."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._to = (host, int(port))
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.sent = 0
        self.kill_at: int | None = None
        self.victim: int | None = None
        self._lock = threading.Lock()
        self._accepted = threading.Condition()
        self._threads: dict[tuple[str, int], threading.Thread] = {}
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def arm(self, kill_at: int | None) -> None:
        """For the next client, whose pid `victim` is to be."""
        self.sent, self.kill_at, self.victim = 0, kill_at, None

    def quiet(self) -> None:
        """Until all connections have ended, so that the server has seen whatever the dead had sent.

        Connections are accepted in their order: one of our own, once accepted, has all earlier ones before it.
        """
        with socket.create_connection(self._listening.getsockname()) as last:
            address = last.getsockname()
        with self._accepted:
            assert self._accepted.wait_for(lambda: address in self._threads, PATIENCE_S)
        self._join()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread
        self._listening.close()
        self._accepting.join(PATIENCE_S)
        self._join()

    def _join(self) -> None:
        for thread in self._threads.values():
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        self._threads.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, address = self._listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            thread.start()
            with self._accepted:
                self._threads[address] = thread
                self._accepted.notify_all()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._to) as server, suppress(OSError):
            while True:
                ready, _, _ = select.select([client, server], [], [])
                if client in ready:
                    data = client.recv(65536)
                    server.sendall(self._counted(data))
                    if not data:
                        server.shutdown(socket.SHUT_WR)
                        while left := server.recv(65536):
                            client.sendall(left)
                        return
                if server in ready:
                    data = server.recv(65536)
                    if not data:
                        return
                    client.sendall(data)

    def _counted(self, data: bytes) -> bytes:
        """What of it is passed on; the client dies when the limit is in it."""
        with self._lock:
            before = self.sent
            self.sent += len(data)
            if self.kill_at is None or self.sent < self.kill_at:
                return data
            if self.victim is not None and before < self.kill_at:
                os.kill(self.victim, signal.SIGKILL)
            return data[: max(0, self.kill_at - before)]
