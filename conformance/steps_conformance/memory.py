"""A limit on the memory of this process and of those that it starts."""

import sys
from typing import Any

_MIB = 2**20


class MemoryLimitError(Exception):
    """Memory cannot be limited here; the text says why, and what to do."""


def check_memory_limit() -> None:
    """Raise MemoryLimitError where the system has no such limit."""
    if not sys.platform.startswith("linux"):
        raise MemoryLimitError(
            f"--memory-limit needs Linux, this is {sys.platform}; "
            "leave it out, or run in a container that has a limit"
        )


def limit_memory(mebibytes: int) -> None:
    """Let an allocation fail that would bring what this process has written or may write above a limit.

    The limit counts private writable memory (RLIMIT_DATA). The whole address space is no measure: JAX,
    CUDA and JavaScript engines reserve much more of it than they ever use. A child has the same limit anew.
    """
    check_memory_limit()
    resource = _resource()
    limit = mebibytes * _MIB
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def memory_limit() -> int | None:
    """Return the limit of this process in MiB, or None where it has none."""
    if not sys.platform.startswith("linux"):
        return None
    resource = _resource()
    limit: int = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return None if limit == resource.RLIM_INFINITY else limit // _MIB


def _resource() -> Any:
    # the module exists on POSIX alone
    import resource

    return resource
