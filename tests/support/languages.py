"""Sentences in languages that are written in more than ASCII, and pages made of them."""

from __future__ import annotations

import random

SENTENCES: dict[str, tuple[str, ...]] = {
    "Czech": (
        "Katedra řídicí techniky zve studenty na přednášku o starých měřicích přístrojích.",
        "Ráno bylo na řece ticho, jen převozník pomalu odvazoval člun od mola.",
        "Žáci třetí třídy letos vyšlapali cestu až k pramenu pod Černým vrchem.",
        "Knihovna je otevřena každý všední den kromě čtvrtka, kdy se knihy převážejí.",
        "Vlak do Kroměříže měl čtyřicet minut zpoždění kvůli spadlému stromu.",
        "Babička sušila švestky na půdě a vůně se držela v celém domě až do Vánoc.",
        "Město opravuje dlažbu na náměstí, řidiči musejí objíždět kostel z druhé strany.",
        "Nejtěžší zkouškou sezony bude podle trenéra zápas s týmem z Děčína.",
        "Výrobce tvrdí, že nová žárovka vydrží dvakrát déle než ta předchozí.",
        "Na podzim se ťuhýci stěhují k jihu a pole za vesnicí ztichnou.",
        "Účetní našla chybu v roční závěrce teprve při třetím čtení.",
        "Děti si v lese postavily přístřešek z větví a kůry a celý víkend v něm spaly.",
    ),
    "Polish": (
        "Wczoraj wieczorem nad jeziorem zebrała się mgła gęsta jak wełna.",
        "Dyrektor szkoły ogłosił, że zajęcia zaczną się dopiero w następną środę.",
        "Mój dziadek naprawiał zegary i źle znosił każdy hałas w pracowni.",
        "Spółka z Łodzi wygrała przetarg na budowę mostu przez Wartę.",
        "Jeżeli pociąg się spóźni, weźmiemy taksówkę spod dworca.",
        "Książka opowiada o trzech siostrach, które uciekły z oblężonego miasta.",
        "Zimą ścieżka na szczyt bywa śliska, więc warto zabrać raczki.",
        "Rada gminy uchwaliła budżet na przyszły rok większością jednego głosu.",
        "W ogródku za domem rosną słoneczniki, dynie i kilka krzaków porzeczek.",
        "Lekarz zalecił chorej więcej ruchu, świeże powietrze i żadnych słodyczy.",
        "Łąka za młynem co roku w kwietniu stoi pod wodą.",
        "Śledczy wciąż nie wiedzą, skąd wzięły się pieniądze w pustej skrzyni.",
    ),
    "Hungarian": (
        "A kertész minden reggel öt órakor kezdi az öntözést, mielőtt a nap erőre kapna.",
        "Az új híd építése két évvel tovább tartott, mint ahogyan eredetileg tervezték.",
        "Nagyanyám tűzhelye fölött mindig függött egy füzér szárított paprika.",
        "A könyvtár hétfőn zárva tart, a többi napon tíztől hatig fogad olvasókat.",
        "Őszi szünetben a gyerekek a Bükkben túráztak és gombát gyűjtöttek.",
        "A vonat késése miatt lekéstük az utolsó buszt, így gyalog mentünk haza.",
        "Születésnapjára egy régi, működő rádiót kapott a szomszédjától.",
        "Az ügyvéd szerint a szerződés harmadik pontja érvénytelen.",
        "Tegnap erős szél fújt, több fa kidőlt a sétány mentén.",
        "A gyűjtemény legszebb darabja egy török kori ezüst füles korsó.",
        "Hűvös szobában kell tárolni, különben a bor hamar megromlik.",
        "Édesapja hegedűkészítő volt, ő mégis inkább a zongorát választotta.",
    ),
    "Russian": (
        "Утром над рекой поднялся туман, и паром задержали почти на час.",
        "Библиотека переезжает в новое здание на углу Садовой улицы.",
        "Старый часовщик чинил будильники и никогда не брал денег с соседей.",
        "Учёные обнаружили под слоем глины остатки деревянной мостовой.",
        "Если поезд опоздает, мы поедем дальше на попутной машине.",
        "Городской совет принял бюджет на следующий год после долгих споров.",
        "На даче созрели яблоки, и вся веранда пахнет вареньем.",
        "Дети построили из снега крепость и обороняли её до самого вечера.",
        "Врач посоветовал больному больше ходить пешком и меньше волноваться.",
        "В сборник вошли рассказы, написанные автором за последние десять лет.",
        "Этот мост закрыт на ремонт, объезд идёт через соседнюю деревню.",
        "Шахматисты сыграли вничью, хотя у белых был лишний конь.",
    ),
    "Ukrainian": (
        "Уранці над озером стояв туман, і рибалки довго не виходили з хати.",
        "Міська рада ухвалила рішення відремонтувати міст через річку до осені.",
        "Моя бабуся пекла хліб щосуботи, і запах стояв на всю вулицю.",
        "Їхній потяг запізнився на дві години через сильний снігопад.",
        "Учні шостого класу зібрали гроші на нові книжки для бібліотеки.",
        "Археологи знайшли біля церкви глиняний посуд і кілька срібних монет.",
        "Лікар порадив хворому більше гуляти та менше хвилюватися.",
        "Ґанок старої школи пофарбували у зелений колір.",
        "У збірці є оповідання про життя невеликого містечка між двома війнами.",
        "Якщо завтра не буде дощу, поїдемо на ярмарок до сусіднього села.",
        "Єдиний лікар у долині їздив до хворих верхи.",
        "Навесні цілий сад гуде від бджіл, а восени пахне яблуками.",
    ),
    "Bulgarian": (
        "Сутринта над язовира се вдигна мъгла и лодките останаха на брега.",
        "Общинският съвет прие бюджета за следващата година с един глас разлика.",
        "Дядо ми поправяше часовници в малка работилница до пазара.",
        "Учениците от пети клас засадиха сто дръвчета зад училището.",
        "Ако влакът закъснее, ще продължим пътя с автобус.",
        "Археолозите откриха под площада останки от римска баня.",
        "Библиотеката ще бъде затворена през август заради ремонт на покрива.",
        "Бабиното сладко от смокини миришеше из цялата къща.",
        "Лекарят посъветва болния да се разхожда повече и да спи на открит прозорец.",
        "Новият мост ще свърже двата квартала още тази есен.",
        "Жътварите си тръгнаха по тъмно и пееха по целия път.",
        "Щъркелите се върнаха рано и гнездото на комина пак е пълно.",
    ),
    "Japanese": (
        "朝の川には霧が立ちこめ、渡し船は一時間ほど遅れて出発した。",
        "図書館は来月から駅前の新しい建物に移転する予定です。",
        "祖父は時計の修理をしていて、近所の人からはお金を受け取らなかった。",
        "発掘調査で、粘土の層の下から木造の橋の跡が見つかりました。",
        "電車が遅れた場合は、バスで次の町まで行くことにしましょう。",
        "市議会は長い議論の末、来年度の予算を一票差で可決した。",
        "庭の柿が色づくころになると、渡り鳥が南へ飛んでいく。",
        "子どもたちは雪で大きな城を作り、夕方まで遊んでいました。",
        "医者は患者に、もっと歩いて塩分を控えるように勧めた。",
        "この短編集には、著者が過去十年間に書いた作品が収められている。",
        "コーヒーとケーキの店がオープンし、ランチの時間は行列ができる。",
        "工事のため、この橋は秋まで通行止めになっています。",
    ),
    "Simplified Chinese": (
        "清晨的河面上升起了浓雾，渡船晚了将近一个小时才出发。",
        "图书馆下个月将搬到火车站对面的新大楼里。",
        "爷爷年轻时修理钟表，从来不收邻居的钱。",
        "考古人员在黏土层下面发现了一段木桥的遗迹。",
        "如果火车晚点，我们就坐公共汽车去下一个城市。",
        "市议会经过长时间的讨论，终于通过了明年的预算。",
        "院子里的柿子熟了，孩子们每天放学都来摘。",
        "医生建议病人多走路，少吃盐，晚上早点休息。",
        "这本小说集收录了作者近十年来发表的作品。",
        "因为维修，这座桥要到秋天才能重新开放。",
        "昨天夜里刮起大风，路边的几棵老树被吹倒了。",
        "新开的茶馆生意很好，中午常常要排队等座位。",
    ),
    "Traditional Chinese": (
        "清晨的河面上升起了濃霧，渡船晚了將近一個小時才出發。",
        "圖書館下個月將搬到車站對面的新大樓裡。",
        "祖父年輕時修理鐘錶，從來不收鄰居的錢。",
        "考古人員在黏土層下面發現了一段木橋的遺跡。",
        "如果火車誤點，我們就搭客運到下一個城市。",
        "市議會經過長時間的討論，終於通過了明年的預算。",
        "院子裡的柿子熟了，孩子們每天放學都來摘。",
        "醫生建議病人多走路，少吃鹽，晚上早點休息。",
        "這本小說集收錄了作者近十年來發表的作品。",
        "因為維修，這座橋要到秋天才能重新開放。",
        "昨天夜裡颳起大風，路邊的幾棵老樹被吹倒了。",
        "新開的茶館生意很好，中午常常要排隊等座位。",
    ),
    "Korean": (
        "아침 강 위에 안개가 짙게 끼어 나룻배가 한 시간 가까이 늦게 떠났다.",
        "도서관은 다음 달에 역 앞의 새 건물로 이사할 예정입니다.",
        "할아버지는 시계를 고치셨는데 이웃에게서는 돈을 받지 않으셨다.",
        "발굴 조사에서 진흙층 아래 나무다리의 흔적이 발견되었다.",
        "기차가 늦으면 우리는 버스를 타고 다음 도시로 가기로 했다.",
        "시의회는 오랜 토론 끝에 내년 예산안을 한 표 차이로 통과시켰다.",
        "마당의 감이 익으면 아이들이 학교가 끝나고 날마다 따러 온다.",
        "의사는 환자에게 더 많이 걷고 소금을 줄이라고 권했다.",
        "이 소설집에는 작가가 지난 십 년 동안 쓴 작품이 실려 있다.",
        "보수 공사 때문에 이 다리는 가을까지 통행할 수 없습니다.",
        "펲시콜라 병을 든 소년이 똠방각하 드라마를 흉내 내며 웃었다.",
        "새로 연 찻집은 손님이 많아서 점심에는 줄을 서야 한다.",
    ),
    "Greek": (
        "Το πρωί πάνω από τη λίμνη είχε πυκνή ομίχλη και οι βάρκες έμειναν στην όχθη.",
        "Η βιβλιοθήκη μεταφέρεται τον επόμενο μήνα σε νέο κτήριο κοντά στον σταθμό.",
        "Ο παππούς μου επισκεύαζε ρολόγια και δεν έπαιρνε χρήματα από τους γείτονες.",
        "Άνθρωποι κάθε ηλικίας ήρθαν να δουν τα ευρήματα της ανασκαφής.",
        "Αν αργήσει το τρένο, θα συνεχίσουμε με το λεωφορείο.",
        "Το δημοτικό συμβούλιο ψήφισε τον προϋπολογισμό ύστερα από πολύωρη συζήτηση.",
        "Στον κήπο ωρίμασαν τα σύκα και τα παιδιά τα μαζεύουν κάθε απόγευμα.",
        "Ο γιατρός συμβούλεψε τον ασθενή να περπατά περισσότερο.",
        "Ήταν η τελευταία παράσταση του θιάσου πριν από το καλοκαίρι.",
        "Άλλη μια φορά η γέφυρα έκλεισε για επισκευές έως τον Οκτώβριο.",
        "Ό,τι έγραψε ο συγγραφέας τα τελευταία δέκα χρόνια βρίσκεται σε αυτόν τον τόμο.",
        "Χθες το βράδυ φύσηξε δυνατός αέρας και έπεσαν μερικά δέντρα.",
    ),
    "Hebrew": (
        "בבוקר עמד ערפל כבד מעל הנהר והמעבורת יצאה באיחור של שעה.",
        "הספרייה תעבור בחודש הבא לבניין חדש ליד תחנת הרכבת.",
        "סבא שלי תיקן שעונים ואף פעם לא לקח כסף מהשכנים.",
        "החוקרים מצאו מתחת לשכבת החמר שרידים של גשר עץ.",
        "אם הרכבת תאחר, נמשיך באוטובוס אל העיר הבאה.",
        "מועצת העיר אישרה את התקציב לאחר דיון ארוך.",
        "בחצר הבשילו התאנים והילדים קוטפים אותן בכל יום אחרי הלימודים.",
        "הרופא המליץ לחולה ללכת יותר ברגל ולאכול פחות מלח.",
        "בספר יש סיפורים שהמחבר כתב בעשר השנים האחרונות.",
        "הגשר סגור לרגל שיפוצים עד הסתיו.",
        "אתמול בלילה נשבה רוח חזקה וכמה עצים נפלו לאורך הטיילת.",
        "בית התה החדש מלא תמיד, ובצהריים צריך לעמוד בתור.",
    ),
    "Arabic": (
        "في الصباح خيم ضباب كثيف على النهر وتأخرت العبارة ساعة كاملة.",
        "ستنتقل المكتبة في الشهر المقبل إلى مبنى جديد قرب محطة القطار.",
        "كان جدي يصلح الساعات ولم يكن يأخذ مالا من الجيران.",
        "عثر الباحثون تحت طبقة الطين على بقايا جسر خشبي قديم.",
        "إذا تأخر القطار فسوف نكمل الطريق بالحافلة إلى المدينة التالية.",
        "أقر مجلس المدينة ميزانية العام القادم بعد نقاش طويل.",
        "نضج التين في الحديقة والأطفال يقطفونه كل يوم بعد المدرسة.",
        "نصح الطبيب المريض بالمشي أكثر وبتقليل الملح في الطعام.",
        "تضم المجموعة قصصا كتبها المؤلف خلال السنوات العشر الأخيرة.",
        "الجسر مغلق بسبب أعمال الصيانة حتى فصل الخريف.",
        "هبت ليلة أمس رياح قوية وسقطت بعض الأشجار على الطريق.",
        "المقهى الجديد مزدحم دائما، وعند الظهر يقف الناس في الطابور.",
    ),
    "Turkish": (
        "Sabah gölün üzerinde yoğun bir sis vardı, kayıklar kıyıda bekledi.",
        "Kütüphane önümüzdeki ay istasyonun karşısındaki yeni binaya taşınıyor.",
        "Dedem saat onarırdı ve komşulardan hiç para almazdı.",
        "Araştırmacılar kil tabakasının altında ahşap bir köprünün izlerini buldu.",
        "Tren gecikirse yolculuğa otobüsle devam edeceğiz.",
        "Belediye meclisi uzun bir tartışmadan sonra gelecek yılın bütçesini kabul etti.",
        "Bahçedeki incirler olgunlaştı, çocuklar her gün okuldan sonra topluyor.",
        "Doktor hastaya daha çok yürümesini ve tuzu azaltmasını öğütledi.",
        "İzmir'de geçen öykülerin çoğunu yazar son on yılda yazmış.",
        "Köprü onarım nedeniyle sonbahara kadar kapalı kalacak.",
        "Dün gece şiddetli rüzgâr çıktı, yol kenarındaki ağaçlar devrildi.",
        "Yeni açılan çay ocağı öğle saatlerinde ağzına kadar doluyor.",
    ),
    "German": (
        "Über dem Fluss lag am Morgen dichter Nebel, die Fähre fuhr erst später.",
        "Die Bücherei zieht im nächsten Monat in ein größeres Gebäude am Bahnhof.",
        "Mein Großvater reparierte Uhren und nahm von den Nachbarn kein Geld.",
        "Für das Gemüse aus dem Garten hätten wir auf dem Markt viel bezahlt.",
        "Wenn der Zug sich verspätet, müssen wir über München fahren.",
        "Der Gemeinderat beschloss den Haushalt nach längerem Streit.",
        "Die Ärztin empfahl ihm, öfter spazieren zu gehen und früher zu schlafen.",
        "Während der Straßenarbeiten bleibt die Brücke bis Oktober gesperrt.",
        "Die Schüler übten wochenlang für die Aufführung im Schloss.",
        "Höchstens drei Gäste dürfen gleichzeitig in das kleine Museum.",
        "Gestern stürmte es heftig, mehrere Bäume stürzten um.",
        "Sie erzählte von früher, als die Mühle noch Mehl für drei Dörfer mahlte.",
    ),
    "French": (
        "Le matin, un épais brouillard couvrait la rivière et le bac est parti en retard.",
        "La bibliothèque déménage le mois prochain près de la gare.",
        "Mon grand-père réparait des montres et ne demandait jamais d'argent aux voisins.",
        "Les archéologues ont découvert les restes d'un pont sous une couche d'argile.",
        "Si le train a du retard, nous continuerons en autobus jusqu'à la forêt.",
        "Le conseil a voté le budget après un très long débat.",
        "Les figues ont mûri et les élèves les cueillent après l'école.",
        "Le médecin lui a conseillé de marcher davantage et de manger léger.",
        "Ça sentait la crème brûlée jusque dans la rue d'à côté.",
        "Le théâtre fête cet été son centième anniversaire.",
        "Cette nuit, une tempête a abattu plusieurs chênes le long du canal.",
        "Où êtes-vous allés après la fermeture du café ?",
    ),
    "Spanish": (
        "Por la mañana había niebla sobre el río y la barca salió más tarde.",
        "La biblioteca se mudará el mes próximo a un edificio junto a la estación.",
        "Mi abuelo arreglaba relojes y jamás pidió dinero a los vecinos.",
        "Los investigadores encontraron señales de un puente bajo una capa de arcilla.",
        "Si el tren no llega, seguiremos el camino en autobús hasta León.",
        "El pueblo aprobó después de una larga discusión el presupuesto del año.",
        "Los niños recogen higos en el jardín cuando salen del colegio.",
        "La médica le aconsejó caminar más y cenar temprano.",
        "¿Quién dejó la llave en el cajón de la cocina?",
        "El volumen reúne los cuentos que la autora escribió en su última década.",
        "Anoche sopló un viento fortísimo y cayeron algunos árboles.",
        "La compañía de teatro actuará también en los pueblos de la montaña.",
    ),
}
"""Language -> sentences that a newspaper or a letter could have."""

CHARSETS: tuple[tuple[str, str, str], ...] = (
    ("windows-1250", "Czech", "cz"),
    ("windows-1250", "Polish", "pl"),
    ("windows-1250", "Hungarian", "hu"),
    ("iso-8859-2", "Czech", "cz"),
    ("iso-8859-2", "Polish", "pl"),
    ("iso-8859-2", "Hungarian", "hu"),
    ("windows-1251", "Russian", "ru"),
    ("windows-1251", "Ukrainian", "ua"),
    ("windows-1251", "Bulgarian", "bg"),
    ("koi8-r", "Russian", "ru"),
    ("koi8-u", "Ukrainian", "ua"),
    ("ibm866", "Russian", "ru"),
    ("iso-8859-5", "Russian", "ru"),
    ("shift_jis", "Japanese", "jp"),
    ("euc-jp", "Japanese", "jp"),
    ("gb18030", "Simplified Chinese", "cn"),
    ("big5", "Traditional Chinese", "tw"),
    ("euc-kr", "Korean", "kr"),
    ("windows-1253", "Greek", "gr"),
    ("iso-8859-7", "Greek", "gr"),
    ("windows-1255", "Hebrew", "il"),
    ("windows-1256", "Arabic", "eg"),
    ("windows-1254", "Turkish", "tr"),
    ("windows-1252", "German", "de"),
    ("windows-1252", "French", "fr"),
    ("windows-1252", "Spanish", "es"),
)
"""Charset, a language that was written in it, and that language's top-level domain."""
PYTHON_NAMES = {"euc-kr": "cp949", "shift_jis": "cp932", "big5": "big5hkscs"}
"""Codecs of charsets that on the web are more than what Python calls by their name."""

_HEAD = """<!DOCTYPE html>
<html><head><title>{title}</title>
<link rel="stylesheet" href="/static/site.css?v=12">
<style>.menu > li {{ float: left; }} a::before {{ content: "*"; }}</style>
<script>var page = {{"id": 1, "tags": ["a", "b"]}}; if (1 < 2 && page) {{ load("/x.js"); }}</script>
</head><body class="page">
<ul class="menu"><li><a href="/">Home</a></li><li><a href="/news?p=1&amp;q=2">News</a></li>
<li><a href="/contact.html" title="Contact">Contact</a></li></ul>
"""
_FOOT = """<script src="/static/site.js"></script>
<p class="foot">Copyright 2009 Example Ltd. All rights reserved. <a href="/terms">Terms</a></p>
</body></html>
"""


def encode(text: str, charset: str) -> bytes:
    """The text in a charset that has the web's name."""
    return text.encode(PYTHON_NAMES.get(charset, charset))


def make_text(language: str, letters: int, seed: int) -> list[str]:
    """Sentences in random order, with so many letters or a few more."""
    rng = random.Random(f"{language} {letters} {seed}")
    found: list[str] = []
    count = 0
    while count < letters:
        sentences = rng.sample(SENTENCES[language], len(SENTENCES[language]))
        while sentences and count < letters:
            sentence = sentences.pop()
            found.append(sentence)
            count += sum(letter.isalpha() for letter in sentence)
    return found


def make_page(sentences: list[str]) -> str:
    """A page without a declared charset: text among English menus, a script and a style."""
    paragraphs = [
        f'<p class="text">{" ".join(sentences[start : start + 3])}</p>\n'
        for start in range(0, len(sentences), 3)
    ]
    return _HEAD.format(title=sentences[0]) + "".join(paragraphs) + _FOOT
