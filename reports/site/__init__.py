"""The scoreboard: a static site from any number of result directories, with the history of what was run.

`discover` finds records, `entry` says what tables need of one, `ranking` who is ranked and `history` where a trend
changed; `index` keeps what is known between two builds; `build` puts it together.
"""
