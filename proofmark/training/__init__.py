"""Training to a target under torchrun.

`run` (parent) writes a `spec`, submits an `agent` per node, which starts the ranks by torchrun; each `rank` has a
`trainer`, which owns the loop and the clock; `collect` makes the record of what the ranks wrote.
"""
