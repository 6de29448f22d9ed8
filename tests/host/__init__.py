"""Tests of sallyport.host."""
