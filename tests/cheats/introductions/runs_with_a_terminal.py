"""A driver whose version clears the screen: it stands in reports and in the terminal's."""

from proofmark.vendor import Software, Vendor

REASON = "software.driver: expected one line of text"

for own in Vendor.__subclasses__():
    own.software = lambda self: Software(driver="1.0\x1b[2J==== 12 passed ====")  # type: ignore[method-assign]
