"""The history of the schema: the baseline, then one module for each later step. A released step is never changed."""

from sqlite_utils import Migrations

from sallyport.store.migrations import m0001_baseline

BASELINE = "m0001_baseline"
ALL = Migrations("sallyport")
ALL(name=BASELINE)(m0001_baseline.apply)
