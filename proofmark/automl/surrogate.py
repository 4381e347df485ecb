"""What accuracy an untrained network may have: a Gaussian process over its distances to trained ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from proofmark.automl.distance import Descriptor, Floats, distance_matrix, distances
from proofmark.automl.pool import best_and_last

BETA = 2.576
"""Standard deviations above the mean at which a network is valued: as in the original."""


class Surrogate:
    """Values networks by mean + BETA standard deviations.

    An edit distance is not Euclidean, so no kernel of it alone is sure to be positive definite. A network is therefore
    embedded as the row of its distances to all that were trained (Fréchet's embedding; the original has Bourgain's,
    which takes random sets of them), and the kernel is a Gaussian of that, with scale and noise of greatest likelihood.
    """

    def __init__(self, trained: Sequence[Descriptor], accuracies: Sequence[float]) -> None:
        """Fit it: to the best and the last ones, if there are many.

        Args:
            accuracies: of `trained`, in the same order.
        """
        chosen = best_and_last(accuracies)
        self._trained = [trained[number] for number in chosen]
        places = self._embedded(distance_matrix(self._trained))
        noise = WhiteKernel(1e-3, (1e-6, 1e-1))
        self._process = GaussianProcessRegressor(
            ConstantKernel(1.0, (1e-2, 1e2)) * RBF(1.0, (1e-1, 1e2)) + noise, normalize_y=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a scale at its bound is a scale all the same
            self._process.fit(places, [accuracies[number] for number in chosen])

    def bounds(self, networks: Sequence[Descriptor]) -> Floats:
        """Upper confidence bounds, (networks,)."""
        places = self._embedded(distances(networks, self._trained))
        mean, deviation = self._process.predict(places, return_std=True)
        bounds: Floats = mean + BETA * deviation
        return bounds

    def _embedded(self, found: Floats) -> Floats:
        return found / math.sqrt(len(self._trained))
