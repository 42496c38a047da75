"""The time of gfx942 machine code: what its waves issue, simulated on the units of one compute unit."""
