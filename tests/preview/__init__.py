"""Tests of sallyport.preview."""
