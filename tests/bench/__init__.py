"""The benchmarks: Sallyport measured beside the program that people run today, on the same machine, in the same minute.

Figures of one machine say little about another, so nothing here asserts a time. What a benchmark does assert is that
its comparison is fair: every answer is authentic, and a server that claims to record has recorded each answer. A
comparison that fails this is void and prints no table.

`make bench` runs all of them; `make bench ARGS="radius --rounds 1"` one, quickly. Each benchmark is a module with a
`run(settings)` that gives Markdown, and a line in the list of `__main__`.
"""
