import fc from 'fast-check'

const names = ['a', 'b', 'c', 'list', '`two words`', 'constructor', '__proto__']

const unaryFunctions = (
  'string number boolean not exists count sum max min average keys spread merge reverse distinct type length uppercase ' +
  'lowercase trim abs floor ceil round sqrt join sort zip append lookup withoutNulls toJson parseJson'
)
  .split(' ')
  .map((name) => `$${name}`)

const binaryFunctions =
  'append lookup join substring substringBefore substringAfter pad contains split zip power round formatBase formatNumber'
    .split(' ')
    .map((name) => `$${name}`)

/** Random JSON with members that random expressions read. */
export const values: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown; record: unknown; list: unknown }>((tie) => ({
  value: fc.oneof({ maxDepth: 4, depthSize: 'medium' }, scalar(), tie('record'), tie('list')),
  list: fc.array(tie('value'), { maxLength: 3 }),
  record: fc
    .uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c', 'list', 'two words', 'constructor'), tie('value')), {
      maxLength: 4,
      selector: ([name]) => name,
    })
    .map((members) => Object.fromEntries(members)),
})).value

function scalar(): fc.Arbitrary<unknown> {
  return fc.constantFrom<unknown>(null, true, false, 0, 1, -1, 2.5, 3, '', 'x', 'ab', '1', 'a b', 'é𝄞')
}

type Texts = Record<'expression' | 'path' | 'step' | 'lambda' | 'predicate' | 'key', string>

/** Random JSONata of every supported kind. */
export const expressions: fc.Arbitrary<string> = fc.letrec<Texts>((tie) => {
  const e = tie('expression')
  const join = (...parts: (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> =>
    fc.tuple(...parts.map((part) => (typeof part === 'string' ? fc.constant(part) : part))).map((all) => all.join(''))
  const one = (...parts: string[]): fc.Arbitrary<string> => fc.constantFrom(...parts)
  const name = one(...names)
  // One count of depth for all of them, or a text would grow without end.
  const bounds = { maxDepth: 4, depthIdentifier: fc.createDepthIdentifier() }
  const variable = one('$x', '$y', '$', '$$')
  return {
    key: fc.oneof(bounds, one('"k"', '"l"', '"__proto__"'), tie('path'), join('$string(', e, ')')),
    predicate: fc.oneof(bounds, one('[0]', '[-1]', '[1]', '[]'), join('[', e, ']'), join('[', name, ' = ', e, ']')),
    lambda: fc.oneof(
      bounds,
      one('$string', '$count', '$sum', '$not'),
      join('function($x){', e, '}'),
      join('function($x, $y){', e, '}'),
      join('function($x, $y, $z){', e, '}'),
    ),
    step: fc.oneof(
      bounds,
      { weight: 6, arbitrary: name },
      one('$', '$x', '$$'),
      join('(', e, ')'),
      join('{"k": ', e, '}'),
      join('{', tie('key'), ': ', e, '}'),
      join('[', e, ']'),
      join('[', e, ', ', e, ']'),
      join('$count(', e, ')'),
      one('$string()', '$keys()', '$type($)'),
    ),
    path: fc.oneof(
      bounds,
      { weight: 3, arbitrary: name },
      { weight: 2, arbitrary: join(name, '.', name) },
      join(tie('path'), '.', tie('step')),
      join(tie('path'), tie('predicate')),
      join(variable, tie('predicate')),
      join(variable, '.', tie('step')),
      join(tie('path'), '.', name, '[]'),
    ),
    expression: fc.oneof(
      bounds,
      one('1', '0', '-2', '2.5', '"x"', '"ab"', '""', 'true', 'false', 'null', '$', '$$', '$x', '$y', '[]', '{}'),
      { weight: 4, arbitrary: tie('path') },
      { weight: 2, arbitrary: join('(', e, one(' + ', ' - ', ' * ', ' / ', ' % ', ' & ', ' & '), e, ')') },
      { weight: 2, arbitrary: join('(', e, one(' = ', ' != ', ' < ', ' >= ', ' in ', ' and ', ' or '), e, ')') },
      join('(', e, one(' ?: ', ' ?? '), e, ')'),
      join('(', e, ' ? ', e, ' : ', e, ')'),
      join('(', e, ' ? ', e, ')'),
      join('[', e, ']'),
      join('[', e, ', ', e, ']'),
      join('[', one('0', '1', '-1'), '..', one('3', '0', 'a'), ']'),
      join('{"a": ', e, '}'),
      join('{"a": ', e, ', "b": ', e, '}'),
      join('($x := ', e, '; ', e, ')'),
      join('($x := ', e, '; $y := ', e, '; ', e, ')'),
      join('($x := ', e, '; $f := function() {[$x]}; $x := ', e, '; [$f(), $x])'),
      join('($f := function() {$x}; $x := ', e, '; ', e, ' & $f())'),
      join('(', e, ' ? $x := ', e, ' : ', e, '; $x)'),
      join('($x := ', e, '; ($y := $x; $x := ', e, '; ', e, ') & $x)'),
      join('($sum := ', e, '; $sum)'),
      join('($count := ', tie('lambda'), '; ', tie('path'), '.$count(', e, '))'),
      join('($append($x := ', e, ', ', e, '); $x)'),
      join('(', tie('path'), '[$x := ', e, ']; $x)'),
      join('(', e, '; ', e, '; $x := ', e, ')'),
      join(
        tie('path'),
        '.(function($x)<',
        one('s-:s', 'n-:n', 'a<n>:n', 'x-x?:x', 'o-:o', '(ns)-:s', 'f:x'),
        '>{',
        e,
        '})(',
        e,
        ')',
      ),
      join(
        '($f := function($x, $y)<',
        one('s-n?:s', 'n-n:n', 'a<s>s?:s', 'xf:x'),
        '>{[$x, $y]}; ',
        tie('path'),
        '.$f(',
        e,
        '))',
      ),
      join(
        tie('path'),
        '.',
        one('$string()', '$uppercase()', '$length()', '$substring(1)', '$number()', '$lookup("a")'),
      ),
      join('(', e, ' ~> ', tie('lambda'), ' ~> ', tie('lambda'), ')'),
      join('((', tie('lambda'), ' ~> ', tie('lambda'), ')(', e, '))'),
      join('$map(', e, ', function($x, $y){(', e, '; $x[0])})'),
      join('$f', '(', e, ')'),
      join('a(', e, ')'),
      join('($f := ', tie('lambda'), '; $f(', e, '))'),
      join('($f := function($n, $m){$n <= 0 ? $m : $f($n - 1, ', e, ')}; $f(3, ', e, '))'),
      join('($f := function($x){$g($x, ', e, ')}; $g := function($x, $y){', e, '}; ', tie('path'), '.$f($))'),
      join('($f := function($x){$g(', e, ')}; $g := function($y){', e, '}; $y := ', e, '; [$f(', e, '), $g()])'),
      join('($g := function($y){[$x, ', e, ']}; $x := ', e, '; $f := function($x){$g($x)[0]}; $map(', e, ', $f))'),
      join('($x := ', e, '; $f := function(){{"x": $x, "a": a}}; $f() ? ($f := function(){1}; $f()) : ', e, ')'),
      join('($r := $f(', e, '); $f := function($x){', e, '}; [$r, $f(', e, ')])'),
      join('($f := function($x){$x > 2 ? $x : $f($x + 1)}; $g := function($y){$f(1) & ', e, '}; $g(', e, '))'),
      join('(', e, ' in ["x", "ab", 1, null, true])'),
      join('(', e, ')', tie('predicate')),
      join(tie('lambda'), '(', e, ')'),
      join(one('$map', '$filter', '$single', '$sort', '$each', '$sift'), '(', e, ', ', tie('lambda'), ')'),
      join('$reduce(', e, ', function($x, $y){', e, '}, ', e, ')'),
      join('(', e, ' ~> ', tie('lambda'), ')'),
      join('(', e, ' ~> ', one('$string()', '$map(function($x){$x})', '$append(1)', '|$|{"a": 1}, "b"|'), ')'),
      join('(', e, ' ~> |', tie('path'), '|', e, '|)'),
      join(one(...unaryFunctions), '(', e, ')'),
      join(one(...binaryFunctions), '(', e, ', ', e, ')'),
      join('$', one('match', 'contains', 'split'), '(', e, ', ', one('/a/', '/(a)|b/i', '/x*b/', '/\\s+/'), ')'),
      join(
        '$replace(',
        e,
        ', ',
        one('/a/, "$1"', '/(a)(b)?/, "$0$$"', '"a", "$1"', '/b/, function($x){$x.match}'),
        ')',
      ),
      join('-', tie('path')),
    ),
  }
}).expression
