"""Dataclass and attrs items, passed on half-filled by cb_kwargs, with what people put beside them."""

from datetime import date
from decimal import Decimal

import scrapy

from shop.items import Product, Visitor


class ProductsSpider(scrapy.Spider):
    name = "products"

    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.base = base

    async def start(self):
        yield scrapy.Request(self.base + "/", self.parse_list, cb_kwargs={"day": date(2026, 5, 1)})

    def parse_list(self, response, day):
        for number, link in enumerate(response.css("nav a.item")):
            product = Product(link.css("::text").get(), tags=["listed"])
            yield response.follow(
                link,
                self.parse_product,
                cb_kwargs={"product": product, "place": (number, "list"), "day": day},
                meta={"visitor": Visitor("ann", number), "seen": {1: "one"}},
                priority=number,
            )

    def parse_product(self, response, product, place, day):
        product.price = Decimal(response.css(".price::text").get())
        product.tags += [place[1], day.isoformat(), response.meta["visitor"].name]
        product.tags.append(response.meta["seen"][1])
        yield product
