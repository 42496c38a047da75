"""The search for a fast kernel that is proved: problems, designs, the gate, the journal, and what comes of it."""
