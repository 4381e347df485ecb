"""Offers a scale that is none, which each training case would find out by itself."""

from proofmark.vendor import Vendor

REASON = "training_scales.1: '01x1' is not a scale: expected <nodes>x<processes>"

Vendor.training_scales = tuple("1x1 01x1".split())
