"""No gateway at all: what a client's retries do by themselves, and whether the kit sees it."""

from holdfast_faults.adapter import Adapter, Launch, Site


def prepare(site: Site) -> Launch:
    return Launch(command=(), url=site.upstream_url)


DIRECT = Adapter(
    name="direct",
    about="no gateway: clients call the upstream itself",
    keys="none; the upstream ignores them",
    prepare=prepare,
    replicas=1,
    preloads=False,
)
