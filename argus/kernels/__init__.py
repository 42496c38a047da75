"""The shipped kernel families: each states one claim and has schedules chosen by a typed configuration."""
