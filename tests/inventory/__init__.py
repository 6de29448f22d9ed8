"""Tests of sallyport.inventory."""
