"""Abstract interpretation of the IR and the proof obligations that it yields; pure functions."""
