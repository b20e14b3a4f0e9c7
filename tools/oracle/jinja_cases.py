"""Templates that exercise one construct each, and the variables they see. make_text_vectors.py renders them with jinja2."""

VARIABLES = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "  Hi <there> \"you\" & 'me'\n"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes é 日本", "tool_calls": [
            {"id": "c1", "function": {"name": "add", "arguments": {"a": 1, "b": [1.5, None, True]}}}]},
        {"role": "tool", "content": "42"},
    ],
    "tools": [{"type": "function", "function": {"name": "add", "parameters": {"properties": {
        "b": {"type": "array"}, "A": {"type": "int", "description": "erste Zahl"}}, "required": ["b"]}}}],
    "n": 7, "x": -3, "f": 2.5, "big": 12345678901, "yes": True, "no": False, "nothing": None, "empty": "", "word": "Straße",
    "text": "one two  three\ttwo\n", "list": [3, 1, 2, 2], "names": ["b", "a", "C"], "pairs": [["k", 1], ["l", 2]],
    "people": [{"name": "Ann", "age": 3, "tags": ["x"]}, {"name": "Bob", "age": 1}, {"name": "cy", "age": 2, "on": True}],
    "d": {"z": 1, "Y": {"deep": [1, {"k": "v"}]}, "a b": None, "items": "shadow"}, "quote": "it's \"q\" \\ \t é \u0007 \u200b",
}

EXPRESSIONS = [
    "n", "x", "f", "big", "yes", "no", "nothing", "empty", "missing", "1.0", "1e3", "1_000", "'a' 'b'", "\"x\\ty\\u00e9\\x41\\\\\\'\\z\"", "1e16", "0.1",
    "1e-7", "100000.0", "true", "None", "none is none",
    "n + 1", "n - 10", "n * 3", "n / 2", "n // 2", "n % 4", "x // 2", "x % 2", "f + n", "f * 2", "f // 1", "x % 2.5", "2 ** 10", "2 ** -1", "-n", "+n", "- - n",
    "1 + 2 * 3", "(1 + 2) * 3", "10 - 2 - 3", "2 ** 3 ** 2", "-2 ** 2", "7 - -2", "1 ~ 2 + 3", "'a' ~ 1 ~ none ~ true ~ [1]", "'ab' * 3", "[1, 2] * 2", "3 * 'ab'",
    "'a' + 'b'", "[1] + [2]", "(1,) + (2, 3)", "1 == 1.0", "true == 1", "'a' == 'a'", "[1, 2] == [1, 2]", "none == none", "missing == missing", "1 != 2", "1 < 2 < 3", "1 < 3 < 2",
    "'a' < 'b'", "'Z' < 'a'", "[1, 2] < [1, 3]", "2 >= 2", "1 in [1, 2]", "3 not in [1, 2]", "'n' in 'one'", "'z' in d", "'q' not in d", "1 in (1, 2)", "'x' in missing",
    "not yes", "not not yes", "yes and n", "no and n", "no or n", "empty or 'x'", "yes or missing", "not no and yes", "1 if yes else 2", "1 if no else 2", "1 if no", "'a' if no else 'b' if no else 'c'",
    "[1, 'a', none, 2.5, true]", "(1,)", "(1, 2)", "()", "1, 2", "{'a': 1, 'b': [2]}", "{}", "[]", "[1, 2,]", "{'a': 1,}", "['it\\'s', \"q\\\"\"]", "quote", "[quote]", "{'k': quote}", "d", "people",
    "list[0]", "list[-1]", "list[9]", "list[1:]", "list[:2]", "list[::-1]", "list[::2]", "list[-2:]", "list[5:]", "list[3:1]", "list[3:0:-1]", "list[-100:100]", "word[0]", "word[4]", "word[1:3]", "word[::-1]", "word[-2:]",
    "messages[0].role", "messages[0]['role']", "messages[-1].content", "messages[1].missing", "messages[1].missing is defined", "d.z", "d['z']", "d['a b']", "d.Y.deep[1].k", "d.items is string", "d['items']", "people[0].tags[0]",
    "people.0.name", "missing is defined", "missing is undefined", "nothing is none", "nothing is not none", "n is number", "yes is number", "n is integer", "yes is integer", "f is float", "yes is boolean", "n is boolean",
    "yes is true", "1 is true", "no is false", "word is string", "list is string", "d is mapping", "list is mapping", "list is sequence", "word is sequence", "n is iterable", "word is iterable", "d is iterable", "missing is iterable",
    "n is odd", "n is even", "n is divisibleby 7", "n is divisibleby(2)", "n is eq 7", "n is equalto(7)", "n is ne 7", "n is gt 3", "n is lt(3)", "n is ge 7", "n is in [7]", "range is callable", "n is callable",
    "'ab' is lower", "'AB' is upper", "'a1' is upper", "yes is sameas true", "nothing is sameas none", "n is defined and n > 3", "not n is defined", "n is not defined or yes",
    "text.strip()", "text.split()", "text.split(' ')", "text.split('two')", "text.split(' ', 1)", "text.split(none, 1)", "'a,b,c'.rsplit(',', 1)", "'a b c'.rsplit(none, 1)", "' a b '.split(none, 5)", "'xxaxx'.strip('x')", "'xyaxy'.lstrip('xy')",
    "'abcba'.rstrip('ab')", "messages[1].content.strip()", "messages[2].content.split('</think>')[-1].lstrip('\\n')", "messages[2].content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n')", "'é日'.strip('日')",
    "word.upper()", "'ABC'.lower()", "'hello wORLD'.title()", "'hELLO'.capitalize()", "'abc'.startswith('ab')", "'abc'.endswith('bc')", "'abc'.startswith(('x', 'a'))", "'aXbXc'.replace('X', '-')", "'aXbXc'.replace('X', '', 1)", "'ab'.replace('', '-')",
    "'a\\nb\\r\\nc\\n'.splitlines()", "'abcabc'.find('c')", "'é日x'.find('x')", "'abcabc'.rfind('c')", "'abc'.find('z')", "'aaaa'.count('aa')", "', '.join(names)", "'12'.isdigit()", "'ab'.isalpha()", "' \\t'.isspace()", "''.isdigit()", "'preabc'.removeprefix('pre')", "'abc.py'.removesuffix('.py')",
    "d.get('z')", "d.get('q')", "d.get('q', 5)", "d.keys() | list", "d.values() | list", "tools[0].function.items() | list", "messages[0].get('content')",
    "text | trim", "'xxaxx' | trim('x')", "n | string + 'x'", "word | length", "list | length", "d | length", "missing | length", "word | upper", "word | lower", "'hello world' | title", "'hELLO' | capitalize", "word | replace('ß', 'ss')", "5 | trim",
    "missing | default('x')", "missing | default", "empty | default('x')", "empty | default('x', true)", "nothing | default('x', boolean=true)", "n | d(1)", "nothing | default('x')",
    "list | first", "list | last", "[] | first", "word | first", "list | join(',')", "list | join", "names | join(', ')", "people | join('-', attribute='name')", "word | list", "d | list", "list | sort", "list | sort(reverse=true)", "names | sort", "names | sort(case_sensitive=true)",
    "people | sort(attribute='age') | map(attribute='name') | list", "list | reverse | list", "'abc' | reverse", "list | unique | list", "list | sum", "people | sum(attribute='age')", "list | min", "list | max", "names | max", "list | map('string') | list", "names | map('upper') | join",
    "people | map(attribute='on', default='no') | list", "people | selectattr('on') | map(attribute='name') | list", "people | selectattr('age', 'gt', 1) | map(attribute='name') | list", "people | rejectattr('name', 'equalto', 'Bob') | list | length", "people | selectattr('tags', 'defined') | list | length",
    "list | select('odd') | list", "list | reject('odd') | list", "[0, 1, '', 'a'] | select | list", "d | dictsort", "d | dictsort(true)", "{'b': 1, 'a': 2} | dictsort(by='value')", "{'b': 1, 'a': 2} | dictsort(reverse=true)", "d | items | list", "missing | items | list",
    "'42' | int", "'x' | int", "'x' | int(5)", "'3.7' | int", "3.9 | int", "-3.9 | int", "' 7 ' | int", "yes | int", "'2.5' | float", "'x' | float", "n | float", "x | abs", "-2.5 | abs", "'a\\nb\\n\\nc' | indent", "'a\\nb' | indent(2, true)", "'a\\n\\nb' | indent(2, blank=true)", "'<a href=\"x\">' | e", "d | attr('z')", "word | safe", "word | count",
    "d | tojson", "messages | tojson", "tools | tojson(indent=2)", "quote | tojson", "word | tojson", "word | tojson(ensure_ascii=true)", "'\\U0001f999' | tojson(ensure_ascii=true)", "[1, 2.0, none, true, 'x'] | tojson", "[] | tojson(indent=4)", "{} | tojson", "{'b': 1, 'a': 2} | tojson(sort_keys=true)",
    "[1, 2] | tojson(separators=(',', ':'))", "{'a': [1, {'b': []}]} | tojson(indent=1)", "(1, 2) | tojson", "1e16 | tojson", "missing | tojson", "{1: 2, none: 3, true: 4} | tojson",
    "range(3) | list", "range(1, 4) | list", "range(5, 0, -2) | list", "range(0) | list", "dict(a=1, b=2)", "dict({'a': 1}, b=2)", "strftime_now('%Y-%m-%d')", "strftime_now('%d %B %Y %H:%M:%S %b %A %a %j %y %I %p %%')",
    "missing.x", "missing[0]", "missing()", "n()", "nothing.x", "nothing['x']", "1 + 'a'", "'a' + 1", "1 < 'a'", "1 / 0", "n | nofilter", "n is notest", "raise_exception('no: ' + word)", "for x in n", "n[0]", "'a' in 5", "-'a'", "missing + 1", "[1, 'a'] | sort", "d.z.q.r", "list | join(1, 2, 3)",
    "'%s' % 1 if false else 'lazy'", "n | nofilter if false else 'lazy'", "messages[1:] | length", "(messages | length - 1) - 1", "messages | length - 1", "not(word.startswith('S') and word.endswith('e'))", "'a' if 'x' not in d else 'b'",
]

BLOCKS = [
    "{% if yes %}a{% else %}b{% endif %}", "{% if no %}a{% elif n == 7 %}b{% elif yes %}c{% else %}d{% endif %}", "{% if missing %}a{% endif %}x",
    "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ m.role }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for x in [] %}a{% else %}none{% endfor %}", "{% for x in missing %}a{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}x{% endfor %}", "{% for k, v in tools[0].items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in pairs %}{{ k }}{{ v }}{% endfor %}", "{% for (k, v) in pairs %}{{ k }}{{ v }}{% endfor %}", "{% for c in word %}{{ c }}.{% endfor %}", "{% for k in d %}{{ k }}|{% endfor %}",
    "{% for x in list if x > 1 %}{{ loop.index0 }}:{{ x }} {% endfor %}", "{% for x in list if x > 5 %}a{% else %}none{% endfor %}", "{% for x in list %}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.cycle('a', 'b') }}{{ loop.previtem }}{{ loop.nextitem }}|{% endfor %}",
    "{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if loop.index == 3 %}{% break %}{% endif %}{% endfor %}", "{% for x in list %}{% for y in names %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% set a = 1 %}{% for x in list %}{% set a = a + x %}{{ a }}{% endfor %}{{ a }}", "{% set a = 1 %}{% if yes %}{% set a = 2 %}{% endif %}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = (1, 2) %}{{ a }}", "{% set t = 1, 2 %}{{ t }}", "{% set n = 1 %}{{ n }}",
    "{% set ns = namespace(a=1, b='x') %}{% for x in list %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}", "{% set ns = namespace({'q': 1}) %}{{ ns.q }}{{ ns['q'] }}", "{% set b %}a{{ n }}b{% endset %}{{ b }}{{ b | length }}", "{% set b | upper | trim %} a{{ n }}b {% endset %}[{{ b }}]", "{% set ns = namespace() %}{% set ns.t %}body{% endset %}{{ ns.t }}",
    "{% set q = 1 %}{% set q.x = 2 %}", "{% for x in list %}{% set loop.x = 2 %}{% endfor %}",
    "{% macro m(a, b=2, c=none) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(1, c=5) }}|{{ m(b=1, a=2) }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{{ m() | upper }}{{ m() ~ 1 }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(q=2) }}",
    "{% macro f(i) %}{{ i }}{% if i > 0 %}{{ f(i - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% set g = 'top' %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 'later' %}{{ m() }}", "{% macro m() %}{{ x9 }}{% endmacro %}{% for x9 in [1] %}{{ m() }}{% endfor %}", "{% macro m() %}{% set inner = 1 %}{{ inner }}{% endmacro %}{{ m() }}{{ inner is defined }}",
    "{% with a=1, b=n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "{% filter upper %}abc{{ word }}{% endfilter %}", "{% raw %}{{ n }}{% x %}{# c #}{% endraw %}", "a{# comment #}b", "a {#- c -#} b", "{% generation %}g{% set w = 1 %}{% endgeneration %}{{ w is defined }}",
    "  {% if yes %}  \n  a\n  {% endif %}  \n b", "  {{ n }}  \n", "a\n  {%- if yes -%}  \n b {% endif %}\n\nc", "a \n {%- set q = 1 %}\n b", "{%+ if yes %}x{% endif +%}\ny", "x\n   {%+ if yes %}y{% endif %}\n", "{{- n -}}  \n z", "a\n\n{%- for x in [1, 2] %}\n{{ x }}\n{%- endfor %}\n\nb", "  {# c #}  \nx", "\t{% if yes %}\t\n\t{% endif %}\t", "a\r\nb\rc\n{% if yes %}\r\nd{% endif %}", "x\n", "x\n\n", "{% if yes %}\n\n\nx{% endif %}", "{{ 'a\nb' }}", "   a {% if yes %} b {% endif %} c   ", "{% raw -%}  x  {%- endraw %}\ny", "{%- raw %}\n x {% endraw -%}  z", "{% if yes -%}\n   x\n{%- endif %}",
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] | trim }}\n{% endfor %}{% if add is defined %}x{% endif %}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ [[1, 2], [3]][0][1] }}", "{{ ({'x': 1}).x }}", "{{ '}}' }}{{ '%}' }}", "{{ n }}{{ n }}{{- n }}", "{% set s = 'a' %}{% set s = s ~ 'b' %}{{ s }}",
    "{% if n > 3 and n < 10 or no %}ok{% endif %}", "{% set x1 = [] %}{{ x1 is iterable and x1 is not mapping }}", "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "{{ messages[0]['content'] if messages[0].role == 'system' else 'none' }}", "{{ 'A' ~ (n | string) ~ 'B' }}",
    "{% unknown %}", "{% if yes %}", "{{ n", "{% endif %}", "{{ }}", "{% for x in %}{% endfor %}", "{{ 'abc }}", "{{ (1 }}", "{# open", "{% break %}", "{{ 1 2 }}", "{{ $ }}", "{% set = 1 %}", "{{ n | }}", "{{ a.b. }}", "{% raw %}x", "{% macro %}{% endmacro %}", "{% else %}", "{{ [1, }}", "{% if %}x{% endif %}",
]


def cases():
    return ["[{{ %s }}]" % e for e in EXPRESSIONS] + BLOCKS
