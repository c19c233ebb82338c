"""Memory planning: which buffers of the host code share storage, decided once, after bufferisation."""
