"""Tests of sallyport.areas.preview."""
