"""The settings file of `server install` is complete and valid. Its values are the defaults."""

import re
from itertools import pairwise
from pathlib import Path

from sallyport.deploy.settings_file import TABLES, settings_file
from sallyport.host.systemd import DATA_DIR
from sallyport.settings.limits import LIMITS
from sallyport.settings.settings import Settings, load

SETTING = r"(# )?[a-z_]+ = "
INSTALLED = Settings(data_dir=DATA_DIR)


def loaded(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "sallyport.toml"
    path.write_text(text)
    return load(path, {})


def test_only_the_data_directory_is_set(tmp_path: Path) -> None:
    """The written file sets only the data directory. All other settings keep their defaults."""
    assert loaded(tmp_path, settings_file()) == INSTALLED


def test_the_commented_settings_are_the_defaults(tmp_path: Path) -> None:
    """If all commented settings are activated, every setting has its default."""
    text = re.sub(r"(?m)^# (?=\[limits\]$|[a-z_]+ = )", "", settings_file())
    found = loaded(tmp_path, text)
    assert found.model_dump() == INSTALLED.model_dump()
    names = re.findall(r"(?m)^([a-z_]+) = ", text)
    assert names == [name for name in Settings.model_fields if name not in TABLES] + [limit.name for limit in LIMITS]


def test_every_setting_is_described() -> None:
    """Before each setting there is at least one line that describes it."""
    for name, field in Settings.model_fields.items():
        assert field.description, name
    lines = settings_file().partition("# [limits]")[0].splitlines()
    for before, line in pairwise(lines):
        if re.match(SETTING, line):
            assert re.match(r"# \S", before) and not re.match(SETTING, before), line
    assert max(map(len, settings_file().splitlines())) <= 120
