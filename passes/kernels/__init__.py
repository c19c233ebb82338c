"""Hand-written kernels: which functions they are, what they may hold, and what they are compiled for."""
