from scrapy.exceptions import DropItem


class PricePipeline:
    """Knows its own items only, and says so by falling over."""

    def process_item(self, item):
        if item["kind"] == "junk":
            raise DropItem("junk")
        item["checked"] = True
        return item
