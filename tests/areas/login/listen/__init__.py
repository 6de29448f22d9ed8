"""Tests of sallyport.areas.login.listen."""
