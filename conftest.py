"""Proofmark's fixtures and options, for every suite and every vendor's own tests."""

pytest_plugins = [
    "fixtures.sessions.session_end",
    "fixtures.live.screen",
    "fixtures.options",
    "fixtures.live.progress",
    "fixtures.sessions.session",
    "fixtures.sessions.interrupts",
    "fixtures.collection",
    "fixtures.outputs.reporting",
    "fixtures.outputs.manifest",
    "fixtures.outputs.terminal",
    "fixtures.outputs.junit",
    "fixtures.causes",
    "fixtures.outputs.benchmark",
    "fixtures.sessions.parallel",
    "fixtures.sessions.preloading",
    "fixtures.cluster",
    "fixtures.torchrun",
    "fixtures.outputs.baselines",
    "fixtures.outputs.allure",
    "fixtures.suite_plugins",
]
