"""What tests, fuzzing and benchmarks need of the engine in C, and no gateway: the wheel leaves this package out.

A driver gives Python a function or a class of the engine that only C can call. So all of its cases can be tried,
compared with other implementations and measured without a socket. The engine knows no driver. `engine/` must be
on the path; `setup.py build_ext --inplace` builds drivers beside the engine.
"""
