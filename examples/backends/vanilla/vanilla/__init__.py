"""A devscope backend for a made-up accelerator: ``backend`` compiles for it, ``runtime`` drives it."""
