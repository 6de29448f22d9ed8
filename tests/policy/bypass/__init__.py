"""Tests of sallyport.policy.bypass."""
