"""What times that were measured are true of: the processor, and how many threads a call has."""

from functools import cache


@cache
def machine_name() -> str:
    """The host's processor and the number of threads, ``AMD EPYC 9R14, 2 threads``."""
    from devscope.runtime.devices import list_devices
    from devscope.runtime.threads import thread_count

    host = next(info for info in list_devices() if info.name == "cpu:0")
    return f"{host.description}, {thread_count(None)} threads"
