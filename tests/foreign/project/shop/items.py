from dataclasses import dataclass, field
from decimal import Decimal

import attr
import scrapy


class QuoteItem(scrapy.Item):
    text = scrapy.Field()
    author = scrapy.Field()
    born = scrapy.Field()


@dataclass
class Product:
    name: str
    price: Decimal | None = None
    tags: list[str] = field(default_factory=list)


@attr.s(auto_attribs=True)
class Visitor:
    name: str
    page: int = 0
