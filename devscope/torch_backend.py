"""``torch.compile(model, backend="devscope", options={"default": "opencl:0", ...})``.

PyTorch splits what it traces into graphs, those of gradients included. Each becomes a program of devscope,
compiled when it is first called; parameters and buffers that nobody writes to are constants of it, uploaded once.
What cannot be compiled runs in eager, with a warning, or is an error: ``options={"fallback": "error"}``. Other
options are those of `devscope.compile`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext

from devscope import api
from devscope.errors import DevscopeError, DevscopeWarning, InputError, OptionError
from devscope.frontends.torch.decompositions import table
from devscope.frontends.torch.graphs import Computed, Given, read_graph
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

    def compile_with(constants: Callable[[], list[int]]) -> Callable[..., Any]:
        def compile_graph(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            return _boxed(_Graph(module, constants(), settings, fallback == "error"))

        return compile_graph

    compiled: Any = aot_autograd(
        fw_compiler=compile_with(lambda: _constants(True)),
        bw_compiler=compile_with(list),
        inference_compiler=compile_with(lambda: _constants(False)),
        decompositions=table(),
        partition_fn=min_cut_rematerialization_partition,
    )
    with traced_functions(), _without_onednn():
        return compiled(graph, example_inputs)


@contextmanager
def _without_onednn() -> Generator[None]:
    """Of which a recurrent network is one operation, that nothing decomposes."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def _boxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` in PyTorch's calling convention: it gets its arguments as a list, and empties it."""

    def call(arguments: list[Any]) -> Any:
        given = list(arguments)
        arguments.clear()
        return function(*given)

    call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return call


def _constants(training: bool) -> list[int]:
    """Which arguments of the graph that is being compiled are parameters or buffers that nobody writes to.

    Each step of ``training`` writes to the parameters that have a gradient.
    """
    context = TracingContext.try_get()
    metadata: Any = context.fw_metadata if context is not None else None
    if metadata is None:
        return []
    written = {
        number
        for number, info in enumerate(metadata.input_info)
        if info.mutates_data or (training and info.requires_grad)
    }
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
            graph = read_graph(self._module, constants)
            executable = api.compile(graph.source, **self._settings)
        except DevscopeError as error:
            if self._strict or isinstance(error, OptionError | InputError):
                raise
            _warn(error)
            return self._module.forward
        taken = [number for number in range(len(arguments)) if number not in constants]

        def run(*given: Any) -> Any:
            drawn = [draw(given) for draw in graph.draws]
            arrays = executable.run_arrays("main", [*(given[number] for number in taken), *drawn])
            return tuple([_result(kind, given, arrays) for kind in graph.results])

        return run


def _state(tensor: Any) -> tuple[int, int, Any]:
    """What changes when a constant is another one, or is written to."""
    return tensor.data_ptr(), tensor._version, tensor.shape


def _result(kind: Any, given: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """A result of the graph: ``kind`` is one of `Graph.results`."""
    if isinstance(kind, Given):
        return given[kind.number]
    if not isinstance(kind, Computed):
        return kind
    array = arrays[kind.number]
    if kind.dtype is None:
        return array.item()
    try:
        return torch.from_numpy(array)
    except TypeError:  # one that numpy has by an extension
        return torch.from_numpy(array.view(f"uint{8 * array.itemsize}")).view(kind.dtype)
