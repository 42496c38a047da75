"""The design space: named designs, feature vectors, recorded times, and ablation of techniques."""
