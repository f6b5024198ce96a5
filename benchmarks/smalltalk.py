"""A hundred messages that ask for nothing that was said before: no old message should be quoted for them."""

from __future__ import annotations

from typing import Final

SMALL_TALK: Final[tuple[str, ...]] = tuple(
    line
    for line in """
Thanks!
Thank you so much, that helps a lot.
ok
Okay, sounds good.
Good morning! How are you today?
Good night, talk to you tomorrow.
Haha, that's funny.
lol
Hi there
Hey, how's it going?
Great, thanks.
Perfect.
Got it, thank you.
I see.
Hmm, interesting.
No worries at all.
You're welcome!
Yes, please.
No, thank you.
Sure, go ahead.
Never mind.
That makes sense.
Nice weather today, isn't it?
What's up?
How was your day?
How did you sleep?
I'm a bit tired today.
I'm bored, tell me a joke.
Do you know any good jokes?
Can you say that again?
Could you say that in fewer words?
Please make it shorter.
Sorry, I didn't catch that.
Wait, what?
Really? No way!
Wow, amazing!
That's wonderful news!
I'm so happy right now.
Ugh, Mondays.
It's raining again here.
It's so hot outside.
Happy new year!
Merry Christmas!
Have a great weekend!
See you later!
Bye for now.
Talk soon.
Take care.
Let me think about it for a minute.
Give me a second.
I'll be right back.
I'm back.
Are you there?
Hello?
Can we continue?
Let's move on.
Next one, please.
What do you think?
I agree with you.
I don't think so.
I'm not sure.
Maybe later.
Exactly!
Of course.
You are the best!
I love it.
That was quick!
Well done.
Good job!
Congratulations!
Oh no, that's too bad.
I'm sorry to hear that.
That's a shame.
Cool, let's do that.
Whatever you prefer.
It doesn't matter.
No problem, take your time.
Just kidding.
You're funny.
Tell me more.
Why?
How come?
What does that mean?
Is that right?
Are you sure?
Who are you?
What can you do?
Are you a robot?
How old are you?
What's the time?
What day is it today?
I'm hungry, time for lunch.
Coffee time for me.
I need a break.
What a long day it was.
Time flies, doesn't it?
Guess what!
By the way, nice to meet you.
Anyway, how are things?
Alright then, until next time.
""".strip().splitlines()
)
