"""The schema's history: one module for each step, in order. A step that was released is never changed."""

from sqlite_utils import Migrations

from sallyport.store.migrations import m0001_inventory

ALL = Migrations("sallyport")
ALL(name="m0001_inventory")(m0001_inventory.apply)
