"""Tests of sallyport.login.preview."""
