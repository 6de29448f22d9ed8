"""The benchmarks. They measure Sallyport and the program that people use today on the same machine, one directly after
the other.

Figures from one machine say little about another machine, so no benchmark asserts a time. A benchmark asserts only that
its comparison is fair: every answer is authentic, and a server that is said to record has recorded each answer. If this
is not the case, the comparison is void and prints no table.

`make bench` runs all of them; `make bench ARGS="radius --rounds 1"` runs one of them, quickly. Each benchmark is a
module with a `run(settings)` that returns Markdown, and has a line in the list of `__main__`.
"""
