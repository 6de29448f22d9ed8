"""Tests of sallyport.service."""
