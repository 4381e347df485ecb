"""An automated search's architectures: graphs, morphisms, distance, proposals; what they cost, and its score."""
