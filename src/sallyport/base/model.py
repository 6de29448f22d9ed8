"""The root of all pydantic models: bodies and answers of the API, arguments of commands, settings of providers."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A model whose validator is made when it is first used, in a few milliseconds: a start would make hundreds, of
    which a day needs some."""

    model_config = ConfigDict(defer_build=True)
