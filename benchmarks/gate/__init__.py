"""How good the speed gate is."""
