"""Shapes of a model's values."""

from __future__ import annotations

from typing import Any

import onnx


def inferred(model: Any) -> Any:
    """A model with inferred shapes; as it is, where ONNX finds them contradictory."""
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # of C++, of several kinds
        return model
