"""Records what Jinja2 itself gives for many templates, so that src/template can be compared with it where Python is absent.

Run: python3 scripts/record-jinja-cases.py   (needs jinja2 3.1; writes test/fixtures/jinja-cases.json)
Jinja2 runs with StrictUndefined, its own defaults for white space, and Relay's one rule for text (see `text`).
"""

import json
import pathlib

import jinja2
import jinja2.filters
import jinja2.runtime
from jinja2 import StrictUndefined

# What Relay does differently on purpose. These are not recorded; src/template's own tests cover them.
DEVIATIONS = [
    ("{{ [1, 'a'] }}", "lists and maps are written as compact JSON, not as Python's repr"),
    ("{{ true }} {{ none }}", "written `true` and `null`, not `True` and `None`"),
    ("{{ 4 / 2 }} {{ 1.0 }}", "one kind of number: whole floats are written without `.0`"),
    ("{{ 1.0 is integer }} {{ 1.0 is float }}", "one kind of number: a whole number is an integer"),
    ("{{ 2 ** 100 }} {{ 1e16 }} {{ 0.00001 }}", "numbers are doubles and written as JSON writes them"),
    ("{{ {'b': 1, 2: 3} }}", "keys of maps are text; keys that look like whole numbers come first"),
    ("{{ {'a': 1} | tojson }}", "compact, in the order of the data, and without HTML escapes"),
    ("{{ [missing] | length }}", "what is undefined cannot be an element, an argument or the value of `set`"),
    ("{{ missing | items | list }}", "`items` of what is undefined is an error"),
    ("{{ [{}] | map(attribute='x') | list | length }}", "a missing attribute is an error where it is read"),
    ("{{ 'a'|escape ~ '<' }}", "escaped text is plain text; nothing is escaped implicitly"),
    ("{{ '%s' % 1 }}", "`%` is only a number's remainder; the filter `format` formats"),
    ("{{ 'a\\r\\nb' }} in text with CRLF", "line ends in the template's text stay as written"),
    ("{{ x.items }}", "an own key wins over a method's name; methods exist only in calls"),
    ("{{ range(3) }}", "a list, not a range object"),
    ("{{ [none, none] | sort }}", "equal elements need no order"),
    ("{{ 'nan' | float }}", "not a number is never a value, so the default is given"),
    ("{{ x | wordwrap }} with `--` inside words", "a dash of two hyphens is not a place to break"),
    ("{{ '&eacute;' | striptags }}", "only numeric entities and the basic names are resolved"),
    ("{{ x is sameas y }} {{ x is callable }}", "no identity, nothing callable"),
    ("{% include %} {% macro %} {% call %} {% do %} {% with %} recursive loops", "not supported"),
    ("{{ x | random }} {{ x | pprint }} {{ x | xmlattr }} {{ x | attr('a') }} {{ x | urlize }}", "not supported"),
    ("{{ f(*xs) }} {{ x|first.y }} {{ joiner() }} {{ cycler() }} {{ lipsum() }}", "not supported"),
    ("{{ missing is none }}", "only `is defined` and `is undefined` may be asked of what is undefined"),
    ("{{ x }} with white space around it", "one single expression keeps its type, so the white space is dropped"),
    ("'a' if false", "in a bare expression a missing `else` is an error; as text it is empty, as in Jinja2"),
    ("{% if a if b else c %}", "inline `if` is accepted in conditions"),
]

SCOPE = {
    "name": "Ada",
    "empty": "",
    "text": "The quick brown fox jumps over the lazy dog",
    "html": "<p class=\"a\">Fish &amp; 'chips'</p>",
    "n": 7,
    "neg": -3,
    "zero": 0,
    "pi": 3.14159,
    "half": 2.5,
    "yes": True,
    "no": False,
    "nothing": None,
    "nums": [3, 1, 2],
    "words": ["pear", "Apple", "fig", "apple"],
    "nested": [[1, 2], [3, 4]],
    "pairs": [["a", 1], ["b", 2]],
    "none_list": [],
    "map": {"b": 2, "a": 1, "c": {"d": [10, 20]}},
    "users": [
        {"name": "bob", "age": 30, "tags": ["x"], "team": {"id": 2}},
        {"name": "Alice", "age": 25, "tags": [], "team": {"id": 1}},
        {"name": "carol", "age": 30, "tags": ["y", "z"], "team": {"id": 2}},
    ],
    "odd-name": "dashed",
    "emoji": "a😀b",
    "accents": "Ünïcödé straße",
    "lines": "one\n\ntwo\nthree\n",
    "tasks": {"research": {"output": {"points": ["p", "q"], "score": 0.5}}, "skipped": {"output": None}},
}

EXPRESSIONS = """
1
-1
+5
1_000
0x1f
0b101
0o17
1.5
1e3
1.5e-3
'single'
"double"
'it\\'s'
"tab\\tnew\\nline"
'\\x41\\u00e9\\U0001F600'
'\\d stays'
'a' 'b' "c"
true
True
false
none
None
[]
[1, 2, 3]
[1, 2,]
(1, 2)
(1,)
()
(1)
{}
{'a': 1, "b": [2]}
{'a': {'b': {'c': 1}}}
1 + 2 * 3
(1 + 2) * 3
10 - 4 - 3
2 ** 3
2 ** 3 ** 2
-2 ** 2
7 / 2
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
7.5 % 2
-7.5 // 2
2 * 3.5
n + 1
n - neg
-n
- -n
n / zero
n // 0
n % 0
0 ** -1
'a' + 'b'
'a' + 1
1 + 'a'
'ab' * 3
3 * 'ab'
'ab' * -1
[1] + [2, 3]
[1] * 3
[1] + 'a'
none + 1
true + 1
true * 3
1 ~ 2
'a' ~ 1 ~ 'b'
1 + 2 ~ 3 + 4
2 * 3 ~ 4
1 == 1
1 == 1.0
1 == true
'1' == 1
1 != 2
[1, 2] == [1, 2]
{'a': 1} == {'a': 1}
{'a': 1} == {'a': 2}
none == none
none == false
1 < 2
2 <= 2
3 > 2
2 >= 3
1 < 2 < 3
1 < 3 < 2
3 > 2 > 1 > 0
'a' < 'b'
'B' < 'a'
[1, 2] < [1, 3]
[1] < [1, 0]
1 < 'a'
none < 1
{} < {}
1 in [1, 2]
3 in [1, 2]
3 not in [1, 2]
'a' in 'cat'
'' in 'cat'
'a' in map
'z' in map
1 in 'a1'
1 in 5
not true
not 0
not ''
not []
not not 1
not 1 == 2
true and false
1 and 2
0 and 2
1 or 2
0 or 2
'' or none
'' or 'x' and 'y'
not true or true
1 and not 0
missing or 1
0 and missing
1 or missing
0 or missing
(0 or missing) | default('d')
'a' if true else 'b'
'a' if false else 'b'
('a' if false) is defined
('a' if false) | default('x')
1 if no else 2 if yes else 3
1 if no else 2 if no else 3
'x' if n > 5 and n < 10 else 'y'
missing if false else 'ok'
name
missing
missing.attr
map.a
map['a']
map.c.d
map.c.d[0]
map['c']['d'][1]
map.c.d[-1]
map.c.d.1
map.c.d[9]
map.zz
map['zz']
map[name]
nums[0]
nums[-1]
nums[5]
nums['a']
nested[1][0]
nested.1.0
name[0]
name[-1]
name[9]
emoji[1]
nothing.x
nothing.x | default('d')
nothing[0]
n.x
n.x is defined
nums.x is defined
missing is defined
missing is undefined
missing is not defined
map.zz is defined
map.zz.y is defined
map.a is defined
missing | default('d')
missing | default
missing | d('d')
missing.x | default('d')
map.zz | default('d')
'' | default('d')
'' | default('d', true)
'' | default('d', boolean=true)
none | default('d')
none | default('d', true)
missing | default(none)
missing | default(alsomissing) | default('end')
1 | default(missing)
nums[0:2]
nums[1:]
nums[:-1]
nums[::-1]
nums[::2]
nums[5:]
nums[-2:]
nums[2:0:-1]
nums[:0]
name[1:]
name[::-1]
emoji[1:]
nums[::0]
nums[1.5:]
range(5)|list
range(1, 4)|list
range(0, 10, 3)|list
range(3, 0, -1)|list
range(0)|list
range(1, 1)|list
range(2)|length
range('a')
range(0, 3, 0)
dict(a=1, b=2)
dict([('a', 1), ('b', 2)])
dict({'a': 1}, b=2)
map.items()|list
map.c.keys()|list
map.values()|list|length
map.get('a')
map.get('zz')
map.get('zz', 5)
name.upper()
name.lower()
' x '.strip()
'xxaxx'.strip('x')
' x '.lstrip()
' x '.rstrip()
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
' a  b '.split()
' a  b c '.split(none, 1)
'a,b'.split('')
'-'.join(['a', 'b'])
'-'.join([1])
'banana'.replace('a', 'o')
'banana'.replace('a', 'o', 2)
'abc'.replace('', '-')
name.startswith('A')
name.startswith('a')
name.endswith('da')
'banana'.count('a')
'banana'.index('n')
'banana'.index('z')
nums.index(2)
nums.index(9)
[1, 2, 1].count(1)
'hello big world'.title()
'hELLO'.capitalize()
'a\\nb\\n'.splitlines()
name.nomethod()
n.upper()
nums.upper()
name | upper
name | lower
'hELLO wORLD' | capitalize
'' | capitalize
'hello (big) wide-world it\\'s' | title
accents | upper
accents | title
'  a b ' | trim
'xxaxx' | trim('x')
5 | upper
'a-b-c' | replace('-', '+')
'a-b-c' | replace('-', '+', 1)
'abc' | replace('', '.')
123 | replace(2, 'x')
'abc' | length
emoji | length
nums | length
map | length
nums | count
5 | length
none | length
missing | length
words | join
words | join(', ')
[1, 2] | join('-')
users | join(', ', attribute='name')
'abc' | join('.')
[] | join(',')
map | join(',')
5 | join
nums | first
nums | last
'abc' | first
[] | first
[] | first | default('none')
[] | last | default('none')
map | first
nums | reverse | list
'abc' | reverse
nums | sort
nums | sort(reverse=true)
words | sort
words | sort(case_sensitive=true)
words | sort(true)
users | sort(attribute='age') | map(attribute='name') | list
users | sort(attribute='age,name') | map(attribute='name') | list
users | sort(attribute='team.id') | map(attribute='name') | list
users | sort(attribute='age', reverse=true) | map(attribute='name') | list
users | sort(attribute='zz')
[1, 'a'] | sort
map | sort
'cab' | sort
words | unique | list
words | unique(case_sensitive=true) | list
[1, 1, 2, true] | unique | list
users | unique(attribute='age') | map(attribute='name') | list
words | map('upper') | list
words | map('replace', 'p', 'b') | list
words | map('truncate', 4, true, '.', 0) | list
words | map('truncate', length=4, killwords=true, end='.', leeway=0) | list
users | map(attribute='name') | list
users | map(attribute='team.id') | list
users | map(attribute='zz', default='?') | list
users | map(attribute='tags.0', default='-') | list
nested | map('sum') | list
nested | map('first') | list
nums | map('nofilter') | list
nums | map | list
nested | map('map', 'string') | map('join', '+') | list
[0, 1, '', 'a', none] | select | list
[0, 1, '', 'a', none] | reject | list
nums | select('odd') | list
nums | reject('odd') | list
nums | select('gt', 1) | list
nums | select('in', [1, 2]) | list
nums | select('divisibleby', 2) | list
words | select('equalto', 'fig') | list
words | select('==', 'fig') | list
nums | select('notest') | list
users | selectattr('tags') | map(attribute='name') | list
users | selectattr('age', 'eq', 30) | map(attribute='name') | list
users | selectattr('age', 'lt', 30) | map(attribute='name') | list
users | selectattr('team.id', 'ge', 2) | map(attribute='name') | list
users | selectattr('zz', 'defined') | list
users | rejectattr('tags') | map(attribute='name') | list
users | rejectattr('age', 'eq', 30) | map(attribute='name') | list
users | selectattr('zz') | list
users | groupby('age') | list | length
users | groupby('age') | map('first') | list
users | groupby('age') | map(attribute='grouper') | list
users | groupby('age') | map(attribute='list') | map('length') | list
users | groupby('zz', default=0) | map('first') | list
words | groupby(0) | map('first') | list
users | groupby('zz')
nums | batch(2) | list
nums | batch(2, 'x') | list
[] | batch(2) | list
range(7) | slice(3) | list
range(7) | slice(3, 'x') | list
range(2) | slice(3) | list
nums | sum
[] | sum
nums | sum(start=10)
users | sum(attribute='age')
users | sum(attribute='team.id', start=1)
words | sum
nums | min
nums | max
words | min
words | max
[] | min
[] | max | default('none')
users | max(attribute='age') | length
['b', 'A'] | min
['b', 'A'] | min(case_sensitive=true)
[1, 'a'] | max
neg | abs
'a' | abs
pi | round
pi | round(2)
pi | round(2, 'ceil')
pi | round(2, 'floor')
pi | round(method='ceil')
half | round
3.5 | round
0.5 | round
-2.5 | round
2.675 | round(2)
1234 | round(-2)
42 | round(1)
pi | round(2, 'nope')
'a' | round
'42' | int
'42.9' | int
' 42 ' | int
'abc' | int
'abc' | int(-1)
'abc' | int(default=5)
'0x1f' | int(base=16)
'1f' | int(0, 16)
'101' | int(base=2)
3.99 | int
-3.99 | int
true | int
none | int
none | int(7)
[] | int
'1e3' | int
'1_000' | int
'3.5' | float
'abc' | float
'abc' | float(1.5)
3 | float
none | float
'1e2' | float
5 | string
'a' | string
[1, 'a', none] | string
1.5 | string
'abc' | list
map | list
nums | list
5 | list
map | items | list
nums | items | list
map.c | dictsort
{'b': 1, 'A': 2, 'c': 0} | dictsort
{'b': 1, 'A': 2, 'c': 0} | dictsort(true)
{'b': 1, 'A': 2, 'c': 0} | dictsort(by='value')
{'b': 1, 'A': 2, 'c': 0} | dictsort(false, 'value', true)
{'b': 1} | dictsort(by='zz')
'a b&c/d?e=é' | urlencode
{'a b': 'c d', 'x': 1} | urlencode
[['a', 'b/c'], ['d', 'e']] | urlencode
'~-_.!*()\\'' | urlencode
5 | urlencode
lines | indent
lines | indent(2)
lines | indent(2, true)
lines | indent(2, first=true, blank=true)
lines | indent('> ')
'' | indent
text | truncate(20)
text | truncate(20, true)
text | truncate(20, false, '…')
text | truncate(20, leeway=0)
text | truncate(42)
text | truncate(40)
text | truncate(38, leeway=0)
text | truncate(2)
'short' | truncate(10)
'longwordwithoutspaces and more' | truncate(10, leeway=0)
text | wordwrap(10)
text | wordwrap(15, wrapstring=' / ')
'abcdefghijklmnop' | wordwrap(5)
'abcdefghijklmnop qr' | wordwrap(5, false)
'well-known semi-automatic' | wordwrap(10)
'well-known semi-automatic' | wordwrap(10, break_on_hyphens=false)
lines | wordwrap(3)
'  lead  and   gap ' | wordwrap(6)
'' | wordwrap
text | wordcount
'' | wordcount
"it's a test-case, ok?" | wordcount
'ab' | center(6)
'ab' | center(7)
'abc' | center(6)
'abc' | center(7)
'abc' | center(2)
'abc' | center | length
html | striptags
'a <!-- x <b> --> b   c' | striptags
'5 < 6' | striptags
html | escape
'<' | e
5 | escape
'<b>' | safe
'%s-%s' | format('a', 1)
'%d %5d|%-5d|%05d' | format(1, 2, 3, 4)
'%.2f %8.3f %+d' | format(3.14159, 2.5, 3)
'%x %X %o %#x' | format(255, 255, 8, 255)
'%e %E' | format(12345.678, 0.00012)
'%g %g %g' | format(0.0001, 123456789, 1.5)
'%5s|%-5s|%.2s' | format('ab', 'ab', 'abc')
'%(a)s and %(b)d' | format(a='x', b=2)
'100%%' | format
'%d' | format(3.9)
'%s %s' | format('a')
'%s' | format('a', 'b')
'%d' | format('a')
'%q' | format(1)
'%' | format(1)
1 | filesizeformat
500 | filesizeformat
1000 | filesizeformat
1500000 | filesizeformat
1024 | filesizeformat(true)
1536 | filesizeformat(binary=true)
10000000000 | filesizeformat
'2048' | filesizeformat
'a' | filesizeformat
n is number
'a' is number
true is number
n is integer
pi is integer
true is integer
pi is float
n is float
name is string
n is string
map is mapping
nums is mapping
nums is sequence
map is sequence
name is sequence
n is sequence
nums is iterable
n is iterable
nothing is none
n is none
yes is boolean
n is boolean
yes is true
n is true
no is false
zero is false
n is odd
n is even
neg is odd
n is divisibleby 7
n is divisibleby(2)
n is divisibleby 0
'a' is even
1 is in [1, 2]
3 is in [1, 2]
3 is not in [1, 2]
n is eq 7
n is ne 7
n is lt 8
n is le 7
n is gt 7
n is ge 7
n is equalto 7
n is lessthan 8
n is greaterthan 8
'abc' is lower
'Abc' is lower
'ABC' is upper
'123' is upper
'A1' is upper
n is notatest
n is odd and n is gt 5
not n is odd
n is not odd
n is odd or missing
'x' if n is odd else 'y'
n is odd is even
-n | abs
-(n | abs)
n + 1 | string
'a' ~ 1 | string
nums | length > 2
nums | length == 3 and yes
nums | map('string') | join(',') ~ '!'
(nums | sort)[0]
(users | first).name
users[0].name | upper
[users[0], users[1]] | map(attribute='age') | sum
{'k': nums | sum}.k
words | select('in', ['fig']) | first
tasks.research.output.points | length > 0
tasks.skipped.output is none
tasks['research'].output['score'] * 2
1 +
(1
1)
[1
{'a'}
'abc
1 2
a b
a..b
a.
a[
a[]
a |
a | nofilter
a is
f(
upper('a')
1 if
and
not
a = 1
a == = b
x | default('a', 'b', 'c')
nums | join(sep='-')
nums | join(',', d=';')
""".strip("\n").split("\n")

TEMPLATES = [
    "plain text",
    "",
    "a { b } c",
    "Hello {{ name }}!",
    "{{ name }}{{ name }}",
    "{{ n }} and {{ pi }}",
    "{{ nums }} {{ map }} {{ nothing }} {{ yes }}",
    "line\n{{ name }}\n",
    "{{ name }}.\n\n",
    "{{ 'a' if no }}.",
    "{{ 'a' ~ ('b' if no) ~ 'c' }}.",
    "{% for x in nums %}{{ x }}{{ ', ' if not loop.last }}{% endfor %}",
    "{# comment #}x",
    "a{# multi\nline #}b",
    "a {#- c -#} b",
    "a {# c -#} b",
    "{#-#}x",
    "  {{- name -}}  x",
    "  {{ name -}}  x",
    "  {{- name }}  x",
    "a\n  {%- if yes %}\n b\n  {%- endif %}\n c",
    "a {%+ if yes +%} b {% endif %}",
    "{%- for x in nums -%} {{ x }} {%- endfor -%}",
    "{{-1}}",
    "{{ -1 }}",
    "{{+1}}",
    "{{1-}}",
    "{{ {'a': {'b': 1}}.a.b }}",
    "{{ '}}' }}x",
    "{{ \"%}\" }}x",
    "{{ 1, 2 }}",
    "{{ }}",
    "{{",
    "{{ name",
    "{{ name }",
    "{% if",
    "{% if yes %}",
    "{# open",
    "}} %} #}",
    "{% raw %}{{ x }} {% if %}{% endraw %}",
    "a {%- raw -%} {{ x }} {%- endraw -%} b",
    "{% raw %}{% endraw %}x",
    "{% raw %}x",
    "{% if yes %}y{% endif %}",
    "{% if no %}y{% endif %}",
    "{% if no %}a{% elif yes %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif zero %}b{% else %}c{% endif %}",
    "{% if missing %}a{% endif %}",
    "{% if missing is defined and missing %}a{% else %}b{% endif %}",
    "{% if nums and not none_list %}ok{% endif %}",
    "{% if yes %}{% if no %}a{% else %}b{% endif %}{% endif %}",
    "{% if yes %}a{% else %}b{% else %}c{% endif %}",
    "{% else %}",
    "{% endif %}",
    "{% for x in nums %}{% endif %}{% endfor %}",
    "{% for x in nums %}{{ x }},{% endfor %}",
    "{% for x in none_list %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nums %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nums if x > 1 %}{{ loop.index }}:{{ x }} {% endfor %}",
    "{% for x in nums if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nums if x > 1 %}{{ loop.length }}{{ loop.last }}{% endfor %}",
    "{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in map %}{{ k }}{% endfor %}",
    "{% for c in name %}{{ c }}.{% endfor %}",
    "{% for c in emoji %}{{ c }}.{% endfor %}",
    "{% for a, b in nested %}{{ a + b }} {% endfor %}",
    "{% for (a, b) in nested %}{{ a * b }} {% endfor %}",
    "{% for a, b, c in nested %}{{ a }}{% endfor %}",
    "{% for a, b in nums %}{{ a }}{% endfor %}",
    "{% for i, (a, b) in [(1, (2, 3))] %}{{ i }}{{ a }}{{ b }}{% endfor %}",
    "{% for x in n %}{{ x }}{% endfor %}",
    "{% for x in nothing %}{{ x }}{% endfor %}",
    "{% for x in missing %}{{ x }}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in nums %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}",
    "{% for x in nums %}{{ loop.first }} {{ loop.last }} {{ loop.length }};{% endfor %}",
    "{% for x in nums %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in nums %}{{ loop.previtem | default('-') }}{{ loop.nextitem | default('-') }} {% endfor %}",
    "{% for x in nums %}{{ loop.previtem }}{% endfor %}",
    "{% for x in nums %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in nested %}{% for y in x %}{{ loop.index }}{{ y }}{% endfor %}|{% endfor %}",
    "{% for x in nested %}{% set outer = loop %}{% for y in x %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in nums %}{{ x }}{% endfor %}{{ x }}",
    "{% for x in nums %}{% endfor %}{{ loop.index }}",
    "{% for x in x %}{{ x }}{% endfor %}",
    "{% for nums in nums %}{{ nums }}{% endfor %}{{ nums }}",
    "{% for x in users | sort(attribute='name') %}{{ x.name }} {% endfor %}",
    "{% for g in users | groupby('age') %}{{ g.grouper }}:{{ g.list | map(attribute='name') | join('+') }} {% endfor %}",
    "{% for age, list in users | groupby('age') %}{{ age }}:{{ list | length }} {% endfor %}",
    "{% for row in range(5) | batch(2, '-') %}{{ row | join }}|{% endfor %}",
    "{% for x in nums -%} {{ x }} {%- endfor %}",
    "{% for x in range(3) %}{% if loop.first %}first{% elif x == 1 %}mid{% else %}end{% endif %}{% endfor %}",
    "{% for x in nums",
    "{% for in nums %}{% endfor %}",
    "{% for x nums %}{% endfor %}",
    "{% for x in nums %}",
    "{% set x = 1 %}{{ x }}",
    "{% set x = nums | sum %}{{ x + 1 }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [1] %}{{ a }}",
    "{% set x %}block {{ name }}{% endset %}[{{ x }}]",
    "{% set x | upper | trim %} block {% endset %}[{{ x }}]",
    "{% set name = 'Bob' %}{{ name }}",
    "{{ name }}{% set name = 'Bob' %}{{ name }}",
    "{% if yes %}{% set x = 1 %}{% endif %}{{ x }}",
    "{% if no %}{% set x = 1 %}{% endif %}{{ x }}",
    "{% if no %}{% set name = 'Bob' %}{% endif %}{{ name }}",
    "{% if no %}{% set x = 1 %}{% else %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% if zz is not defined %}{% set zz = 'dflt' %}{% endif %}{{ zz }}",
    "{% set x = 0 %}{% for i in nums %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}",
    "{% set x = 0 %}{% for i in nums %}{{ x }}{% if i > 1 %}{% set x = i %}{% endif %}{{ x }} {% endfor %}{{ x }}",
    "{% for i in nums %}{% if i == 3 %}{% set x = 'three' %}{% endif %}{{ x | default('no') }} {% endfor %}",
    "{% set ns = namespace(total=0) %}{% for i in nums %}{% set ns.total = ns.total + i %}{% endfor %}{{ ns.total }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b | default('x') }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}",
    "{% set ns = namespace() %}{{ ns.a }}",
    "{% set ns = namespace(found=false) %}{% for u in users %}{% if u.age < 30 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}",
    "{% set map.a = 5 %}",
    "{% set x = 1 %}{% set x.a = 5 %}",
    "{% set x %}",
    "{% set = 1 %}",
    "{% set x = %}",
    "{% set x 1 %}",
    "{% filter upper %}hello {{ name }}{% endfilter %}",
    "{% filter trim | replace('a', 'b') %} aa {% endfilter %}.",
    "{% filter indent(2) %}a\nb{% endfilter %}",
    "{% filter upper %}{% set x = 1 %}{{ x }}{% endfilter %}{{ x | default('gone') }}",
    "{% set y %}{% set x = 1 %}{{ x }}{% endset %}{{ x | default('gone') }}{{ y }}",
    "{% filter nofilter %}{% endfilter %}",
    "{% filter upper %}",
    "{% for x in nums %}{% set y %}{{ x }}{% endset %}{{ y }};{% endfor %}",
    "{% for u in users %}- {{ u.name | title }} ({{ u.age }}){{ ' *' if u.tags else '' }}\n{% endfor %}",
    "{{ users | map(attribute='name') | join(', ') }}.",
    "{{ 'yes' if yes else 'no' }} {{ 'yes' if no else 'no' }}",
    "{{ text | truncate(15) }} {{ text | wordcount }}",
    "{{ html | escape }}{{ html | safe }}",
    "{{ tasks.research.output.points | join(', ') }} {{ tasks.skipped.output }}",
    "{{ tasks.skipped.output.points }}",
    "{{ nums|sort|join('<') }} {{ nums | sort | reverse | join('>') }}",
    "{%if yes%}{{name}}{%endif%}",
    "{% if yes %}\n  indented\n{% endif %}\nafter",
    "{% unknown %}",
    "{% %}",
    "{{ name }} {{ missing }}",
    "{{ name | upper }} {{ name | nofilter }}",
    "{{ n is odd }} {{ n is even }}",
    "{{ \"a\" \"b\" }}!",
    "{{ name }}{{ '\\n' }}{{ name }}",
    "émoji 😀 {{ emoji }} ok",
    "{{ 'é' | urlencode }} {{ accents | length }}",
    "{% for x in [1, 2] %}{% for x in [3] %}{{ x }}{% endfor %}{{ x }}{% endfor %}",
    "{{ loop }}",
    "{% for x in nums %}{{ loop.nope | default('?') }}{% endfor %}",
    "{{ ((((1)))) }} ok",
    "{% if 1 in nums and 'a' not in name %}y{% endif %}",
    "{% if n is divisibleby 7 and not n is even %}y{% endif %}",
    "{% if (n > 5) == true %}y{% endif %}",
]


def plain(value):
    """JSON data: tuples and generators are lists, whole floats are whole numbers."""
    if isinstance(value, jinja2.Undefined):
        return str(value)  # Fails when strict; a missing `else` is lenient in Jinja2.
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return int(value) if value == int(value) else value
    if isinstance(value, dict):
        return {text(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value]


def text(value):
    """Relay's rule for text: strings as they are, everything else as compact JSON."""
    value = plain(value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def environment():
    env = jinja2.Environment(undefined=StrictUndefined, keep_trailing_newline=True, finalize=text)
    jinja2.runtime.str_join = lambda parts: "".join(text(part) for part in parts)
    jinja2.filters.soft_str = text
    original_join = env.filters["join"]

    @jinja2.pass_eval_context
    def join(eval_ctx, value, d="", attribute=None):
        if attribute is not None:
            value = jinja2.filters.sync_do_map(eval_ctx, value, attribute=attribute)
        return original_join(eval_ctx, [text(item) for item in value], d)

    env.filters.update(string=text, join=join)
    return env


def record(env, source, mode):
    case = {"template": source, "mode": mode}
    try:
        if mode == "text":
            case["expected"] = env.from_string(source).render(**SCOPE)
        else:
            case["expected"] = plain(env.compile_expression(source, undefined_to_none=False)(**SCOPE))
    except Exception:  # Whatever Jinja2 refuses, Relay has to refuse.
        case["error"] = True
    return case


def main():
    env = environment()
    cases = [record(env, source, "expression") for source in EXPRESSIONS]
    cases += [record(env, source, "text") for source in TEMPLATES]
    path = pathlib.Path(__file__).parent.parent / "test" / "fixtures" / "jinja-cases.json"
    body = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    scope = json.dumps(SCOPE, ensure_ascii=False)
    header = f'"jinja2": "{jinja2.__version__}",\n"scope": {scope}'
    path.write_text(f'{{\n{header},\n"cases": [\n{body}\n]\n}}\n', encoding="utf-8")
    print(f"{len(cases)} cases, {sum('error' in case for case in cases)} of them errors")


if __name__ == "__main__":
    main()
