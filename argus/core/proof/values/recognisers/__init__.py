"""Recognisers of value patterns: softmax, statistics, folds, scales, partial sums."""
