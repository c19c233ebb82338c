"""Physical devices of this machine: which of them programs run on, and who reaches whose memory."""

from collections.abc import Collection, Mapping

from devscope.errors import DeviceError, DeviceNotFoundError, DevscopeError, OptionError, option_note
from devscope.runtime.drivers import Device, device_types, driver, drivers
from devscope.runtime.plugins import find_runtime, missing_backend, runtime_names
from devscope.runtime.program import Program


def list_devices() -> list[Device]:
    """The physical devices of this machine: ``cpu:0``, then those of other types: ``opencl:0``, ``opencl:1``..."""
    return [device for found in drivers() for device in found.devices()]


def driver_problems() -> list[str]:
    """Drivers and devices that were found but cannot be used, one line each."""
    return [problem for found in drivers() for problem in found.problems()]


def backend_devices() -> tuple[list[Device], list[str]]:
    """The devices that installed backends bring, and what cannot be used, a line each. Imports their runtimes."""
    found: list[Device] = []
    problems: list[str] = []
    for name in runtime_names():
        try:
            of_type = driver(name) if name not in device_types() else None
            found += of_type.devices() if of_type is not None else []
        except DevscopeError as error:
            problems.append(error.message)
    return found, problems


def refuse_unused(mapping: Mapping[str, str], virtual: Collection[str]) -> None:
    """Raises :class:`OptionError` for a mapping that names a device that is none of the program's, ``virtual``."""
    unused = sorted(set(mapping) - set(virtual))
    if unused:
        raise OptionError(
            f"the device mapping names '{unused[0]}', which the program does not use",
            notes=[f"the program uses: {', '.join(virtual) or 'the host alone'}"],
        )


def resolve_devices(virtual: Mapping[str, str], mapping: Mapping[str, str] | None = None) -> dict[str, Device]:
    """Gives every virtual device of a program a physical one.

    ``virtual`` maps the program's devices to the device type that their code was compiled for, which need
    not be their own: ``{"cuda:0": "opencl"}``. A device that ``mapping`` does not name runs on the physical
    device of the same name. Several virtual devices may share a physical one. ``opencl:0.1`` is the second compute
    unit of ``opencl:0`` alone, where the driver can divide the device.

    Raises :class:`OptionError` for a mapping that names a device the program does not use, or a device of
    another type than the code was compiled for; :class:`DeviceNotFoundError` when a device is not there.
    """
    mapping = mapping or {}
    refuse_unused(mapping, virtual)
    found = {name: _find(name, compiled_for, mapping.get(name, name)) for name, compiled_for in virtual.items()}
    missing = [name for name, device in found.items() if device is None]
    if missing:
        raise _missing({name: virtual[name] for name in missing}, mapping)
    return {name: device for name, device in found.items() if device is not None}


def require_devices(virtual: Mapping[str, str]) -> dict[str, Device]:
    """The devices of the same names. Raises :class:`DeviceNotFoundError` that names all that are not there.

    ``virtual`` is that of `resolve_devices`; the program is not compiled yet, so that each could be any device.
    """
    found = {name: _find(name, kind, name) for name, kind in virtual.items()}
    missing = {name: virtual[name] for name, device in found.items() if device is None}
    # What no code can be made for, the lowering refuses, and says where it is used.
    if any(driver(kind) is not None for kind in missing.values()):
        raise _missing(missing, {}, compiled=False)
    return {name: device for name, device in found.items() if device is not None}


def find_device(name: str) -> Device | None:
    """The physical device called ``name``."""
    of_type = driver(_type_of(name))
    return of_type.find(name) if of_type is not None else None


def _find(virtual: str, compiled_for: str, physical: str) -> Device | None:
    if not isinstance(physical, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"'{virtual}' is mapped to {physical!r}, which is not the name of a device")
    if physical != virtual and _type_of(physical) != compiled_for:
        raise OptionError(
            f"'{virtual}' cannot run on '{physical}': its code was compiled for device type '{compiled_for}'",
            notes=[f"map it to a device of type '{compiled_for}', or compile the program for '{physical}'"],
        )
    # Only this one is asked: programs that use the host alone must not pay for loading drivers.
    of_type = driver(compiled_for)
    return of_type.find(physical) if of_type is not None else None


def _missing(virtual: Mapping[str, str], mapping: Mapping[str, str], compiled: bool = True) -> DeviceNotFoundError:
    """The error for devices that are not there; ``virtual`` has the type that each one's code is for."""
    brought = next((type_ for type_ in virtual.values() if type_ not in device_types() and compiled), None)
    if brought is not None and find_runtime(brought) is None:
        return missing_backend(brought)
    own = [driver(type_) for type_ in dict.fromkeys(virtual.values()) if type_ not in device_types()]
    there = [device.name for device in list_devices()]
    there += [device.name for of_type in own if of_type is not None for device in of_type.devices()]
    notes = [f"this machine has: {', '.join(there)}"]
    advice: dict[str, str] = {}
    for name, type_ in virtual.items():
        usable = [device for device in there if _type_of(device) == type_]
        others = [] if compiled else [*there[1:], *there[:1]]
        if choice := [*usable, *others]:
            advice[name] = choice[0]
    if advice:
        notes.append(option_note("to run it on what is there:", "devices", advice))
    for type_ in dict.fromkeys(type_ for name, type_ in virtual.items() if name not in advice):
        of_type = driver(type_)
        compile_ = f"compile the program for a device that is there, not for '{type_}'"
        notes.append(of_type.advice if of_type is not None and of_type.advice else compile_)
    notes.extend(driver_problems())
    wanted = [_wanted(name, type_, mapping.get(name)) for name, type_ in virtual.items()]
    devices = f"device {wanted[0]}" if len(wanted) == 1 else f"devices {', '.join(wanted[:-1])} and {wanted[-1]}"
    return DeviceNotFoundError(f"the program needs {devices}, which this machine does not have", notes=notes)


def _wanted(name: str, compiled_for: str, physical: str | None) -> str:
    if _type_of(physical or name) != compiled_for:
        return f"'{name}' (compiled for '{compiled_for}')"
    return f"'{name}'" if physical is None else f"'{name}' (mapped to '{physical}')"


def _type_of(name: str) -> str:
    return name.partition(":")[0]


def memory_groups() -> list[tuple[str, ...]]:
    """Groups of devices of this machine, as machine descriptions have them: the host and one, or devices."""
    (host, *_), *others = [found.devices() for found in drivers()]
    devices = [device for of_type in others for device in of_type]
    groups: list[tuple[str, ...]] = [(host.name, near.name) for near in devices if near.shares_memory_with(host)]
    for one in devices:
        near = tuple(other.name for other in devices if other is one or other.shares_memory_with(one))
        if len(near) > 1 and near not in groups:
            groups.append(near)
    return groups


def check_shared_memory(program: Program, physical: Mapping[str, Device]) -> None:
    """Raise DeviceError for a pair of devices that must reach each other's memory and do not."""
    slots = program.slots()
    for low, high in program.shared:
        names = slots[low].name, slots[high].name
        one, other = (physical[name] for name in names)
        if not one.shares_memory_with(other):
            raise DeviceError(
                f"the program was compiled for '{names[0]}' and '{names[1]}' that reach each other's memory; "
                f"{one.label} and {other.label} do not",
                notes=[
                    "run it on devices that do, or compile it with a machine description in which no group of "
                    "'shared' has both, or without one"
                ],
            )
