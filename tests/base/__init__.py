"""Tests of sallyport.base."""
