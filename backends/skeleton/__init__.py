"""The files of a project for a new backend, see `devscope.backend_skeleton`."""
