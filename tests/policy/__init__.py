"""Tests of sallyport.policy."""
