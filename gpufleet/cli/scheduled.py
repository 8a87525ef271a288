"""Workers of a Dask cluster, elsewhere. Needs the extra `scale`."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace

import click

from gpufleet.cli.workers import Order, run_order
from gpufleet.core.visible import one_line
from gpufleet.run.shards import Outcome

ANSWER = 10  # seconds for a scheduler


def run_remote(order: Order) -> Outcome:
    """`run_order` on a worker. Dask forgets a task whose client is gone, but its thread goes on."""
    from distributed import Event, get_worker

    worker, event = get_worker(), Event(order.stop)
    key = worker.get_current_task()

    def stopping() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or bool(event.is_set())

    return run_order(order, stopping, set())


class Scheduled:
    """Workers that this process reaches by the address of their scheduler. They run a shard again
    whose worker is gone."""

    def __init__(self, address: str, count: int | None = None) -> None:
        """`count`: None for as many as the workers have threads. Raises click.UsageError."""
        try:
            from distributed import Client, Security
            from distributed.comm import connect
        except ImportError as error:
            raise click.UsageError(
                "--scheduler needs Dask: pip install 'gpufleet[scale]', here and on the workers."
            ) from error

        async def ask() -> None:
            own = Security().get_connection_args("client")
            (await connect(address, timeout=ANSWER, **own)).abort()

        try:
            asyncio.run(ask())  # a Client that fails to begin is closed with a traceback
            self._client = Client(address, timeout=ANSWER, set_as_default=False)
        except (OSError, TypeError, ValueError) as error:
            raise click.UsageError(
                f"No scheduler at {one_line(address)}: {one_line(str(error))}"
            ) from error
        threads = sum(self._client.ncores().values())
        if not threads:
            self.close()
            raise click.UsageError(f"The scheduler at {address} has no workers.")
        self.name = f"gpufleet-{uuid.uuid4()}"
        self.count = count or threads
        self._pool = self._client.get_executor(pure=False)

    def submit(self, order: Order) -> Future[Outcome]:
        made: Future[Outcome] = self._pool.submit(
            run_remote, replace(order, log="", stop=self.name)
        )
        return made

    def stop(self) -> None:
        """Sets the event without waiting for the scheduler, which may hang."""
        loop, scheduler = self._client.loop, self._client.scheduler
        assert loop
        assert scheduler
        loop.add_callback(scheduler.event_set, name=self.name)

    def kill(self) -> None:
        """Nothing runs on this machine; what a client had that is gone ends."""

    def close(self) -> None:
        with suppress(OSError, asyncio.TimeoutError):  # the scheduler hangs, or is gone
            self._client.close(ANSWER)
