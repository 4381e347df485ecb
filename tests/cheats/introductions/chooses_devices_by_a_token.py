"""Says that its devices are chosen by a variable with a CI's token: every process of the case would be given that."""

from proofmark.vendor import Vendor

REASON = "visible_devices_variable: 'CI_JOB_TOKEN' is not named after devices"

for own in Vendor.__subclasses__():
    own.visible_devices_variable = "CI_JOB_TOKEN"
