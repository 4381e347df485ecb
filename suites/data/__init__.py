"""The data of the cases. The modules, but `given`, import torch: import them inside a case's methods."""
