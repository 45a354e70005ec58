"""Sweeps: one command at many points, on this machine's cores or a Dask cluster. `python -m k3core sweep`.

spec -> points -> journal -> tables and report. A point is a pure function of its parameters, seed and files
(`commands`), so where and in which order points are computed changes nothing. Modules that a browser's Python
lacks (tomllib, multiprocessing, dask) are imported where they are used.
"""
