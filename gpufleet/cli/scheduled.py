"""Workers of a Dask cluster, elsewhere. Needs the extra `scale`."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace

import click

from gpufleet.cli.workers import Order, run_order
from gpufleet.core.names import counted
from gpufleet.core.visible import one_line
from gpufleet.run.shards import Outcome, brief

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
            from distributed import Client
        except ImportError as error:
            raise click.UsageError(
                "--scheduler needs Dask: install gpufleet with its extra `scale`, here and on the "
                "workers (docs/how-to/workers.md)."
            ) from error
        self._client: Client | None = None
        try:
            _probe(address)  # a Client that fails to begin is closed with a traceback
            self._client = Client(address, timeout=ANSWER, set_as_default=False)
            threads = sum(self._client.ncores().values())
        except Exception as error:  # a boundary: whatever listens at that address
            self.close()
            why = brief(str(error)) or type(error).__name__
            raise click.UsageError(
                f"No scheduler at {one_line(address)}: {why}. Start one with `dask scheduler`, or "
                "correct the address, such as tcp://HOST:8786."
            ) from error
        if not threads:
            self.close()
            raise click.UsageError(f"The scheduler at {one_line(address)} has no workers.")
        self.name = f"gpufleet-{uuid.uuid4()}"
        self.count = count or threads
        self._pool = self._client.get_executor(pure=False)

    def submit(self, order: Order) -> Future[Outcome]:
        made: Future[Outcome] = self._pool.submit(
            run_remote, replace(order, log="", stop=self.name)
        )
        return made

    def stop(self) -> None:
        """Sets the event without waiting for the scheduler, which may hang, or be gone."""
        client = self._client
        if client and client.loop and client.scheduler:
            client.loop.add_callback(client.scheduler.event_set, name=self.name)

    def kill(self) -> None:
        """Nothing runs on this machine; what a client had that is gone ends."""

    def close(self) -> None:
        with suppress(Exception):  # the scheduler hangs, or is gone
            if self._client:
                self._client.close(ANSWER)


def _probe(address: str) -> None:
    """Ask a scheduler what it is. The timeout of distributed ends with the connection: a peer that
    says nothing would keep it waiting."""
    from distributed import Security
    from distributed.comm import connect
    from distributed.core import send_recv

    async def ask() -> None:
        own = Security().get_connection_args("client")
        peer = await connect(address, timeout=ANSWER, **own)
        try:
            found = await send_recv(peer, op="identity")
        finally:
            peer.abort()
        if "workers" not in found:
            raise ValueError(f"it is a {found['type']}")

    async def in_time() -> None:
        try:
            await asyncio.wait_for(ask(), ANSWER)
        except asyncio.TimeoutError as error:
            raise TimeoutError(f"no answer within {counted(ANSWER, 'second')}") from error

    asyncio.run(in_time())
