"""Proofmark's fixtures and options, for every suite and every vendor's own tests."""

pytest_plugins = [
    "fixtures.session_end",
    "fixtures.screen",
    "fixtures.options",
    "fixtures.progress",
    "fixtures.session",
    "fixtures.interrupts",
    "fixtures.collection",
    "fixtures.reporting",
    "fixtures.terminal",
    "fixtures.junit",
    "fixtures.causes",
    "fixtures.benchmark",
    "fixtures.parallel",
    "fixtures.cluster",
    "fixtures.torchrun",
    "fixtures.baselines",
    "fixtures.allure",
    "fixtures.suite_plugins",
]
