"""What is said of a vendor's exception."""

from __future__ import annotations

import pytest

from proofmark.inference.failure import failure_text


def raised(first: Exception, then: Exception | None) -> Exception:
    try:
        try:
            raise first
        except Exception as cause:
            if then is None:
                raise
            raise then from cause
    except Exception as error:
        return error


REFUSED = PermissionError(13, "Permission denied", "/srv/gcc")


@pytest.mark.parametrize(
    "error, walled, hint",
    [
        (raised(REFUSED, None), True, True),
        (raised(REFUSED, RuntimeError("compiling failed")), True, True),
        (raised(REFUSED, None), False, False),
        (raised(FileNotFoundError(2, "No such file", "/srv/gcc"), RuntimeError("compiling failed")), True, False),
        (raised(FileNotFoundError(2, "No such file", "/own/engine/.licence"), None), True, True),
    ],
)
def test_where_the_wall_may_be_the_reason_it_is_said(
    error: Exception, walled: bool, hint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/own/engine")
    text = failure_text(error, [], walled=walled)
    assert text.startswith(f"{type(error).__name__}: ") and "traceback in worker.log" in text
    assert ("docs/isolation.md" in text) == hint
