"""Tests of sallyport.store."""
