"""Executes steps on hosts in this process. Connections stay open, all else is new for each step.

A step is one host with a separate pyinfra State, so that no host waits for another one. Several
greenlets each execute one, on different hosts. The lock on a host is held from its first change to
the end of the process.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import pyinfra_cli  # noqa: F401 first: gevent replaces parts of the standard library
from click import ClickException
from paramiko import SSHException
from pyinfra import logger
from pyinfra.api import Config, Host, State
from pyinfra.api.connect import connect_all
from pyinfra.api.exceptions import ConnectError, PyinfraError
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_config, ctx_host, ctx_inventory, ctx_state
from pyinfra_cli import cli as command_line
from pyinfra_cli.inventory import make_inventory
from pyinfra_cli.util import exec_file

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import as_argument
from gpufleet.core.paths import shipped_path
from gpufleet.core.secrets import hide_secrets, register_secrets_of
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line, printed_value
from gpufleet.host.asking import is_connected
from gpufleet.host.boundary import one_host
from gpufleet.host.liveness import forget_loss
from gpufleet.host.trouble import explain_error
from gpufleet.run.connection import explain_unreached, hang_up, prepare_connections
from gpufleet.run.findings import INVENTORY_NOT_FOUND
from gpufleet.run.host_list import refuse_ignored_groups
from gpufleet.run.report import HostReport
from gpufleet.run.reporting import RunReport

CONFIG = "config.py"
PYINFRA: Any = command_line  # pyinfra's command; untyped
CUT = (SSHException, OSError, EOFError)  # a connection ended during use
T = TypeVar("T")
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class _StateOfHost:
    """Stands for `pyinfra.state`. pyinfra has one per process, but parallel steps need one each."""

    otherwise: Any = None

    @property
    def module(self) -> Any:
        host = ctx_host.get()
        return self.otherwise if host is None else host.state

    @module.setter
    def module(self, state: Any) -> None:
        self.otherwise = state


class _StepReport(RunReport):
    """The report of a step, without the progress output of pyinfra's command."""

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        pass

    def operation_end(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        pass


class _Masked(logging.Formatter):
    """Formats pyinfra's log with time and message, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_secrets(super().format(record))


class Session:
    """The hosts of an inventory."""

    def __init__(self, path: str, options: Sequence[str] = ()) -> None:
        """`options`: of pyinfra's command line. Raises click.UsageError if its parser refuses them,
        and Stopped if pyinfra cannot load the inventory."""
        os.environ["PYINFRA_PROGRESS"] = "off"
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(logging.NullHandler())
        ctx_state.context._container = _StateOfHost()
        cwd = os.getcwd()
        if cwd not in sys.path:
            sys.path.append(cwd)  # as pyinfra's own command does: inventories import their project
        words = [*options, as_argument(path), "deploy.py"]
        asked = command_line.cli.make_context("pyinfra", words).params
        state = State()
        state.cwd = cwd
        ctx_state.set(state)
        self._verbosity = asked["verbosity"]
        try:
            self.config = _config(asked)
            prepare_connections(self.config)
            refuse_ignored_groups()
            with redirect_stdout(sys.stderr):  # standard output may be JSON
                self.inventory = make_inventory(path, cwd=cwd, override_data=_data(asked))
        except Exception as error:
            cause = getattr(error, "exception", error)  # pyinfra wraps it
            named = f"{type(cause).__name__}: {printed_value(cause, str)}"
            why = cause.message if isinstance(cause, ClickException) else named
            raise Stopped(INVENTORY_NOT_FOUND(path=path, why=one_line(why))) from error
        for host in self.inventory:
            register_secrets_of(host.data.dict())
        ctx_inventory.set(self.inventory)
        self.hosts: dict[str, Host] = {}

    def log_to(self, path: Path) -> None:
        """Write pyinfra's log to a file that only this user can read. Raises OSError."""
        handler = logging.StreamHandler(os.fdopen(os.open(path, APPEND, 0o600), "a"))
        handler.setFormatter(_Masked("%(asctime)s %(message)s"))
        logger.addHandler(handler)

    def connect(self, names: Iterable[str]) -> None:
        """Connect these hosts in parallel. For one that is not reached, its steps report that."""
        wanted = [self.inventory.get_host(name) for name in names if name not in self.hosts]
        if not wanted:
            return
        inventory = copy(self.inventory)
        inventory.hosts = {host.name: host for host in wanted}  # others keep their connections
        state = State(inventory, copy(self.config))
        state.set_stage(StateStage.Connect)
        ctx_state.set(state)
        with suppress(PyinfraError):  # no host is reached
            connect_all(state)
        ctx_state.set(None)
        self.hosts |= {host.name: host for host in wanted}

    def close(self) -> None:
        """Close the connections, which releases the locks on the hosts."""
        hang_up(self.hosts.values())

    def step(
        self, name: str, deploy: Path, data: Mapping[str, Any]
    ) -> tuple[HostReport | Finding, bool]:
        """Plan and execute a file of deploys/ on one host with this data. Returns its report, or
        why the host is not reached, and True if an operation was begun. Raises nothing."""
        self.connect([name])
        state, host = self._fresh(name, data)
        report = _StepReport(state)
        state.add_callback_handler(report)
        state.set_stage(StateStage.Connect)
        try:
            _reconnect(host)
            state.activate_host(host)
            state.set_stage(StateStage.Prepare)
            with ctx_host.use(host), ctx_config.use(state.config.copy()), one_host():
                exec_file(str(deploy), is_deploy_code=True)
            state.set_stage(StateStage.Execute)
            if host in state.active_hosts:
                run_ops(state)
            state.set_stage(StateStage.Disconnect)  # its report is complete
        except ConnectError:
            return explain_unreached(host), False
        except PyinfraError as error:  # no host is left; the report says why
            logger.debug(f"{name}: {error}")
        finally:
            ctx_host.reset()  # `use` and run_ops leave them set after an exception
            ctx_state.set(None)
            self.hosts[name].connected = host.connected  # a new connection after a reboot
        return report.gather()[0], name in report.touched

    def call(self, name: str, function: Callable[[Host], T]) -> T:
        """Call a function that queries one host, outside of a step. Raises Stopped if the host is
        not reached, and the exceptions of the function."""
        self.connect([name])
        state, host = self._fresh(name, {})
        state.set_stage(StateStage.Connect)
        try:
            _reconnect(host)
            with ctx_host.use(host):
                return function(host)
        except ConnectError as error:
            raise Stopped(explain_unreached(host)) from error
        except CUT as error:
            raise Stopped(explain_error(host, error, "while it was asked")) from error
        finally:
            ctx_host.reset()
            self.hosts[name].connected = host.connected

    def _fresh(self, name: str, data: Mapping[str, Any]) -> tuple[State, Host]:
        """A new State and Host with the open connection, because State.init() creates a new
        connector without one. Roles also read the other hosts."""
        known = self.hosts[name]
        inventory = copy(self.inventory)
        inventory.override_data = {**self.inventory.override_data, **data}
        host = Host(name, inventory, known.groups, known.connector_cls)
        inventory.hosts = {name: host}
        state = State(inventory, copy(self.config))
        PYINFRA._set_verbosity(state, self._verbosity)
        inventory.hosts = {**self.inventory.hosts, name: host}
        inventory.groups = {
            group: [host if each.name == name else each for each in hosts]
            for group, hosts in self.inventory.groups.items()
        }
        state.limit_hosts = [host]
        connector = known.connector
        connector.state, connector.host, connector.data = state, host, host.connector.data
        host.connector, host.connector_data = connector, known.connector_data
        host.connected = known.connected
        return state, host


def _reconnect(host: Host) -> None:
    """Reconnect a host. Raises ConnectError."""
    if not is_connected(host):
        host.connected = False
        forget_loss(host)
        host.connect(show_errors=False, raise_exceptions=True)


def _config(asked: Mapping[str, Any]) -> Any:
    """pyinfra's configuration, as its command creates it: config.py of the folder, then options."""
    config = Config()
    ctx_config.set(config)
    file = asked["config_filename"]
    if file == CONFIG and not os.path.exists(CONFIG):
        file = str(shipped_path(CONFIG))
    names = (
        *("sudo", "sudo_user", "use_sudo_password", "use_sudo_login", "same_sudo_password"),
        *("su_user", "dzdo", "dzdo_user", "parallel", "shell_executable", "fail_percent", "yes"),
        *("diff", "retry", "retry_delay"),
    )
    return PYINFRA._set_config(config, file, *(asked[name] for name in names))


def _data(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The data from --data and from options about the connection."""
    names = ("data", "ssh_user", "ssh_key", "ssh_key_password", "ssh_port", "ssh_password")
    found: dict[str, Any] = PYINFRA._set_override_data(*(asked[name] for name in names))
    return found
