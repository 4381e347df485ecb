"""The helper that ends a test for want of a service."""

from __future__ import annotations

import pytest

from tests.services import STRICT, missing, program


def test_a_missing_service_skips_with_one_line(monkeypatch):
    monkeypatch.delenv(STRICT, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^missing: no-such-thing \(by post\)$"):
        program("no-such-thing", "by post")


def test_where_everything_is_installed_it_fails(monkeypatch):
    monkeypatch.setenv(STRICT, "1")
    with pytest.raises(pytest.fail.Exception, match="missing: sshd"):
        missing("sshd")


def test_a_program_that_is_there_is_found():
    assert program("sh").endswith("/sh")
