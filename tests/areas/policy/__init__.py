"""Tests of sallyport.areas.policy."""
