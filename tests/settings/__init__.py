"""Tests of sallyport.settings."""
