"""The body of a directory in a file, with its field mapping and its schedule."""

from pydantic import Field

from sallyport.areas.directory.bodies import SaveDirectory
from sallyport.areas.directory.mappings.bodies import FieldMappings
from sallyport.areas.directory.schedules.bodies import Every, FullEvery, Times, Zone
from sallyport.base.model import SentModel
from sallyport.web.bodies import Name


class ConfiguredSchedule(SentModel):
    """The schedule of a directory in a file."""

    everyMinutes: Every = 0
    timesOfDay: Times = Field(default_factory=list)
    timeZone: Zone = "UTC"
    fullEvery: FullEvery = 24


class ConfiguredGroupMapping(SentModel):
    """The field mapping of a group in a file."""

    groupName: Name = Field(description="Name of the group. No import needs to have read it yet.")
    fieldMappings: FieldMappings


class ConfiguredDirectory(SaveDirectory):
    """A directory in a file."""

    fieldMappings: FieldMappings = Field(default_factory=dict)
    groupMappings: list[ConfiguredGroupMapping] = Field(
        default_factory=list,
        max_length=1000,
        description="Field mappings of groups, before that of the directory.",
    )
    schedule: ConfiguredSchedule | None = Field(default=None, description="Times at which the directory is read.")
