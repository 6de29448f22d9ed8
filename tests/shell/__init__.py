"""Tests of sallyport.shell."""
