"""Tests of sallyport.login."""
