"""What has happened at a gateway whose pages are full? Something of everything that people look at."""

from typing import Any

from holdfast.gateway.plans import Wish as Step
from holdfast.gateway.rules import Wish
from tests.browser.world import World

READS = 120
"""More than a page of the list holds."""
HOSTILE = {
    "script": "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
    "link": '<a href="/approvals/x/approve">Approve</a> [Approve](https://evil.example/approve)',
    "bidi": "refund \u202e00.51 EUR\u202c now\u200b\u2060\ufeff",
    "fake": "</div><form method=post action=/sign-out><button>Approve</button></form>",
}


async def fill(world: World, reads: int = READS) -> dict[str, str]:
    """Names of things to look at: approvals, calls, a rule."""
    made = await _answered(world)
    made |= await _waiting(world)
    made |= await _ended(world)
    for number in range(reads):
        await world.call("get_order", {"order_id": f"o-{5000 + number}"}, task=f"task-{number % 7}")
    await _standing(world)
    await world.gateway.halt(world.person("ana"), "shop.move_parcel", "the carrier loses parcels")
    return made


async def _waiting(world: World) -> dict[str, str]:
    first = await world.hold_refund(1500, task="return of a kettle", step="refund")
    half = await world.hold_refund(49_000)
    await world.gateway.decide(world.person("ana"), half["approval"]["id"], True, "looked at the photos")
    mail = {"order_id": world.order(), "subject": HOSTILE["link"], "body": "\n".join(HOSTILE.values())}
    hostile = await world.call("send_mail", mail, key="hostile", task=HOSTILE["bidi"])
    return {
        "held": first["approval"]["id"],
        "held_call": first["call_id"],
        "half": half["approval"]["id"],
        "hostile": hostile["approval"]["id"],
        "hostile_call": hostile["call_id"],
    }


async def _answered(world: World) -> dict[str, str]:
    made = await world.hold_refund(2500)
    for person in ("ana", "ben"):
        await world.gateway.decide(world.person(person), made["approval"]["id"], True)
    denied = await world.hold_refund(3500)
    await world.gateway.decide(world.person("ben"), denied["approval"]["id"], False, "no receipt")
    for number in range(5):
        mail = {"order_id": world.order(), "subject": "On its way", "body": f"Parcel {number} left today."}
        asked = await world.call("send_mail", mail, key=f"mail-{number}")
        await world.gateway.decide(world.person("ana"), asked["approval"]["id"], True)
    return {
        "done_call": made["call_id"],
        "denied": denied["approval"]["id"],
        "denied_call": denied["call_id"],
    }


async def _ended(world: World) -> dict[str, str]:
    ended: dict[str, Any] = {}
    for name, tool, more in (
        ("noted", "add_note", {"text": "asked for a call"}),
        ("unknown", "move_parcel", {}),
        ("lost", "move_parcel", {}),
    ):
        order = world.order()
        ended[name] = await world.call(tool, {"order_id": order, **more}, key=f"{tool}-{order}")
    ended["failed"] = await world.call("get_order", {"order_id": "o-0404"})
    ended["invalid"] = await world.call("refund", {"order_id": "mine", "amount_cents": -1})
    refused = {"tool": "shop.add_note", "arguments": {"order_id": "o-1001", "text": "hi"}, "key": "eve-1"}
    ended["refused"] = await world.ask("POST", "/v1/calls", "eve", refused)
    return {f"{name}_call": seen["call_id"] for name, seen in ended.items()}


async def _standing(world: World) -> None:
    gateway, ana, otto = world.gateway, world.person("ana"), world.person("otto")
    wish = Wish(
        tool="shop.send_mail",
        principals="otto/*",
        arguments={"subject": {"equals": "On its way"}},
        most=50,
        note="tracking mails",
    )
    rule = await gateway.rules.propose(ana, wish)
    await gateway.rules.accept(world.person("ben"), rule.id)
    await gateway.rules.propose(ana, Wish(tool="shop.send_mail", principals="otto/*", note="all of them"))
    steps = [
        Step(
            tool="shop.refund", arguments={"order_id": world.order(), "amount_cents": 900, "reason": "late"}
        ),
        Step(tool="shop.add_note", arguments={"order_id": "o-1001", "text": "refunded, told by mail"}),
    ]
    planned = await gateway.plans.propose(otto, steps, task="return of a lamp")
    assert planned.status == "asked", planned.message
