"""Jobs that are handed whole to a service, which runs them on nodes of its choosing: no pipe leads there."""
