"""Tests of sallyport.tenancy."""
