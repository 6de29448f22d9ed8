"""Tests of sallyport.domains."""
