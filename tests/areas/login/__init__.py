"""Tests of sallyport.areas.login."""
