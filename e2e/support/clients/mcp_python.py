"""The official Python client, of either major version: one line of JSON for each step.

Arguments: `http` or `sse`, the URL, the access key. PYTHONPATH decides on the version.
"""

import asyncio
import contextlib
import json
import sys
from importlib.metadata import version

TRANSPORT, URL, KEY = sys.argv[1:4]
HEADERS = {"Authorization": f"Bearer {KEY}"}
IS_NEXT = version("mcp").startswith("2.")

if IS_NEXT:
    import httpx2
    import mcp_types as types
    from mcp.client.client import Client
else:
    import httpx
    from mcp import ClientSession, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client


async def sampled(_context, _params):
    content = types.TextContent(type="text", text="sampled words")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


async def elicited(_context, _params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])


CALLBACKS = {
    "sampling_callback": sampled,
    "elicitation_callback": elicited,
    "list_roots_callback": roots,
}


@contextlib.asynccontextmanager
async def transport():
    if TRANSPORT == "sse":
        async with sse_client(URL, headers=HEADERS) as streams:
            yield streams
        return
    library = httpx2 if IS_NEXT else httpx
    async with library.AsyncClient(headers=HEADERS, timeout=30) as http:
        async with streamable_http_client(URL, http_client=http) as streams:
            yield streams


@contextlib.asynccontextmanager
async def connected():
    if IS_NEXT:
        async with Client(transport(), **CALLBACKS) as client:
            yield client
        return
    async with transport() as (read, write, *_):
        async with ClientSession(read, write, **CALLBACKS) as session:
            await session.initialize()
            yield session


async def attempt(name, call):
    try:
        print(json.dumps({"name": name, "value": await call()}), flush=True)
    except Exception as error:  # shown, and compared by the test
        print(json.dumps({"name": name, "error": str(error)}), flush=True)


async def main():
    async with connected() as client:

        async def names():
            return [tool.name for tool in (await client.list_tools()).tools]

        def call(tool, arguments=None, **more):
            async def run():
                result = await client.call_tool(tool, arguments or {}, **more)
                return "\n".join(getattr(part, "text", "") for part in result.content)

            return run

        seen = []

        async def progress(value, _total, _message):
            seen.append(value)

        async def counted():
            arguments = {"duration": 0.4, "steps": 4}
            await call("trigger-long-running-operation", arguments, progress_callback=progress)()
            return seen

        async def cancelled():
            arguments = {"duration": 600, "steps": 1200}
            task = asyncio.create_task(
                call("trigger-long-running-operation", arguments, progress_callback=progress)()
            )
            while len(seen) < 6:
                await asyncio.sleep(0.01)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            return await call("echo", {"message": "after"})()

        await attempt("list", names)
        await attempt("call", call("echo", {"message": "hello"}))
        await attempt("denied", call("get-env"))
        await attempt("after", call("echo", {"message": "still here"}))
        await attempt("sampling", call("trigger-sampling-request", {"prompt": "p", "maxTokens": 5}))
        await attempt("elicitation", call("trigger-elicitation-request"))
        await attempt("roots", call("get-roots-list"))
        await attempt("progress", counted)
        await attempt("cancel", cancelled)


asyncio.run(main())
