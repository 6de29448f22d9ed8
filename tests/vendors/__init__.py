"""Tests of sallyport.vendors, with real requests of products in packets/."""
