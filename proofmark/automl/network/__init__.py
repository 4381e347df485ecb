"""The networks of a search: graph, layers, module, where a search begins, how far two are apart."""
