"""`python -m crawlproj.demo`: serve the demo web.

The first line of the output is JSON with the port and the hosts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from pathlib import Path

from crawlproj.demo.clock import FrozenClock
from crawlproj.demo.profiles import PROFILES
from crawlproj.demo.server import DemoServer, PortInUse


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m crawlproj.demo", description="Serve the demo web on loopback."
    )
    parser.add_argument("--profile", choices=sorted(PROFILES), default="demo")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--t0",
        type=float,
        help="unix time of the web's first moment (default: now); "
        "give the same again, with the same port, to go on with the same web",
    )
    parser.add_argument(
        "--speed", type=float, default=1.0, help="how much faster articles appear and change"
    )
    parser.add_argument(
        "--freeze", action="store_true", help="the web's time stands still while this runs"
    )
    parser.add_argument("--log", type=Path, help="append every request as a JSON line")
    parser.add_argument(
        "--control",
        action="store_true",
        help="take orders (now, advance SECONDS) from the input, end with it",
    )
    return parser.parse_args(words)


async def handle_commands(demo: DemoServer) -> None:
    """Reply to each command with a JSON line, once responses under way are logged."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command, _, value = line.decode().strip().partition(" ")
        if command == "advance" and isinstance(demo.now, FrozenClock):
            demo.now.advance(float(value))
        elif command != "now":
            error = f"cannot do {command!r}: only now and, with --freeze, advance"
            print(json.dumps({"error": error}), flush=True)
            continue
        for _ in range(1000):
            if not demo.log.pending:
                break
            await asyncio.sleep(0.005)
        print(json.dumps({"now": demo.now()}), flush=True)
    demo.stop()


async def run_demo(demo: DemoServer, take_commands: bool) -> None:
    """Print what the web is, and serve it until a signal, or the end of the input, stops it."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, demo.stop)
    world = demo.web.world
    hello = {
        "port": demo.port,
        "hosts": demo.dns_hosts,
        "seeds": demo.web.seed_urls,
        "profile": demo.profile.name,
        "t0": world.t0,
        "seed": world.seed,
        "speed": world.speed,
    }
    print(json.dumps(hello), flush=True)
    commands = None
    if take_commands:
        commands = asyncio.create_task(handle_commands(demo))
    await demo.serve()
    if commands:
        commands.cancel()


def main() -> int:
    args = parse_arguments()
    now = time.time()
    clock = None
    if args.freeze:
        clock = FrozenClock(now)
    t0 = args.t0
    if t0 is None:
        t0 = now
    try:
        demo = DemoServer(
            args.profile,
            clock=clock,
            t0=t0,
            speed=args.speed,
            seed=args.seed,
            port=args.port,
            log_path=args.log,
        )
    except PortInUse as error:
        print(error.strerror, file=sys.stderr)
        return 1
    with demo.log:
        asyncio.run(run_demo(demo, args.control))
    return 0


if __name__ == "__main__":
    sys.exit(main())
