"""Copies of the service's code with an error, which the explorer must find."""

from dataclasses import replace
from importlib.util import module_from_spec, spec_from_loader
from inspect import getsource
from types import ModuleType

from sallyport.areas.login.second import repo, service, shared
from tests.explore.node import EMBEDDED, Code


def with_error(module: ModuleType, right: str, wrong: str, *, is_shared: bool = True) -> Code:
    """Return the code of the nodes, with a text of one module replaced. The text must occur once. is_shared: whether
    the nodes share the prompts in the store."""
    copies = {each: each for each in (repo, shared, service)}
    copies[module] = _copy(module, right, wrong)
    if module is repo:
        copies[shared] = _copy(shared)
        changed, used = vars(copies[repo]), vars(copies[shared])
        used["repo"] = copies[repo]
        used.update({name: changed[name] for name, value in vars(repo).items() if used.get(name) is value})
    if not is_shared:
        return replace(EMBEDDED, second=copies[service].SecondFactor)
    return Code(copies[service].SecondFactor, copies[shared].SharedCalls, copies[shared].SharedChallenges)


def _copy(module: ModuleType, right: str = "", wrong: str = "") -> ModuleType:
    source = getsource(module)
    if right:
        assert source.count(right) == 1, f"{module.__name__} has this text {source.count(right)} times: {right}"
        source = source.replace(right, wrong)
    spec = spec_from_loader(module.__name__, None)
    assert spec is not None
    copy = module_from_spec(spec)
    exec(compile(source, module.__name__, "exec"), vars(copy))  # noqa: S102  the own code, changed
    return copy
