"""``cublas``: matrix products on CUDA devices by NVIDIA's cuBLASLt."""
