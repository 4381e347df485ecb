"""Network morphism: a larger network that computes what its parent does, in evaluation and in training."""
