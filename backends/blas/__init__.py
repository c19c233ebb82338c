"""``blas``: matrix products by OpenBLAS."""
