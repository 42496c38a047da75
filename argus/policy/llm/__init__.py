"""A planner that asks a language model, all but the asking: what is sent, what an answer says, and what it may cost."""
