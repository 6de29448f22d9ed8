"""Tests of sallyport.listen."""
