"""What counts as a fact, what as a cue, where sentences end, and what a user asks to remember."""

# ruff: noqa: RUF001  # the signs of several scripts are what is tested
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidemem.facts import Fact
from slidemem.retention import facts, held, importance, sentences, statements
from slidemem.wishes import to_remember

LONG = 200_000  # characters
PATIENCE = 5.0  # seconds for them; what is linear takes less than one


def found(text: str) -> set[tuple[str, str]]:
    """Kind and key of each fact."""
    return {(fact.kind, fact.key) for fact in facts(text)}


# ------------------------------------------------------------------ facts


@pytest.mark.parametrize(
    "text, kind, key",
    [
        ("Mail asha.rao+news@mail.example.org, please.", "email", "asha.rao+news@mail.example.org"),
        ("Send it to <ASHA@Example.org>.", "email", "asha@example.org"),
        ("邮箱是asha@example.org，谢谢", "email", "邮箱是asha@example.org"),
        ("See https://example.org/a?b=c#d).", "url", "https://example.org/a?b=c#d"),
        ("[here](https://example.org/x) or (www.example.org).", "url", "www.example.org"),
        ("链接 https://example.org/x，谢谢", "url", "https://example.org/x"),
        ("The log is /var/log/app/main.log.", "path", "/var/log/app/main.log"),
        ("It is in ~/notes.txt or", "path", "~/notes.txt"),
        ("run ./start.sh now", "path", "./start.sh"),
        ("look at src/app/main.py again", "path", "src/app/main.py"),
        (r"saved as C:\Users\me\plan.txt", "path", r"c:\users\me\plan.txt"),
        ("the code BKG-7731 again", "identifier", "bkg-7731"),
        ("number MA-5583-2071.", "identifier", "ma-5583-2071"),
        ("Booked: QZ7M2L, thanks", "identifier", "qz7m2l"),
        ("build 4.9.0-beta3 of it", "identifier", "4.9.0-beta3"),
        ("the bundle is diag-5c1e.", "identifier", "diag-5c1e"),
        ("签证号码是DE-V-7730921，她", "identifier", "de-v-7730921"),
        ("order 5550173 came", "identifier", "5550173"),
        ("call 0421-555017 today", "identifier", "0421-555017"),
        ("it weighs 23 kg", "number", "23"),
        ("it weighs 23kg", "number", "23"),
        ("on the 17th of it", "number", "17"),
        ("a 3-bedroom flat", "number", "3"),
        ("seat 24D please", "number", "24d"),
        ("between 12.5 and", "number", "12.5"),
        ("at most ₹3,40,000 for all", "money", "3,40,000"),
        ("at most ₹ 500 for all", "money", "500"),
        ("it cost €418.60", "money", "418.60"),
        ("it cost 170€.", "money", "170"),
        ("it cost 31,480 pounds", "money", "31,480"),
        ("it cost Rs. 750 there", "money", "750"),
        ("custa 90 reais hoje", "money", "90"),
        ("कुल 450 रुपये लगे", "money", "450"),
        ("一共300元", "money", "300"),
        ("born on 9 June 2018", "date", "9 june"),
        ("born on 9 June 2018", "date", "2018 june"),
        ("due February 9, latest", "date", "9 february"),
        ("on the 3rd of March", "date", "3 march"),
        ("on 2026-02-12.", "date", "2026-02-12"),
        ("at 2026-01-10T03:14:05+05:30 sharp", "date", "2026-01-10t03:14:05"),
        ("on 12/02/2026 or", "date", "12/02/2026"),
        ("am 12.02.26 oder", "date", "12.02.26"),
        ("dia 20 de janeiro", "date", "20 janeiro"),
        ("वह 8 जनवरी को आया", "date", "8 जनवरी"),
        ("我2月8日到", "date", "8"),
        ("lands at 23:40.", "time", "23:40"),
        ("lands at 7:05pm then", "time", "7:05pm"),
        ('he said "fine by me" and left', "quoted", "fine by me"),
        ("he said “fine by me” and left", "quoted", "fine by me"),
        ("he said 'fine by me' and left", "quoted", "fine by me"),
        ("he said ‘fine by me’ and left", "quoted", "fine by me"),
        ("respondeu «combinado» e saiu", "quoted", "combinado"),
        ("er sagte „gut so“ und ging", "quoted", "gut so"),
        ("彼は「はい」と言った", "quoted", "はい"),
        ("set `retry limit` there", "quoted", "retry limit"),
        ("'so be it' he said", "quoted", "so be it"),
        ("we met Nikhil in it", "name", "nikhil"),
        ("stay at Ribeira Azul again", "person", "ribeira azul"),
        ("em São Paulo, com Ângela", "person", "são paulo"),
        ("это Москва и", "name", "москва"),
        ("with Jean-Luc again", "name", "jean-luc"),
        ("it is Aai's turn", "name", "aai"),
        ("the bank SBI has it", "name", "sbi"),
        ("fly with MA 118 there", "name", "ma"),
    ],
)
def test_a_form_is_a_fact(text: str, kind: str, key: str) -> None:
    """Each form is found inside a sentence, its key in lower case and without the signs around it."""
    assert (kind, key) in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\t\n",
        "Hello! How are you?",
        "Thank you very much.",
        "Good morning. That sounds great, thanks.",
        "नमस्ते, आप कैसे हैं?",
        "Bom dia! Tudo bem?",
        "你好！谢谢。",
        "I'd say I'm fine and I've slept",
        "1. First things first\n2. Then the rest",
        "- **Then** it goes on",
        "> Quoted words of his",
        "And so: Everything is fine",
        "The and/or question",
        "WE GOT IT!!!! HOORAY",
        "after THIRTEEN hours",
        "well... maybe",
        "a@b and @home and x@",
        "in Mr. or Dr. form",
        "/help me",
        "“first this. then” that",
        "\tat com.example.Row2.run(Row2.java:73)",
        "\t... 53 more",
        '  File "/srv/app/main.py", line 73, in <module>',
        "don't 'n' can't",
    ],
)
def test_what_is_no_fact(text: str) -> None:
    """Greetings, plain words, capitals at the start of a sentence, list marks and shouting are none."""
    assert found(text) == set()


def test_a_fact_within_another_is_found_too() -> None:
    """An identifier in a URL or between quotes counts by itself, and the heavier kind wins for one key."""
    assert found('case "RF-20418" is at https://example.org/RF-20418') == {
        ("identifier", "rf-20418"),
        ("url", "https://example.org/rf-20418"),
    }


@pytest.mark.parametrize(
    "line",
    [
        '{"ref": "TRN-61K4", "coach": "A1", "paid": 2205, "to": "a@example.org"}',
        'calls book {"ref": "TRN-61K4", "to": "a@example.org", "class": "2A"}',
        "Caused by: com.example.Conflict: TRN-61K4 of Asha, a@example.org, 17 rows",
        "com.example.sync.Failed: TRN-61K4 of Asha, a@example.org, 17 rows",
        "2026-01-14 07:42:14,732 ERROR [worker] Asha: TRN-61K4 of a@example.org",
        "| TRN-61K4 | Asha | 17 | a@example.org |",
        "for (x = 17; x; x--) { TRN-61K4; a@example.org;",
        "Asha [… 1,000 characters left out …] TRN-61K4 a@example.org",
        "```\nTRN-61K4 of Asha: 17, a@example.org\n```",
    ],
)
def test_of_data_only_what_is_copied_counts(line: str) -> None:
    """In logs, traces, tables, JSON and code only addresses, paths and identifiers are facts."""
    kinds = {kind for kind, _ in found(line)}

    assert ("identifier", "trn-61k4") in found(line)
    assert ("email", "a@example.org") in found(line)
    assert kinds <= {"email", "identifier", "path", "url"}


def test_what_follows_a_fence_is_prose_again() -> None:
    """Only what stands between the fences is code."""
    assert ("name", "asha") in found("```\nx = 1\n```\nIt was for Asha.")


def test_a_long_code_is_no_identifier() -> None:
    """Base64 and the like are longer than any identifier."""
    assert found("it is " + "aB3x" * 30) == {("number", ("aB3x" * 20).casefold())}


# ------------------------------------------------------------------ what a text holds


@pytest.mark.parametrize(
    "key, text, holds",
    [
        ("12", "on the 12th", True),
        ("12", "on the 12.", True),
        ("12", "in 2012 and 1.12 and 12.5", False),
        ("12", "in 2012, on 12", True),
        ("7", "2月7日", True),
        ("pune", "To PUNE, then", True),
        ("pune", "a punnet, punes", False),
        ("9 june", "June 9, 2018", True),
        ("9 june", "June 19", False),
        ("ma-5583-2071", "(MA-5583-2071)", True),
        ("bkg-77", "BKG-7731", False),
        ("はい", "「はい」と", True),
        ("https://example.org/x", "see https://example.org/x.", True),
    ],
)
def test_holds_whole_words(key: str, text: str, holds: bool) -> None:  # noqa: FBT001  # a row of the table
    """A fact is held when each of its words stands by itself, in any order and case."""
    fact = Fact("name", key, 1)

    assert (fact in held([fact], text)) == holds


@given(st.text(max_size=200))
def test_a_text_holds_its_own_facts(text: str) -> None:
    """Whatever is found in a sentence is found to be held by it."""
    for stated in statements(text):
        wanted = frozenset(stated.facts.values())

        assert wanted == held(wanted, text)


# ------------------------------------------------------------------ cues and worth


@pytest.mark.parametrize(
    "plain, stated",
    [
        ("The soup has peanuts in it", "I'm allergic to what is in it"),
        ("We had tea in the garden", "We always have tea in the garden"),
        ("We had tea in the garden", "I can’t drink tea in the garden"),
        ("the meal is on the table", "my meal for the evening is on the table"),
        ("उन्होंने खाना खाया", "मुझे मूँगफली से एलर्जी है"),
        ("आज मौसम अच्छा है", "मैं हमेशा खिड़की वाली सीट लेती हूँ"),
        ("今天天气很好", "我对花生过敏"),
        ("今天天气很好", "我喜欢靠窗"),
        ("O chá está quente", "Nunca bebo chá"),
        ("Der Tee ist heiß", "Ich nehme lieber Kaffee"),
        ("İt was warm", "I'm allergic, says İrem"),
    ],
)
def test_a_cue_makes_a_sentence_matter(plain: str, stated: str) -> None:
    """What states a preference, a prohibition or a condition matters without a fact; small talk does not."""
    assert [one.worth() for one in statements(plain) if one.worth()] == []
    assert statements(stated)[0].worth() > 0


def test_health_weighs_more_than_taste() -> None:
    """A warning outweighs a preference."""
    warned, preferred = statements("I'm allergic to it.")[0], statements("I prefer some of it.")[0]

    assert warned.worth() > preferred.worth()


@pytest.mark.parametrize(
    "asked, stated",
    [
        ("Where is Nikhil?", "When I am with Nikhil I sleep."),
        ("and how much is it for nikhil, 5 or 7", "what i meant for 5 or 7"),
        ("can u tell nikhil 5", "can be 5"),
        ("whats the code 5", "what a day for 5"),
        ("印度有5个吗？", "印度有5个。"),
    ],
)
def test_a_question_is_known_by_its_mark_or_its_first_words(asked: str, stated: str) -> None:
    """With or without a question mark; a statement that begins like a question is none."""
    assert statements(asked)[0].share < statements(stated)[0].share == 1


def test_known_facts_do_not_count_again() -> None:
    """A sentence is worth what it adds."""
    stated = statements("We met Nikhil in Nashik.")[0]

    assert stated.worth({"nikhil"}) < stated.worth()
    assert statements("It is Nikhil again.")[0].worth({"nikhil"}) == 0


def test_density_is_worth_for_its_length() -> None:
    """The longer way to say the same is less dense, and a user's word weighs more than a tool's."""
    short, long = (statements(text)[0] for text in ("We met Nikhil.", "As far as I know we once met Nikhil."))

    assert short.density("user") > short.density("assistant") > short.density("tool") > 0
    assert statements("So we met Nikhil there.")[0].density("user") > long.density("user", {"nikhil"})


def test_a_question_and_a_dump_count_less() -> None:
    """The same fact weighs most in a statement, less in a question, least in JSON."""
    said, asked, typed, dumped = (
        statements(text)[0].worth()
        for text in ("The code is BKG-7731.", "Is it BKG-7731?", "is it BKG-7731", '{"code": "BKG-7731"}')
    )

    assert said > asked == typed > dumped > 0


@pytest.mark.parametrize(
    "text, stated",
    [
        ("Stop. I meant the 14th! Saturday the 14th. It is sunny there.", ["I meant the 14th! Saturday the 14th."]),
        ("Booked. The code is BKG-7731.", ["Booked. The code is BKG-7731."]),
        ("Here. Tell me about Nikhil in the town.", ["Tell me about Nikhil in the town."]),
        ("We met Nikhil in town. So far so good. It is Nashik he lives in.", 2),
        ("**Nashik** is near, says **Nikhil**.", ["Nashik is near, says Nikhil."]),
        ("What Nikhil means is 2**10 of them.", ["What Nikhil means is 2**10 of them."]),
        ("We met Nikhil. " + "x" * 290 + " Nashik", 2),
        ("We met Nikhil at the long bridge. He came from Nashik by the late train.", 2),
    ],
)
def test_a_fragment_is_joined_to_its_neighbour(text: str, stated: list[str] | int) -> None:
    """A few words that state something go with the sentence beside them; those that state nothing go."""
    texts = [one.text for one in statements(text) if one.worth()]

    assert (len(texts) if isinstance(stated, int) else texts) == stated


def test_an_archive_line_is_one_statement() -> None:
    """A line of an archive is never split, and names who said it."""
    (stated,) = statements("- user: We met Nikhil. He lives in Nashik.")

    assert (stated.role, stated.text) == ("user", "We met Nikhil. He lives in Nashik.")
    assert set(stated.facts) == {"nikhil", "nashik"}
    assert statements("- tool: ok") == []


def test_what_was_data_stays_data_in_the_archive() -> None:
    """A log line does not gain by being archived."""
    line = "2026-01-14 07:42:14 ERROR Asha: TRN-61K4"

    assert statements(f"- user: {line}")[0].worth() == statements(line)[0].worth()


@pytest.mark.parametrize(
    "more, less",
    [
        ("- user: The code is BKG-7731.", "- assistant: The code is BKG-7731."),
        ("- assistant: The code is BKG-7731.", "- tool: The code is BKG-7731."),
        ("- user: I'm allergic to nuts.", "- user: I'm off to make tea."),
        ("- user: The code is BKG-7731.", "- user: The code, as far as anybody knows by now, is still BKG-7731."),
        ("Allergic to nuts. Lives in Pune.", "Likes tea."),
    ],
)
def test_importance_ranks_lines(more: str, less: str) -> None:
    """Users before assistants before tools, statements before small talk, short before long."""
    assert importance(more, age=5) > importance(less, age=5)


def test_importance_fades_and_a_cue_fades_slowly() -> None:
    """Every line fades with age; one with a cue keeps more of its importance."""
    fact, cue = "- user: The code is BKG-7731.", "- user: I'm allergic to nuts."

    assert importance(fact, age=20) < importance(fact, age=0)
    assert importance(cue, age=20) < importance(cue, age=0)
    assert importance(cue, age=20) / importance(cue, age=0) > importance(fact, age=20) / importance(fact, age=0)


# ------------------------------------------------------------------ sentences


@pytest.mark.parametrize(
    "text, parts",
    [
        ("One here. Two there! Three? Four", ["One here.", "Two there!", "Three?", "Four"]),
        ("ok cool. can u write it?", ["ok cool.", "can u write it?"]),
        ("It is 7.10 now, e.g. for Dr. Rao, approx. five.", ["It is 7.10 now, e.g. for Dr. Rao, approx. five."]),
        ("See No. 5 there. No. I meant it", ["See No. 5 there.", "No.", "I meant it"]),
        ("J. Smith came (cf. him). Then", ["J. Smith came (cf. him).", "Then"]),
        ("He said “yes.” She said (no!) Then", ["He said “yes.”", "She said (no!)", "Then"]),
        ("今天好。明天呢？好！", ["今天好。", "明天呢？", "好！"]),
        ("「はい。」そう言った。。終わり", ["「はい。」", "そう言った。。", "終わり"]),
        ("यह पहला है। दूसरा यह है॥ तीसरा", ["यह पहला है।", "दूसरा यह है॥", "तीसरा"]),
        ("1. Mumbai to Pune\n- then home\n\n> and so on", ["Mumbai to Pune", "then home", "and so on"]),
        ("2026-01-14 07:42:14,732 ERROR it failed\n\tat a.b(C.java:73)", 2),
        ("", []),
        (" \n \n", []),
        ("...", ["..."]),
        ("x" * 700, ["x" * 300, "x" * 300, "x" * 100]),
    ],
)
def test_where_sentences_end(text: str, parts: list[str] | int) -> None:
    """At full stops of every script and at line breaks; not in numbers, abbreviations, initials or list marks."""
    split = sentences(text)

    assert (len(split) if isinstance(parts, int) else split) == parts


@given(st.text(alphabet="ab .?!。।\n-1“”", max_size=2_000))
def test_sentences_lose_nothing(text: str) -> None:
    """All words are in the sentences, in order, and none is longer than 300 characters."""
    split = sentences(text)

    assert all(0 < len(sentence) <= 300 for sentence in split)
    assert [letter for letter in "".join(split) if letter in "ab"] == [letter for letter in text if letter in "ab"]


def test_a_long_sentence_is_cut_between_words() -> None:
    """Nothing behind the 300th character is lost."""
    text = "word " * 200 + "BKG-7731"

    assert " ".join(sentences(text)) == text
    assert ("identifier", "bkg-7731") in found(text)


# ------------------------------------------------------------------ asked to remember


@pytest.mark.parametrize(
    "text, asked",
    [
        ("Remember this: our number is MA-5583-2071.", ["our number is MA-5583-2071."]),
        ("remember this - the gate is 4471", ["the gate is 4471"]),
        ("Remember: never before nine", ["never before nine"]),
        ("Remember that I moved. Thanks!", ["I moved."]),
        ("Please remember that I'm vegan", ["I'm vegan"]),
        ("pls remember i work nights", ["i work nights"]),
        ("Keep in mind that I work nights.", ["I work nights."]),
        ("Don't forget my birthday is 5 May.", ["my birthday is 5 May."]),
        ("Please don’t forget that I moved.", ["I moved."]),
        ("Do not ever forget this: I moved.", ["I moved."]),
        ("Thanks. remember that i hate onions", ["i hate onions"]),
        ("Thanks!  Remember this: no onions. Bye. And don't forget: no nuts.", ["no onions.", "no nuts."]),
        ("Oh, and please remember that Tara is seven.", ["Tara is seven."]),
        ("Hello.\nRemember this: no onions\nBye.", ["no onions"]),
        ("Remember this:\n- no onions\n2. no nuts. None.\n\nBye.", ["no onions", "no nuts. None."]),
        ("Remember this. My gate is 4471. Bye.", ["My gate is 4471."]),
        ("Note: the gate is 4471.", ["the gate is 4471."]),
        ("Please note that I moved.", ["I moved."]),
        ("请记住：我对花生过敏。谢谢。", ["我对花生过敏。"]),
        ("याद रखना, मैं शाकाहारी हूँ। ठीक?", ["मैं शाकाहारी हूँ।"]),
        ("Lembre-se de que sou vegana.", ["sou vegana."]),
        ("Recuerda que soy vegano.", ["soy vegano."]),
        ("Vergiss nicht, dass ich umziehe.", ["ich umziehe."]),
        ("Souviens-toi que je pars.", ["je pars."]),
    ],
)
def test_what_is_asked_to_remember(text: str, asked: list[str]) -> None:
    """An imperative at the start of a sentence, what it is about taken word for word."""
    assert to_remember(text) == asked


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Do you remember this?",
        "Can you remember this: it is mine",
        "I remember that trip.",
        "Remember when we met?",
        "Remember that time in Goa.",
        "Remember me to her.",
        "Remember to smile.",
        "Please remember to smile.",
        "Remember that I moved?",
        "Don't forget: ok?",
        "请记住这个吗？",
        "Remember that",
        "Remember this: ...",
        "He said: “Remember this: it is mine.”",
        "Hello. Note: this function is deprecated.",
        "> Remember this: it is quoted.",
        "```\nRemember this: it is code.\n```",
        "# remember: it is a comment",
        "I note that it rains.",
    ],
)
def test_what_is_not_asked_to_remember(text: str) -> None:
    """Questions, memories, tasks, quotes and code are no wish to have something remembered."""
    assert to_remember(text) == []


def test_what_stands_below_is_taken_as_far_as_it_belongs() -> None:
    """A long list is no single wish: only its first lines are taken."""
    assert len(to_remember("Remember this:\n" + "- no nuts\n" * 100)) == 12


# ------------------------------------------------------------------ hostile texts


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            "A",
            "1",
            " ",
            "\n",
            ".",
            "@",
            "/",
            '"',
            "“",
            "«",
            "`",
            "'",
            "<",
            "。",
            "!",
            "\x00",
            "\ud83d",
            "我",
            "İ",
        ),
        *("a.", "a@", "a@a.", "://", "a/", "1-", "1,", "-1a", " '", "- ", "1. ", "?' ", "my ", "A ", "A'a", "Aa-"),
        *("a1 ", "A1-a-", "12 de ", "C:\\a", "~/", "at a.", "a.b.", "calls a {", "- user: ", "```\n", "and ", "İ. "),
        *("remember this:\n", "remember ", "please remember ", "don't forget ", "note: ", "never ", "Bob went 7. "),
    ],
)
def test_time_is_linear(piece: str) -> None:
    """No repeated piece makes a pattern go over the text again and again."""
    text = piece * (LONG // len(piece))

    started = time.process_time()
    facts(text), sentences(text), to_remember(text), importance(f"- user: {text}", age=1)
    taken = time.process_time() - started

    assert taken < PATIENCE


@pytest.mark.parametrize(
    "text",
    ["a" * LONG + "@", '"' + "a" * LONG, "my my my my " + "a" * LONG, "a.b." + "c" * LONG, " " * LONG + "x"],
    ids=["address", "quote", "words", "trace", "blanks"],
)
def test_time_is_linear_for_one_long_word(text: str) -> None:
    """Nor does anything that begins like a form and never ends."""
    started = time.process_time()
    facts(text), sentences(text), to_remember(text)
    taken = time.process_time() - started

    assert taken < PATIENCE


@given(st.text(max_size=500))
def test_any_text_is_read(text: str) -> None:
    """No text raises; what is found is never blank, and reading again finds the same."""
    assert statements(text) == statements(text)
    assert all(fact.key.strip() == fact.key != "" for fact in facts(text))
    assert all(0 < len(one.text) and one.worth() >= 0 for one in statements(text))
    assert importance(text.replace("\n", " "), age=1) > 0
