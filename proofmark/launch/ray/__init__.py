"""Jobs as tasks of a Ray cluster: where they run, when they are run again, and how files get there is Ray's."""
