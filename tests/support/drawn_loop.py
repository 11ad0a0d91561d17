"""An event loop that draws the order in which calls are answered."""

import asyncio
import random
from collections.abc import Callable
from typing import Any


class Loop(asyncio.SelectorEventLoop):
    """Answers one call at a time, drawn among those that wait, and only once the program has nothing else to do."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self._dice = dice
        self._turns: list[asyncio.Future[None]] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self._quiet: asyncio.Future[None] | None = None

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        turn = self.create_future()
        self._turns.append(turn)

        async def called() -> Any:
            await turn
            return func(*args)

        return self.create_task(called())

    def create_task(self, coro: Any, **named: Any) -> asyncio.Task[Any]:
        task = super().create_task(coro, **named)
        self.tasks.append(task)
        return task

    def _run_once(self) -> None:
        if not self._ready:  # pyright: ignore[reportAttributeAccessIssue]
            if self._turns:
                at = self._dice.randrange(len(self._turns))
                self._turns[at], self._turns[-1] = self._turns[-1], self._turns[at]
                self._turns.pop().set_result(None)
            elif self._quiet is not None and not self._quiet.done():
                self._quiet.set_result(None)
            elif not self._scheduled and not self._stopping:  # pyright: ignore[reportAttributeAccessIssue]
                raise AssertionError("the program waits for what never comes")
        super()._run_once()  # type: ignore[misc]

    def quiet(self) -> asyncio.Future[None]:
        """Done once nothing is left to be done."""
        self._quiet = self.create_future()
        return self._quiet
