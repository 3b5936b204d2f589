"""Behind a login: a form with a token, then pages that need the cookie."""

import scrapy


class MembersSpider(scrapy.Spider):
    name = "members"

    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [base + "/login"]

    def parse(self, response):
        return scrapy.FormRequest.from_response(
            response, formdata={"user": "ann", "password": "x"}, callback=self.after_login
        )

    def after_login(self, response):
        for link in response.css("a"):
            yield response.follow(link, self.account, cb_kwargs={"label": link.css("::text").get()})

    def account(self, response, label):
        yield {"label": label, "who": response.css("p::text").get()}
