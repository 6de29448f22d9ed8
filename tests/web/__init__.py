"""Tests of sallyport.web."""
