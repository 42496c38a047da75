"""Obligations on resources: access bounds, alignment, vector width, integer width, registers, shared memory."""
