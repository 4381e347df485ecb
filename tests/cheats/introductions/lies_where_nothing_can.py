"""Says that its package is at what can be no file's name: whoever looks for that in pytest's own process falls over."""

import __main__

REASON = "it says that its package is"

said = getattr(__main__, "_declared", None)
__main__._declared = lambda found: {**said(found), "file": "/\ud800"}  # type: ignore[misc]
