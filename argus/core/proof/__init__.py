"""The verifier's mathematics: abstract interpretation and obligations, pure functions over the IR."""
