"""Tests of sallyport.areas.domains."""
