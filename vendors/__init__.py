"""How chips run it: one package per vendor."""
