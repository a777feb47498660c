# ruff: noqa: RUF001 - Cyrillic words are written in Cyrillic
"""Function words of the languages that recall tells apart; they vote for a language and leave the query.

Words such as "tell", "want" or "recommend" are none: a query needs them.
"""

from collections.abc import Mapping
from typing import Final

_WORDS: Final = {
    "en": """
        a about again all am an and any are as at be been being both but by can could did didnt do does
        doesnt doing don dont each few for from further had has have having he her here him his how i id
        if im in into is isnt it its ive just may me might more most must my no nor not now of on once
        only or other our over own s same she should so some such t than that the their them then there
        these they this those to too under us very was we were what whats when where which who whom
        whose why will with would you your youre
    """,
    "de": """
        aber als am an auch auf aus bei bin bist das dass dein deine dem den der des dich die dir du ein
        eine einem einen einer eines er es euch für habe haben hat hatte ich ihr ihre im in ist kein
        keine mein meine meinen mich mir mit nach nicht noch nur oder sein sie sind so und uns von wann
        war waren warum was welche welcher welches wenn wer wie wir wo zu
    """,
    "fr": """
        a ai as au aux avait avec avoir c ce ces cet cette comment d dans de des du elle elles en es est
        et il ils j je l la le les leur m ma mais me mes mon n ne notre nous on ou où par pas plus pour
        pourquoi qu quand que quel quelle quelles quels qui quoi s sa se ses son sont suis sur t ta te
        tes ton tu un une votre vous y était être
    """,
    "es": """
        a al como con cuando cuál cuándo cómo de del donde dónde el ella ellos en era eres es estoy está
        ha han he la las le les lo los me mi mis muy más no nosotros o para pero por que quién qué se
        ser sobre son soy su sus te tengo tiene tu tus tú un una unas unos y yo él
    """,
    "it": """
        a al avere che chi ci come con cosa da dei del della di dove e era essere gli ha hanno ho i il
        in io la le lei lo loro lui ma mi mia mie miei mio nel noi non o per perché più quale quali
        quando sei si sono su sua suo ti tu tua tuo un una uno voi è
    """,
    "pt": """
        a ao as com como da das de do dos e ela ele eles em era estou está eu mais mas me meu meus minha
        minhas muito na no não nós o onde os ou para por quais qual quando que quem se ser seu sobre sou
        sua são te tem tenho tu um uma umas uns você à é
    """,
    "nl": """
        aan als ben bent bij dat de deze die dit een en er geen haar had heb hebben heeft het hij hoe ik
        in is je jij jou jouw maar me met mij mijn naar niet nog of ons ook op te uit van voor waar
        waarom wanneer waren was wat we welke wie wij ze zij zijn
    """,
    "ru": """
        а бы был была были было быть в во вот все вы где да для до его ее ему есть еще же за и из их к
        как какая какие какой когда кто меня мне мои мой моя мы на не нет но о он она они от по почему с
        со так твой то только ты у что это я
    """,
    "uk": """
        а але би був була були було бути в ви вона вони все від він де для до же з за й його коли мене
        мені ми моя мої мій на не ні о ось по та так твій ти то тільки у хто це чому ще що я як яка який
        які є і із їх її
    """,
    "tr": """
        ben benim bir biz bu da daha de değil gibi ile için ki kim mi mu mü mı nasıl ne neden nerede
        niçin o onlar onun sen senin siz var ve yok çok şu
    """,
    "pl": """
        ale być był była było ci co dla dlaczego do gdzie go i ja jak jaka jaki jakie jej jest kiedy kto
        lub mi mnie moja moje my mój na nie o od on ona oni po się są ta te ten to twój ty w wy z za że
    """,
}

FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split()) for language, words in _WORDS.items()
}
