"""Commands are found by name and check their arguments."""

import pytest
from pydantic import BaseModel, ConfigDict

from sallyport.base.errors import BODY, Invalid, NotFound
from sallyport.base.wire import JSON
from sallyport.shell.command import Command, Commands, LocalOperations, command


class Greet(BaseModel):
    """A greeting and its recipient."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    name: str
    times: int = 1


async def greet(arguments: Greet) -> JSON:
    return [f"hello {arguments.name}"] * arguments.times


def commands() -> dict[str, Command]:
    return {"greet": command(Greet, greet)}


async def test_a_command_runs_with_its_arguments() -> None:
    """Arguments are parsed into an instance of the command's model."""
    ready = Commands([commands()]).ready("greet", {"name": "you", "times": "2"})
    assert await ready() == ["hello you", "hello you"]


def test_wrong_arguments_are_named_without_their_values() -> None:
    """Invalid names each wrong field that is known. Its message contains neither a value nor the name of an unknown
    argument.
    """
    with pytest.raises(Invalid) as caught:
        Commands([commands()]).ready("greet", {"times": "hunter2", "more": "hunter2"})
    assert [field.field for field in caught.value.fields] == ["name", "times", BODY]
    assert "hunter2" not in f"{caught.value} {caught.value.fields}"


def test_an_unknown_command_is_not_found() -> None:
    """An unknown command raises NotFound, and the message does not repeat its name."""
    with pytest.raises(NotFound, match="does not know this command"):
        Commands([]).ready("hunter2", {})


def test_a_name_belongs_to_one_slice() -> None:
    """If two slices define the same command, an error is raised at the start."""
    with pytest.raises(ValueError, match="greet"):
        Commands([commands(), commands()])


async def test_a_local_operation_is_declared_by_its_annotation() -> None:
    """The annotation of the parameter is the body. A function without a parameter refuses every argument."""
    local = LocalOperations()

    @local("greet")
    async def greeting(body: Greet) -> JSON:
        return await greet(body)

    @local("silence")
    async def silence() -> JSON:
        return None

    assert await Commands([local]).ready("greet", {"name": "you"})() == ["hello you"]
    assert await Commands([local]).ready("silence", {})() is None
    with pytest.raises(Invalid):
        Commands([local]).ready("silence", {"name": "you"})


def test_a_local_operation_needs_an_annotation() -> None:
    """Without the model of the body, the declaration fails when the service starts."""
    with pytest.raises(TypeError, match="signature"):
        LocalOperations()("greet")(lambda body: silence())


async def silence() -> JSON:
    return None
