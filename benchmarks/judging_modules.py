"""The modules that `make mutants` changes: the unit tests of each, and the changes that change nothing."""

from __future__ import annotations

VERDICTS = ("inference/test_verdict.py", "verdict/test_verdict_stages.py", "training/test_training_verdict.py")
TESTS = {
    "proofmark/rules/legality.py": ("rules/test_legality.py",),
    "proofmark/rules/config.py": ("rules/test_legality.py", "rules/test_config.py"),
    "proofmark/measuring/statistics.py": ("measuring/test_statistics.py",),
    "proofmark/inference/outcome/verdict.py": VERDICTS,
    "proofmark/inference/outcome/validated.py": ("inference/test_validated.py",),
    "proofmark/inference/outcome/surplus.py": ("inference/test_surplus.py",),
    "proofmark/verdict/engine.py": VERDICTS,
    "proofmark/verdict/noise.py": ("verdict/test_noise.py",),
    "proofmark/verdict/stages.py": VERDICTS,
    "proofmark/training/outcome/verdict.py": VERDICTS,
    "proofmark/training/outcome/references.py": VERDICTS,
    "proofmark/training/outcome/shortfall.py": VERDICTS,
    "proofmark/rules/aims.py": ("rules/test_aims.py",),
    "proofmark/measuring/pace.py": ("measuring/test_pace.py",),
    "proofmark/measuring/fresh_pace.py": ("measuring/test_fresh_pace.py",),
    "proofmark/measuring/agreement.py": ("measuring/test_agreement.py", "measuring/test_names.py"),
    "proofmark/measuring/names.py": ("measuring/test_names.py",),
    "proofmark/measuring/honesty.py": ("measuring/test_honesty_checks.py",),
}
"""The unit tests of each module, under tests/unit."""

EQUIVALENT: dict[str, frozenset[tuple[str, str]]] = {
    "proofmark/inference/outcome/verdict.py": frozenset(
        {  # as many as asked for were let through before; a stage without complaints, and what is never reached
            (
                'return count == asked or (count > asked and record.config.get("scenario") == "latency")',
                "count > asked -> count >= asked",
            ),
            ("return []", "return [] -> return None"),
        }
    ),
    "proofmark/rules/legality.py": frozenset(
        {
            ("return False", "return False -> return None"),  # whoever asks `_same` asks for its truth
        }
    ),
    "proofmark/measuring/pace.py": frozenset(
        {  # a mean at the bound leaves nothing over it, so that chance does as much; a coin never falls on its edge
            (
                "return len(self.ratios) >= MOST and self.mean > PACE and by_chance(self.ratios) < CHANCE",
                "self.mean > PACE -> self.mean >= PACE",
            ),
            (
                "tosses = (sum(each if coins.random() < 0.5 else -each for each in excess) for _ in range(TOSSES))",
                "coins.random() < 0.5 -> coins.random() <= 0.5",
            ),
            (
                "return sum(toss >= total - 1e-9 for toss in tosses) / TOSSES",
                "toss >= total - 1e-09 -> toss > total - 1e-09",
            ),
        }
    ),
    "proofmark/measuring/agreement.py": frozenset(
        {  # types; tensors of one call, of one loader, or of forms that were compared before; `_same` is a truth
            (
                'Ask = Callable[["list[torch.Tensor]"], "list[torch.Tensor]"]',
                "'list[torch.Tensor]' -> 'XXlist[torch.Tensor]XX'",
            ),
            ("among = [torch.cat(column) for column in zip(*others, strict=True)]", "True -> False"),
            (
                "inputs = [torch.cat(column) for column in zip(*(self._inputs[row] for row in rows), strict=True)]",
                "True -> False",
            ),
            ("return [torch.cat(column) for column in zip(*answers, strict=True)]", "True -> False"),
            ("each = zip(answer, wanted, among, strict=True)", "True -> False"),
            ("pairs = zip(now, then, strict=True)", "True -> False"),
            ("return False", "return False -> return None"),
        }
    ),
    "proofmark/measuring/names.py": frozenset(
        {  # types; twice two is two squared
            (
                'Shortfall = Callable[["list[torch.Tensor]", "list[torch.Tensor]"], "list[torch.Tensor]"]',
                "'list[torch.Tensor]' -> 'XXlist[torch.Tensor]XX'",
            ),
            ("likely = (math.sqrt(half**2 + max(0, seen.wrong - 1)) - half) ** 2", "half ** 2 -> half * 2"),
        }
    ),
    "proofmark/measuring/fresh_pace.py": frozenset(
        {  # other draws are as good; no sum of times is the bound itself
            ("TOSSES = 20_000", "20000 -> 20001"),
            ("chance = np.random.default_rng(0)", "0 -> 1"),
            (
                "return float((total >= took * (1 - 1e-9)).mean())",
                "total >= took * (1 - 1e-09) -> total > took * (1 - 1e-09)",
            ),
        }
    ),
    "proofmark/measuring/honesty.py": frozenset(
        {
            ("_agreement(answers, reference, engine, synchronize, precision, len(new[0][0])),", "0 -> 1")
        }  # all are as long
    ),
    "proofmark/measuring/statistics.py": frozenset(
        {  # the lengths were compared before; where a search begins, it ends at the same place
            ("rates = [count / took for count, took in zip(items, seconds, strict=True)]", "True -> False"),
            ("low, high = discarded + 1, discarded + 2", "discarded + 1 -> discarded - 1"),
            ("low, high = discarded + 1, discarded + 2", "1 -> 2"),
            ("low, high = discarded + 1, discarded + 2", "2 -> 3"),
            ("low, high = high, high * 2", "2 -> 3"),
            (  # both percentiles need eleven samples
                'found = {"p50": ordered[(count - 1) // 2]} if count >= samples_needed(50) else {}',
                "50 -> 51",
            ),
            (
                "while _binomial_cdf(high, tail, discarded) > 1 - CONFIDENCE:",
                "_binomial_cdf(high, tail, discarded) > 1 - CONFIDENCE -> "
                "_binomial_cdf(high, tail, discarded) >= 1 - CONFIDENCE",
            ),
            (
                "if _binomial_cdf(middle, tail, discarded) <= 1 - CONFIDENCE:",
                "_binomial_cdf(middle, tail, discarded) <= 1 - CONFIDENCE -> "
                "_binomial_cdf(middle, tail, discarded) < 1 - CONFIDENCE",
            ),
            (
                "enough = takewhile(lambda so_far: so_far <= 1 - CONFIDENCE, "
                "accumulate(_binomial(count, 1 - percentile / 100)))",
                "so_far <= 1 - CONFIDENCE -> so_far < 1 - CONFIDENCE",
            ),
        }
    ),
}
"""Mutants that no test can kill, since they do the same: by module, the line that is changed and the change."""
