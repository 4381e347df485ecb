"""One trial: a training of one network, in a process of its own."""
