"""One rank of a training: data, model, loop, evaluation, checkpoints, and the referee beside them."""
