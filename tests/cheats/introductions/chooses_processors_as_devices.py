"""Says that its devices are chosen by a variable that pins threads: the referee's own framework would have one core."""

from proofmark.vendor import Vendor

REASON = "visible_devices_variable: 'GOMP_CPU_AFFINITY' chooses processors for all of a case's processes"

for own in Vendor.__subclasses__():
    own.visible_devices_variable = "GOMP_CPU_AFFINITY"
