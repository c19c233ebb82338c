"""Target kinds and devices of backends that installed packages offer are known as soon as something names them."""

from devscope.dialects.target import find_kinds_with


def find_offered_kinds() -> None:
    """Have them found."""
    find_kinds_with(_find)


def _find(name: str) -> None:
    from devscope.backends.registry import backend_names, get_backend  # most programs need no backend

    if name in backend_names():
        get_backend(name)
