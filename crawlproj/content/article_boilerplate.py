"""Lines that stand in many articles and belong to none: "Read also", newsletters, "Share this",
copyright, bylines. In the languages that much of the news is written in.

A line counts only if it begins with such words and is short: an article about newsletters stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MAX_LABEL: Final = 250
"""Characters of a line such as "Read also: ..."; titles of articles are shorter."""
MAX_NOTICE: Final = 300
MAX_BYLINE: Final = 120

_LABELS: Final = """
also read|read also|read more|read next|read now|see also|see more|also see|more on this
|more on this (?:story|topic)|more from [\\w' ]{2,40}|more stories|more news|more coverage
|related
|related (?:articles?|content|coverage|links?|news|posts?|reading|stor(?:y|ies)|topics?)
|recommended(?: (?:for you|reading|stories|articles))?|don.t miss(?: this)?|must read
|you (?:may|might) also (?:like|be interested in|enjoy)|you may be interested in
|most (?:read|popular|viewed)(?: in [\\w ]{2,30})?|trending(?: now| stories)?|up next
|what to read next
|in case you missed it|explore further|editors?.? (?:picks?|choice)|top stories|latest news
|watch(?: now| also| more)?|listen(?: now)?|story timeline|also on [\\w' ]{2,40}
|more like this
|lesen sie (?:auch|mehr|hier|dazu)(?: [\\w ]{2,20})?|lies auch
|mehr (?:zum thema|dazu|lesen|news)
|mehr zu diesem thema|das könnte (?:sie|dich|euch) auch interessieren|auch interessant
|siehe auch
|weiterlesen|passend dazu|meistgelesen|zum thema
|weitere (?:artikel|meldungen|themen|nachrichten)
|empfehlungen (?:der redaktion|für sie)|themen in diesem artikel|hier weiterlesen
|(?:à )?(?:lire|voir|écouter|regarder) (?:aussi|également|plus)|a lire aussi|à (?:lire|voir)
|lire la suite|sur le même (?:sujet|thème)|les plus lus|découvrez (?:aussi|également)
|nos derniers articles|articles? (?:liés?|similaires?|connexes?)|pour aller plus loin
|vous (?:aimerez|pourriez) (?:aussi|également)(?: aimer)?|à ne pas manquer
|le[ae]r? (?:también|tambien|además|más)|lee(?: también| tambien| además| más)
|ver (?:también|más)
|(?:te|le|también te|quizás te) (?:puede|podría|pueda) interesar|mir[aá] también
|lo más (?:leído|visto)
|(?:noticias|notas|artículos|contenidos?) relacionad[oa]s?|relacionad[oa]s?|sigue leyendo
|seguir leyendo
|más (?:información|noticias)|no te pierdas|puedes leer(?: también)?|más sobre este tema
|le(?:ia|r) (?:também|mais)|veja (?:também|mais)|saiba mais|confira(?: também)?|mais lidas
|(?:notícias|matérias|artigos) relacionad[oa]s|relacionadas|continue lendo
|você (?:também )?pode gostar
|leggi (?:anche|tutto|di più|qui|pure)|vedi anche|guarda anche
|(?:ti )?potrebbe(?:ro)? (?:anche )?interessarti
|articoli correlati|i più letti|per approfondire|continua a leggere|scopri (?:anche|di più)
|lees (?:ook|meer|verder)|bekijk ook|meer (?:nieuws|lezen|over dit onderwerp)
|ook interessant|gerelateerde? \\w+
|läs (?:också|även|mer|vidare)|se (?:också|även|også)|mer om ämnet|mest läst|relaterat
|missa inte
|les(?: også|e også| mer| mere)|læs (?:også|mere)|mest lest|mest læste?|lue (?:myös|lisää)
|katso myös
|(?:czytaj|zobacz|przeczytaj|sprawdź|oglądaj|polecamy) (?:też|także|również|więcej|dalej)
|powiązane artykuły
|(?:čtěte|přečtěte si|podívejte se) (?:také|také na|též|i)|související(?: články)?
|mohlo by vás zajímat
|(?:čítajte|prečítajte si) (?:aj|tiež)|súvisiace(?: články)?|mohlo by vás zaujímať
|kapcsolódó(?: cikkek)?|olvassa el ezt is|ezt is olvassa el|ajánljuk még|ez is érdekelheti
|cite[sșş]te [sșş]i|cite[sșş]te mai mult|vezi [sșş]i|pročitajte (?:još|i|više)
|pročitaj (?:i|još)|preberite (?:tudi|več)
|читайте (?:также|еще|ещё|далее|по теме|нас)|читать (?:также|далее|полностью)|смотрите также
|материалы по теме
|(?:новости|материалы|статьи) по теме|по теме|подробнее|другие новости
|читайте (?:також|ще)|дивіться також|читати (?:також|далі)
|(?:матеріали|новини) (?:за темою|по темі)
|прочетете (?:още|също)|вижте (?:още|също)|свързани (?:новини|статии)
|διαβάστε (?:επίσης|ακόμα|ακόμη|περισσότερα|και)|δείτε (?:επίσης|ακόμα|ακόμη|και)
|σχετικά άρθρα
|(?:bunlar da )?ilginizi çekebilir|ilgili haberler?|devamını oku
|ayrıca (?:oku|okuyun|bakınız)|haberin devamı
|(?:ا|إ)قرأ (?:أيضا|أيضًا|أيضاً|المزيد|أكثر)|شاهد (?:أيضا|أيضًا|أيضاً)
|(?:مواضيع|أخبار|مقالات) ذات صلة
|بیشتر بخوانید|(?:مطالب|اخبار) مرتبط|همچنین بخوانید|קראו (?:גם|עוד)|קרא (?:גם|עוד)|ראו גם
|כתבות נוספות
|(?:यह|ये|इसे|ये) भी (?:पढ़ें|पढ़ें|देखें)|और (?:पढ़ें|पढ़ें)|संबंधित खबरें|আর[ওো] পড়ুন
|আর[ওো] পড়ুন
|baca (?:juga|selengkapnya|selanjutnya)|simak (?:juga|video)|lihat juga|artikel terkait
|berita terkait
|xem thêm|đọc thêm|(?:tin|bài viết) liên quan|อ่านเพิ่มเติม|อ่านต่อ|ข่าวที่เกี่ยวข้อง
"""

_LABELS_WITHOUT_SPACES: Final = """
延伸阅读|延伸閱讀|相关阅读|相關閱讀|相关新闻|相關新聞|相关报道|相關報導|推荐阅读|推薦閱讀|更多新闻|更多新聞|閱讀更多|阅读更多
|関連記事|関連ニュース|関連リンク|あわせて読みたい|合わせて読みたい|続きを読む|こちらもおすすめ|おすすめ記事
|관련 ?기사|관련 ?뉴스|함께 보면 좋은 기사|많이 본 뉴스|더보기
"""

_NOTICES: Final = """
(?:sign|signing) up (?:for|to|here|now|today)\\b|subscribe (?:to|now|here|today|for)\\b
|get (?:our|the|all the|more) .{0,60}(?:newsletter|inbox|delivered)
|thanks for (?:signing up|subscribing)
|(?:please )?(?:follow|like|find|join|contact|visit) (?:us|me|our)\\b
|follow [\\w.' ]{2,40} on (?:x|twitter|facebook|instagram)\\b
|(?:click|tap) here (?:to|for)\\b|download (?:the|our) .{0,30}\\bapp\\b
|get the .{0,30}\\bapp\\b
|share (?:this|on|via)\\b|print this|email this|save this (?:story|article)
|(?:this )?advertisement|advertising|sponsored(?: content)?|story continues(?: below)?
|article continues
|copyright\\b|©|\\(c\\) ?\\d{4}|all rights reserved
|source ?:|filed under|posted in|tags? ?:|tagged(?: with)?\\b|topics? ?:|categor(?:y|ies) ?:
|(?:leave|post|add|write) a (?:comment|reply)
|(?:view|see|show|read) (?:all )?(?:\\d+ )?comments|comments(?: \\(?\\d+\\)?)?$
|there was an error|please enter a valid|have a (?:news )?tip\\b|got a (?:news )?tip\\b
|send (?:us )?(?:your )?tips\\b
|if you buy something through|we may (?:earn|receive|get) (?:a |an )?(?:\\w+ )?commission
|this post (?:may )?contains? affiliate
|when you (?:buy|purchase) through
|(?:reading time|lesezeit|temps de lecture|tiempo de lectura|tempo de leitura) ?:?
|(?:tempo di lettura|leestijd) ?:?
|\\d+ ?min(?:ute)?s? read$|last (?:updated|modified)\\b|updated? ?:|(?:first )?published ?:
|newsletter\\b.{0,40}$|(?:jetzt )?(?:newsletter )?(?:abonnieren|anmelden)
|melden sie sich (?:hier )?(?:für|an|zum)\\b|folgen sie uns
|artikel (?:teilen|drucken)|anzeige$|werbung$|alle rechte vorbehalten|quelle ?:
|teilen(?: sie)?$|hier geht es zu[rm]
|inscrivez[- ]vous|abonnez[- ]vous|suivez[- ]nous|partager(?: (?:sur|cet article))?$
|publicité$|tous droits réservés|recevez (?:notre|la|nos)\\b
|suscr[ií]b[ea](?:te|se)
|s[ií]gue(?:nos)?\\b.{0,60}(?:redes|twitter|facebook|instagram|whatsapp|telegram)
|compart(?:ir|e)(?: en)?$|publicidad$|todos los derechos reservados|fuente ?:
|inscreva-se|assine (?:a|o|nossa|já)\\b
|siga(?:-nos)?\\b.{0,60}(?:redes|twitter|facebook|instagram|whatsapp)
|compartilhe?(?: (?:no|isso|esta))?|todos os direitos reservados|fonte ?:|publicidade$
|iscriviti|seguici|condividi(?: su)?|tutti i diritti riservati|riproduzione riservata
|pubblicità$|abbonati\\b
|(?:meld je|schrijf je) (?:aan|in)\\b|volg ons|deel (?:dit|op)\\b|advertentie$
|alle rechten voorbehouden|bron ?:
|prenumerera|följ oss|dela (?:artikeln|på)\\b|annons$|foto ?:|følg oss|del artikk?elen
|tilaa uutiskirje|mainos$|abonner på
|zapisz się|subskrybuj|obserwuj nas|udostępnij|reklama$|wszelkie prawa zastrzeżone|źródło ?:
|zdroj ?:|sledujte nás|přihlaste se
|подпи(?:сывайтесь|шитесь|саться)|поделиться|реклама$|все права защищены|источник ?:|фото ?:
|следите за
|підпи(?:суйтесь|шіться|суйтеся)|поділитися|джерело ?:|ακολουθήστε|εγγραφείτε|πηγή ?:
|abone ol|takip edin|kaynak ?:|bizi takip
|ikuti (?:kami|berita|saluran)|langganan|bagikan|sumber ?:|theo dõi|đăng ký|nguồn ?:|chia sẻ
|تابعونا|اشترك|المصدر ?:|منبع ?:
|עקבו אחרינו|הירשמו|שתפו
"""

_NOTICES_WITHOUT_SPACES: Final = """
责任编辑|責任編輯|编辑[:：]|編輯[:：]|来源[:：]|來源[:：]|版权所有|版權所有|未经授权|未經授權|分享到|扫一扫
|关注我们|關注我們|点击订阅
|この記事を(?:シェア|共有)|無断転載|ツイート$|シェアする|フォローする|著作権
|저작권자|무단 ?전재|ⓒ|구독하기|공유하기
"""


def _any_of(words: str) -> str:
    """A pattern for lines that begin with one of these."""
    joined = words.replace("\n", "")
    return rf"[\W_]*(?:{joined})"


_SPACED_LABEL: Final = re.compile(_any_of(_LABELS) + r"\s*(?:[:：>»›→|…]|\.\.\.|[-–—] |$)", re.I)
_UNSPACED_LABEL: Final = re.compile(
    _any_of(_LABELS_WITHOUT_SPACES) + r"\s*(?:[:：>»|…】\]]|$)", re.I
)
_SPACED_NOTICE: Final = re.compile(_any_of(_NOTICES), re.I)
_UNSPACED_NOTICE: Final = re.compile(_any_of(_NOTICES_WITHOUT_SPACES), re.I)
_INVITATION: Final = re.compile(
    r"""
    \b(?:follow|find|contact|reach|e-?mail)\s
      (?:him|her|them|us|me|@\w+|[\w.]+\s[\w.]+)\s(?:on|at)\b
    | \bmay\sbe\sreached\sat\b | \bon\s(?:twitter|facebook|instagram)(?:\sat)?\s@\w+
    | \b(?:auf|sur|en|no|su|op|på|na|w|в|у)\s(?:twitter|facebook|instagram|telegram|whatsapp)\b
    | \bsubscri\w+.{0,60}newsletter
    | newsletter.{0,60}\b(?:subscri|sign\sup|abonn|suscr|inscr|iscri)
    """,
    re.I | re.X,
)
_TIME: Final = re.compile(
    r"""
    \b(?:19|20)\d\d\b | \b\d{1,2}[:h]\d{2}\b | \b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b
    | (?:19|20)\d\d\s?[年년].{0,20}[日일]
    """,
    re.X,
)
_LETTERS: Final = re.compile(r"[^\W\d_]+")


def is_label(line: str) -> bool:
    """Whether a line sends its reader to another article."""
    if len(line) > MAX_LABEL:
        return False
    return bool(_SPACED_LABEL.match(line) or _UNSPACED_LABEL.match(line))


def is_notice(line: str) -> bool:
    """Whether a line asks for something or says whose it is: at the end of an article, or between
    two of its parts.
    """
    if len(line) > MAX_NOTICE:
        return False
    return bool(_SPACED_NOTICE.match(line) or _UNSPACED_NOTICE.match(line))


def is_invitation(line: str) -> bool:
    """Whether a line at the end of an article invites its reader to follow, or to subscribe."""
    return len(line) <= MAX_NOTICE and bool(_INVITATION.search(line))


def is_byline(line: str, authors: Sequence[str]) -> bool:
    """Whether a line at the beginning says who wrote it, or when; `authors` are in lower case."""
    if len(line) > MAX_BYLINE:
        return False
    if line.startswith(("http://", "https://")) or is_notice(line):
        return True
    rest = line.casefold()
    for author in authors:
        rest = rest.replace(author, " ")
    known = len(rest) < len(line)
    rest, times = _TIME.subn(" ", rest)
    words = _LETTERS.findall(rest)
    if known and len(words) <= 3:
        return True
    return bool(times) and len(words) <= 7 and not line.endswith((".", "!", "?", "。", ":"))
