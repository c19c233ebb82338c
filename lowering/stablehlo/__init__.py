"""StableHLO, CHLO and tm_tensor become linalg, tensor, scf, arith, math and complex before a program is planned.

Upstream's passes do what they can; a file per family expands what they leave, to operations that they know.
"""
