"""The tracing DSL: running a Python function once builds a kernel. Users import it as `argus.language`."""
