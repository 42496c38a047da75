"""Abstract interpretation of the IR, and the proof obligations that follow from it; pure functions."""
