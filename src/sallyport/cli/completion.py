"""`sallyport completion`: the scripts with which shells complete commands, options and their values.

Such a script runs `sallyport` with the variable _SALLYPORT_COMPLETE, and click answers with the possible words.
"""

import click
from click.shell_completion import ShellComplete, get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which a shell completes commands and options."""
    click.echo(script(ctx.find_root().command, "sallyport", shell), nl=False)


def script(root: click.Command, name: str, shell: str) -> str:
    """Return the script of a shell for a program. name: of the program."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click has no completion for {shell}")
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    return ShellComplete.source(kind(root, {}, name, variable))  # that of bash starts bash to look at its version
