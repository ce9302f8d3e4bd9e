"""Who may visit hosts in our place: a cluster of dask, or what a function of the site returns."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Final

from commcheck.errors import UsageError

DASK: Final[Mapping[str, str]] = {"dask://": "tcp://", "dask+tls://": "tls://"}

_CONNECT_S: Final = 15


@contextmanager
def executor_of(name: str) -> Iterator[Executor | None]:
    """The executor that ``--executor`` names, until the end of the block; None for no name.

    ``dask://HOST:PORT``, ``dask+tls://HOST:PORT``, or ``MODULE:FACTORY``, which is called and
    returns a ``concurrent.futures.Executor``. Raises ``UsageError``.
    """
    if not name:
        yield None
        return
    scheme = next((each for each in DASK if name.startswith(each)), "")
    if scheme:
        with _dask(name, DASK[scheme] + name.removeprefix(scheme)) as executor:
            yield executor
        return
    executor = _made(name)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _dask(name: str, address: str) -> Iterator[Executor]:
    try:
        client_of: Any = importlib.import_module("distributed").Client
    except ImportError as error:
        raise UsageError(
            f"error: --executor {name} needs dask: pip install 'commcheck[dask]' ({error})"
        ) from None
    try:
        client = client_of(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"error: --executor {name}: no scheduler of dask there: {why}") from None
    try:
        yield client.get_executor(pure=False)
    finally:
        client.close(timeout=_CONNECT_S)


def _made(name: str) -> Executor:
    module, colon, factory = name.partition(":")
    try:
        if not colon:
            raise ValueError("wanted dask://HOST:PORT, or MODULE:FACTORY")
        made = getattr(importlib.import_module(module), factory)()
    except Exception as error:
        raise UsageError(f"error: --executor {name}: {error}") from error
    if not isinstance(made, Executor):
        raise UsageError(f"error: --executor {name}: {factory}() is no Executor")
    return made
