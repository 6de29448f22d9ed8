"""Tests of sallyport.login.bypass."""
