"""How is a gateway driven that has no adapter? By a URL that is served already, or by a command to start."""

import shlex

from holdfast_faults.adapter import Adapter, Launch, Site
from holdfast_faults.ports import free_port


def served(name: str, url: str, headers: dict[str, str]) -> Adapter:
    """Somebody else runs it, in front of the kit's upstream at the port they were told."""

    def prepare(_site: Site) -> Launch:
        return Launch(command=(), url=url, headers=headers)

    return Adapter(
        name=name, about=url, keys="unknown; sent in every way", prepare=prepare, replicas=1, preloads=False
    )


def commanded(name: str, command: str, url: str, headers: dict[str, str]) -> Adapter:
    """`{port}`, `{upstream}`, `{upstream_command}` and `{folder}` are filled in."""

    def prepare(site: Site) -> Launch:
        known = {
            "port": str(free_port()),
            "upstream": site.upstream_url,
            "upstream_command": shlex.join(site.upstream_command),
            "folder": str(site.folder),
        }
        words = [_filled(word, known) for word in shlex.split(command)]
        return Launch(command=words, url=_filled(url, known), headers=headers)

    return Adapter(name=name, about=command, keys="unknown; sent in every way", prepare=prepare, replicas=1)


def _filled(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(f"{{{name}}}", value)
    return text
