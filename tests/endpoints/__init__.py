"""Tests of sallyport.endpoints."""
