"""The design space: named designs, their features, recorded times, and what a technique gains."""
