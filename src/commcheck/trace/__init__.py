"""Profiler traces: read at the speed of the disk, measured in whole nanoseconds, judged.

The way of the data: a file becomes a ``store.Trace`` (``kineto``, ``chrome``, ``ascend``), a trace
becomes a ``facts.RankFacts`` (``steps``), ranks become a ``facts.JobFacts`` (``ranks``), and that
is judged (``ladder``). ``offline`` is the entry for files.
"""
