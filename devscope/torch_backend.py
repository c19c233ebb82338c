"""``torch.compile(model, backend="devscope", options={"default": "opencl:0", ...})``, for inference.

PyTorch splits what it traces into graphs. Each for inference becomes a program of devscope, compiled when it
is first called; parameters and buffers are constants of it, uploaded once. What cannot be compiled runs in eager,
with a warning, or is an error: ``options={"fallback": "error"}``. Other options are those of `devscope.compile`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext

from devscope import api
from devscope.errors import DevscopeError, DevscopeWarning, InputError, OptionError
from devscope.frontends.torch.decompositions import table
from devscope.frontends.torch.graphs import read_graph
from devscope.frontends.torch.traced_functions import traced_functions

_FALLBACKS = ("eager", "error")


def devscope_backend(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend, as ``torch.compile`` calls it. Raises OptionError for options that `devscope.compile` lacks."""
    settings = dict(options or {})
    fallback = settings.pop("fallback", "eager")
    legal = [name for name in api.compile.__kwdefaults__ or {} if name != "dynamic_shapes"]
    if fallback not in _FALLBACKS:
        raise OptionError(f"'fallback' is {fallback!r}", notes=[f"legal values are: {', '.join(_FALLBACKS)}"])
    if unknown := [name for name in settings if name not in legal]:
        notes = [f"options are: fallback, {', '.join(legal)}"]
        raise OptionError(f"the backend 'devscope' has no option '{unknown[0]}'", notes=notes)

    def for_inference(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return _boxed(_Graph(module, _constants(), settings, fallback == "error"))

    def for_training(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        error = DevscopeError(
            "a graph that gradients are computed of is not compiled",
            notes=["call the model under torch.no_grad() or torch.inference_mode()"],
        )
        if fallback == "error":
            raise error
        _warn(error)
        return _boxed(module.forward)

    def eager(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return _boxed(module.forward)

    compiled: Any = aot_autograd(
        fw_compiler=for_training,
        bw_compiler=eager,
        inference_compiler=for_inference,
        decompositions=table(),
    )
    with traced_functions():
        return compiled(graph, example_inputs)


def _boxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` in PyTorch's calling convention: it gets its arguments as a list, and empties it."""

    def call(arguments: list[Any]) -> Any:
        given = list(arguments)
        arguments.clear()
        return function(*given)

    call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return call


def _constants() -> list[int]:
    """Which arguments of the graph that is being compiled are parameters or buffers that it does not write to."""
    context = TracingContext.try_get()
    metadata: Any = context.fw_metadata if context is not None else None
    if metadata is None:
        return []
    written = {number for number, info in enumerate(metadata.input_info) if info.mutates_data}
    return [number for number in metadata.static_input_indices if number not in written]


def _warn(error: DevscopeError) -> None:
    warnings.warn(DevscopeWarning(f"a graph runs in eager: {error.message}"), stacklevel=3)


class _Graph:
    """One graph of ``torch.compile``, compiled for the constants that it is called with."""

    def __init__(
        self, module: torch.fx.GraphModule, constants: list[int], settings: Mapping[str, Any], strict: bool
    ) -> None:
        self._module = module
        self._constants = constants
        self._settings = settings
        self._strict = strict
        self._known: tuple[Any, ...] = ()
        """What the constants were, as `_state` has them, when it was compiled."""
        self._run: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        # Nothing tells whether a tensor that was made for inference only is written to: it is an argument.
        self._constants = [number for number in self._constants if not arguments[number].is_inference()]
        known = tuple(_state(arguments[number]) for number in self._constants)
        if self._run is None or known != self._known:
            self._run, self._known = self._compiled(arguments), known
        return self._run(*arguments)

    def _compiled(self, arguments: Sequence[Any]) -> Callable[..., Any]:
        constants = {number: arguments[number] for number in self._constants}
        try:
            elsewhere = [one for one in arguments if isinstance(one, torch.Tensor) and one.device.type != "cpu"]
            if elsewhere:
                raise DevscopeError(f"a tensor is on '{elsewhere[0].device}', not in host memory")
            source, results = read_graph(self._module, constants)
            executable = api.compile(source, **self._settings)
        except DevscopeError as error:
            if self._strict or isinstance(error, OptionError | InputError):
                raise
            _warn(error)
            return self._module.forward
        taken = [number for number in range(len(arguments)) if number not in constants]

        def run(*given: Any) -> Any:
            arrays = executable.run_arrays("main", [given[number] for number in taken])
            return tuple([_result(kind, arrays) for kind in results])

        return run


def _state(tensor: Any) -> tuple[int, int, Any]:
    """What changes when a constant is another one, or is written to."""
    return tensor.data_ptr(), tensor._version, tensor.shape


def _result(kind: Any, arrays: Sequence[Any]) -> Any:
    """A result of the graph: ``kind`` is a constant, or the number of an array and the dtype it has in PyTorch."""
    if not isinstance(kind, tuple):
        return kind
    number, dtype = kind
    array = arrays[number]
    if dtype is None:
        return array.item()
    try:
        return torch.from_numpy(array)
    except TypeError:  # one that numpy has by an extension
        return torch.from_numpy(array.view(f"uint{8 * array.itemsize}")).view(dtype)
