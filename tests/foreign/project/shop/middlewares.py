class StampMiddleware:
    async def process_spider_output(self, response, result):
        async for thing in result:
            if isinstance(thing, dict):
                thing["stamp"] = 1
            yield thing
