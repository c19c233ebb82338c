"""What the compiler and the driver know of CUDA's architectures."""

PTX_VERSIONS = {
    "sm_75": "6.3",
    "sm_80": "7.0",
    "sm_86": "7.1",
    "sm_87": "7.4",
    "sm_89": "7.8",
    "sm_90": "7.8",
    "sm_100": "8.6",
    "sm_103": "8.8",
    "sm_120": "8.7",
}
"""The first version of PTX for each architecture, in ascending order. Later devices run what was compiled for an
earlier one."""


def architecture_of(major: int, minor: int) -> str | None:
    """The last known architecture whose code a device of this compute capability runs; None before the first."""
    known = [name for name in PTX_VERSIONS if int(name.removeprefix("sm_")) <= 10 * major + minor]
    return known[-1] if known else None
