"""All modules, whichever file they are in: `MODULES`, by name."""

import torch_functions  # noqa: F401
import torch_loops  # noqa: F401
import torch_matrices  # noqa: F401
import torch_networks  # noqa: F401
import torch_sequences  # noqa: F401
from torch_modules import MODULES

__all__ = ["MODULES"]
