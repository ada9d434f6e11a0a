"""Choosing without labels, on a sample of the rows.

`structure` says whether there are clusters, and how many; `families` and `pool` make candidates,
`judge` says what speaks for each.  `auto` is the choice that `AutoClustering` makes before its fit;
`run` is `dmkc.select`, which shows the same choice and settles it by answers (`choose`,
`questions`).
"""
