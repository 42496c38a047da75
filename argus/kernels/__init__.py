"""The kernel families shipped: each a claim, and schedules chosen by a typed configuration."""
