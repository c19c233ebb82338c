"""Byte counts for readers."""


def format_bytes(count: int) -> str:
    """A byte count in the unit that suits it: ``4.0 GiB``, ``12 bytes``."""
    if abs(count) < 1024:
        return f"{count} byte{'' if count == 1 else 's'}"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if abs(size) < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"
