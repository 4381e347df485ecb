"""The data of the cases. The modules import torch: import them inside a case's methods."""
