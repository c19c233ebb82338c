"""Kernels of the host: templates of vector operations with the numbers of a schedule, called by bufferised code.

`normalise` brings operations on tensors to few forms, `contractions` makes calls of those on buffers. A
`KernelLibrary` has the functions that are called: each template is made once for its values, whoever calls it.
What a template is filled with comes from a `table` of schedules, a file of the target's; `schedule_report` shows
who got what.
"""
