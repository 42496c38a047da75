"""The tracing DSL: plain Python that, run once, builds a kernel. Users import it as `argus.language`."""
