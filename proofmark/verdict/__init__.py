"""From a record to a verdict: kinds, the stages that every suite shares, the noise that a figure may have."""
