"""`python -m sallyport`: the same as the command `sallyport`."""

from sallyport.cli.main import main

if __name__ == "__main__":
    main()
