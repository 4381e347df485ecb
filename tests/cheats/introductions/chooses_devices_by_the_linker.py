"""Says that its devices are chosen by a variable of the linker's, which the referee's own process would then obey."""

from proofmark.vendor import Vendor

REASON = "visible_devices_variable: 'LD_AUDIT_DEVICE' changes which code runs"

for own in Vendor.__subclasses__():
    own.visible_devices_variable = "LD_AUDIT_DEVICE"
