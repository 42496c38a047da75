"""An examination of what multiplies matrices on a device: whether it does so, and how long that takes."""
