"""The pure part of the language-model planner: builds requests, parses answers, accounts for cost; sends nothing."""
