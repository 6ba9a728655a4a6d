import { describe, expect, test } from 'vitest'
import type { Provider } from '../../src/manifest/provider.ts'
import { loadDialect } from '../../src/manifest/read/dialect.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import type { Pattern } from '../../src/manifest/types.ts'
import { acme, formatted, loadAcme, loadedDialect, plainDialect, plainEndpoint } from './files.ts'

function provider(text: string, env: { [name: string]: string } = {}): Provider {
  const { loaded, problems } = loadAcme(text, env)
  expect(formatted(problems)).toEqual([])
  return loaded?.provider as Provider
}

const problems = (text: string) => formatted(loadAcme(text).problems)

describe('a manifest on a dialect', () => {
  test('needs five lines; the rest has a default or comes from the dialect', () => {
    const made = provider(acme)
    expect(made).toMatchObject({
      slug: 'acme',
      signer: 'acme',
      baseUrl: 'http://127.0.0.1:9/v1',
      auth: { scheme: 'none' },
      timeouts: {
        connectMs: 5_000,
        firstEventMs: 600_000,
        betweenEventsMs: 60_000,
        wholeMs: 600_000,
        totalMs: 600_000,
      },
      unknownModels: 'refuse',
      missing: [],
      dialect: 'plain',
      chat: { path: '/generate', stream: { path: '/generate', format: 'sse', eventField: 'kind', done: 'END' } },
    })
    expect([...(made.chat?.events.keys() ?? [])]).toEqual(['piece', 'end', 'ping'])
  })

  test('what its dialect says of texts in events ends where the manifest reads events in its own way', () => {
    const dialect = loadedDialect(plainDialect.replace('stream: {', 'stream: { text: a.0.say,'))
    const textIn = (members: string) => {
      const source = readSource('acme.yaml', `${acme}endpoints: { chat: { ${members} } }\n`)
      const { loaded, problems: found } = loadManifest(source, { dialects: new Map([['plain', dialect]]), env: {} })
      expect(formatted(found)).toEqual([])
      return loaded?.provider.chat?.stream.text
    }
    expect(textIn('path: /other')).toEqual(['a', '0', 'say'])
    expect(textIn('stream: { text: b }')).toEqual(['b'])
    for (const own of [`events: { more: '{}' }`, `patch: { event: '$' }`]) {
      expect(textIn(own)).toBeUndefined()
      expect(textIn(`${own}, stream: { text: b }`)).toEqual(['b'])
    }
  })

  test('its single values win, its tables join by name, its lists add up', () => {
    const dialect = loadedDialect(
      `${plainDialect}    unsupported: [top_k]\nerrors: { 429: rate_limited, busy: provider_failed }\ntraits: [{ match: a, facts: { x: 1 } }]\nheaders: { one: a, two: b }\n`,
    )
    const text = `${acme}headers: { two: c }
errors: { busy: rate_limited }
traits: [{ match: b, facts: { x: 2 } }]
timeouts: { total: 20m }
endpoints:
  chat:
    path: /other
    stream: { path: /streamed }
    events: { piece: '{ "text": "changed" }', more: '{}' }
    unsupported: [messages.name]
    history: { alternate: true }
`
    const { loaded } = loadManifest(readSource('acme.yaml', text), { dialects: new Map([['plain', dialect]]), env: {} })
    expect(loaded?.provider).toMatchObject({
      headers: { one: 'a', two: 'c' },
      errors: { 429: 'rate_limited', busy: 'rate_limited' },
      timeouts: { connectMs: 5_000, totalMs: 1_200_000 },
      chat: { path: '/other', stream: { path: '/streamed', eventField: 'kind' }, history: { alternate: true } },
    })
    expect(loaded?.provider.traits.map(({ facts }) => facts.x)).toEqual([1, 2])
    expect(loaded?.provider.chat?.events.get('piece')?.text).toContain('changed')
    expect(loaded?.provider.chat?.unsupported.map(({ field }) => field)).toEqual(['top_k', 'messages.name'])
  })

  test('an unknown dialect is reported with the closest name', () => {
    expect(problems(acme.replace('plain', 'plian'))).toEqual([
      '5:10 there is no dialect `plian`; did you mean `plain`?',
    ])
  })

  test('may have an endpoint that counts tokens, if its format is that of a client API which counts', () => {
    const counting = `${acme}endpoints: { count: { path: /count } }\n`
    expect(problems(counting)).toEqual([
      '6:14 `endpoints.count` passes on bodies of a client API: the dialect must be `same_as: messages` or `responses`',
    ])
    const dialects = new Map([['plain', loadedDialect(`${plainDialect}same_as: messages\n`)]])
    const { loaded } = loadManifest(readSource('acme.yaml', counting), { dialects, env: {} })
    expect(loaded?.provider.count).toEqual({ path: '/count' })
    expect(provider(acme)).not.toHaveProperty('count')
    expect(problems(`${acme}endpoints: { count: {} }\n`)[0]).toMatch(/path/)
  })

  test('a slug that differs from the file name is reported', () => {
    expect(problems(acme.replace('slug: acme', 'slug: other'))[0]).toMatch(/^1:7 the slug `other` must be the name/)
  })
})

test('a manifest without a dialect defines everything itself', () => {
  const own = acme.replace('dialect: plain\n', '')
  expect(provider(own + plainEndpoint).chat?.path).toBe('/generate')
  expect(problems(own)).toEqual([
    expect.stringContaining('`endpoints.chat` needs `path`, or the manifest needs a `dialect` that has it'),
    expect.stringContaining('needs `request`'),
    expect.stringContaining('needs `reply`'),
    expect.stringContaining('needs `events`'),
  ])
})

describe('secrets and addresses', () => {
  const bearer = acme.replace('none', 'bearer, secret: "${ACME_KEY}"')

  test('come from the environment', () => {
    expect(provider(bearer, { ACME_KEY: ' k1\n' }).auth).toEqual({ scheme: 'bearer', secret: 'k1' })
  })

  test('that are not set leave the provider unconfigured; nothing else fails', () => {
    const text = `${bearer.replace('127.0.0.1', '${ACME_HOST}')}headers: { x-org: "\${ACME_ORG:-none}" }\n`
    const made = provider(text)
    expect(made.missing).toEqual(['ACME_HOST', 'ACME_KEY'])
    expect(made.headers).toEqual({ 'x-org': 'none' })
  })

  test('that cannot be right are reported', () => {
    expect(problems(acme.replace('http://', 'ftp://'))).toEqual(['3:11 `base_url` must be an http or https address'])
    expect(problems(acme.replace('9/v1', '9/${1}'))[0]).toContain('is not the start of a reference')
    expect(problems(`${acme}headers: { "a b": x }\n`)).toEqual(['6:19 `a b` cannot be the name of a header'])
  })

  test('a header or parameter has a scheme that uses it', () => {
    expect(problems(acme.replace('none', 'bearer'))).toEqual(['4:7 `auth` with the scheme bearer needs `secret`'])
    expect(problems(acme.replace('none', 'none, header: x'))).toEqual([
      '4:23 `auth` with the scheme none does not use `header`',
    ])
  })

  test('settings override the manifest, and their problems are reported at their positions', () => {
    const dialects = new Map([['plain', loadedDialect()]])
    const problemAt = (path: readonly (string | number)[], message: string) => ({
      file: 'config.yaml',
      line: 1,
      column: 1,
      message: `${path.join('.')}: ${message}`,
      severity: 'error' as const,
    })
    const load = (value: object, text = bearer) =>
      loadManifest(readSource('acme.yaml', text), { dialects, env: { MINE: 'm' }, settings: { value, problemAt } })
    const value = {
      base_url: 'http://localhost:1/',
      secret: '${MINE}',
      unknown_models: 'pass',
      timeouts: { total: '1s' },
    }
    expect(load(value).loaded?.provider).toMatchObject({
      baseUrl: 'http://localhost:1',
      auth: { secret: 'm' },
      unknownModels: 'pass',
      timeouts: { totalMs: 1_000, connectMs: 5_000 },
      missing: [],
    })
    expect(load({ secret: '${MINE}' }, acme).problems).toMatchObject([
      { file: 'config.yaml', message: 'secret: acme takes no secret: the scheme of its `auth` is none' },
    ])
  })
})

describe('a mapping with names that nothing binds', () => {
  const patched = (reply: string) => problems(`${acme}endpoints:\n  chat:\n    patch:\n      reply: '${reply}'\n`)

  test('is reported, with the closest name, at its position', () => {
    expect(patched('{ "a": $uppercas(x) }')).toEqual([
      '9:22 there is no variable or function `$uppercas`; did you mean `$uppercase`?',
    ])
    expect(patched('($count := 1; $ ~> |$|{ "a": $cuont }|; $sum($n))')).toEqual([
      '9:44 there is no variable or function `$cuont`; did you mean `$count`?',
      '9:60 there is no variable or function `$n`',
    ])
  })

  test('is fine when they are bound in any way', () => {
    const reply =
      '($f := function($x) { $x + $y }; $y := 1; a@$b#$i.{ "k": $b, "i": $i, "e": $eval("1"), "j": $toJson($$) })'
    expect(patched(reply)).toEqual([])
  })
})

describe('sections of a request', () => {
  const ofSections = (request: string) => problems(`${acme}endpoints: { chat: { request: ${request} } }\n`)

  test('are texts by name, at least one; one named nearly `dropped` is a mistake', () => {
    expect(ofSections(`{ a: '{ "m": model }', b: '[system, messages]' }`)).toEqual([])
    expect(ofSections('"model"')).toEqual([expect.stringContaining('must be sections, such as `request: { body:')])
    expect(ofSections('{}')).toEqual([expect.stringContaining('`endpoints.chat.request` must not be empty')])
    expect(ofSections(`{ a: '{}', droped: '[]' }`)).toEqual([
      '6:42 the section `droped` would be part of the body; did you mean `dropped`?',
    ])
  })

  test('that are wrong are reported at their own text, and so are shared definitions, once', () => {
    const text = `${acme}define: |\n  $a := $b;\nendpoints:\n  chat:\n    request:\n      let: '$x := $y;'\n      body: '{ "m": $x + $z }'\n    patch: { request: '$' }\n`
    expect(problems(text)).toEqual(['7:9 there is no variable or function `$b`'])
    expect(problems(text.replace('$b', '1'))).toEqual([
      '11:19 there is no variable or function `$y`',
      '12:26 there is no variable or function `$z`',
    ])
  })
})

test('a request mapping names only fields and facts that exist', () => {
  const own = (sections: string) => problems(`${acme}endpoints: { chat: { request: { ${sections} } } }\n`)
  expect(
    own(
      `a: '{ "m": model, "n": target.max_output_tokens }', dropped: '[1 > 0 ? "seed" : "tools.mcp", "extensions.x"]'`,
    ),
  ).toEqual([])
  expect(own(`a: '{ "m": target.trait.x, "k": $$.target.signer }', dropped: '[model ? "sed"]'`)).toEqual([
    expect.stringContaining('`sed` is neither a field of the neutral request nor a group; did you mean `seed`?'),
    expect.stringContaining('`target` has no `trait`; did you mean `traits`?'),
  ])
})

test('what an endpoint cannot mean is told', () => {
  const chat = (members: string) => problems(`${acme}endpoints: { chat: { ${members} } }\n`)
  expect(chat(`request: { dropped: '["seed"]' }`)).toEqual([
    expect.stringContaining('a request needs a section besides `let` and `dropped`'),
  ])
  expect(chat('path: "/v1/{modell}"')).toEqual([
    expect.stringContaining('`{modell}` is not a placeholder: the placeholders are {model} and {+model}'),
  ])
  expect(chat('stream: { data: text, event_field: kind }')).toEqual([
    expect.stringContaining('`event_field` does not apply where the data is text'),
  ])
  expect(chat('stream: { data: text, text: say }')).toEqual([
    expect.stringContaining('`stream.text` does not apply where the data is text'),
  ])
  expect(chat(`unsupported: [{ field: seed, when: 'target.trait.x' }, web_search.max_use, messages.nam]`)).toEqual([
    expect.stringContaining('`target` has no `trait`'),
    expect.stringContaining('`web_search` has no `max_use`; did you mean `max_uses`?'),
    expect.stringContaining('`messages` has no `nam`; did you mean `name`?'),
  ])
  expect(chat(`patch: { request: '$ ~> |$|{ "x": $target.trait.x }|' }`)).toEqual([
    expect.stringContaining('`target` has no `trait`'),
  ])
  const own = `${plainEndpoint.slice(0, plainEndpoint.indexOf('    events:'))}    events: {}\n`
  expect(problems(acme.replace('dialect: plain\n', '') + own)).toEqual([expect.stringContaining('needs `events`')])
})

describe('a mapping that is not JSONata', () => {
  test('is reported at its line and column inside the block', () => {
    const text = `${acme}endpoints:\n  chat:\n    request:\n      body: |\n        {\n        "model": model,\n        "x": ] }\n`
    expect(problems(text)).toEqual([expect.stringMatching(/^12:14 not JSONata: /)])
  })

  test('is reported inside quotes and lists too', () => {
    const text = `${acme}endpoints:\n  chat:\n    unsupported:\n      - { field: seed, when: 'seed = ' }\n    events: { x: "{ (" }\n`
    expect(problems(text)).toEqual([
      expect.stringMatching(/^10:2\d not JSONata: /),
      expect.stringMatching(/^9:3\d not JSONata: /),
    ])
  })
})

test('traits, unsupported fields and tool ids are checked', () => {
  const text = `${acme}traits: [{ match: "(", facts: {} }]
endpoints:
  chat:
    unsupported: [sed, parts.vidio, parts.cache, tools.custom]
    history: { tool_id: { pattern: "[" }, inline_media: { except: "(" } }
`
  expect(problems(text)).toEqual([
    expect.stringMatching(/^6:19 not a regular expression: /),
    expect.stringMatching(/^10:36 not a regular expression: /),
    expect.stringMatching(/^10:67 not a regular expression: /),
    '9:19 `sed` is neither a field of the neutral request nor a group; did you mean `seed`?',
    '9:24 parts have no `vidio`; did you mean `video`?',
  ])
})

describe('patterns that texts of clients are searched with', () => {
  const chat = (history: object) => `endpoints: { chat: { history: ${JSON.stringify(history)} } }\n`
  const places: [string, (pattern: string) => string][] = [
    ['traits', (match) => `traits: [${JSON.stringify({ match, facts: {} })}]\n`],
    ['variants', (match) => `variants: [${JSON.stringify({ match, signer: 'x' })}]\n`],
    ['tool_id', (pattern) => chat({ tool_id: { pattern } })],
    ['inline_media', (except) => chat({ inline_media: { except } })],
  ]
  const hostile = ['^(?=x)(a+)+$', '(a|a)*\\1', '(?=(a+)+)b', '(?:a{1,200}){200}']

  test.each(places)('that could run for very long are refused with their place: %s', (_, text) => {
    for (const pattern of hostile) {
      expect(problems(acme + text(pattern)), pattern).toEqual([
        expect.stringMatching(/^\d+:\d+ a regular expression that can run for very long: /),
      ])
    }
  })

  test('run in bounded time, whatever a client sends', () => {
    const slow = ['^(a+)+$', '(a|a)*b', '(.*a.*){12}$', '(a|aa)+$']
    const long = `${'a'.repeat(50_000)}!`
    for (const [name, text] of places.slice(2)) {
      for (const pattern of slow) {
        const { tool_id, inline_media } = provider(acme + text(pattern)).chat?.history ?? {}
        const read = tool_id?.pattern ?? (inline_media as { except?: Pattern } | undefined)?.except
        expect(read?.test(long), `${name} ${pattern}`).toBe(pattern === '(.*a.*){12}$')
      }
    }
  })

  test('of addresses ignore the case of letters, in classes and escapes too', () => {
    const excepts = (except: string) => {
      const { inline_media } = provider(acme + chat({ inline_media: { except } })).chat?.history ?? {}
      return (inline_media as { except: Pattern }).except
    }
    const samples = ['gs://A', 'GS://a', 'https://You.tube/x-Y', 'S3:\\', 'A9', '_', 'b', 'Kk', '-']
    const patterns = [
      '^gs:',
      '^[g-s]+:',
      '[^A-Z]',
      '\\w-y',
      '\\x41',
      '\\u0047S',
      '(?<Name>kk)',
      'you\\.tube',
      '[\\]a-c]$',
    ]
    for (const pattern of patterns) {
      const read = excepts(pattern)
      for (const sample of samples)
        expect(read.test(sample), `${pattern} in ${sample}`).toBe(new RegExp(pattern, 'i').test(sample))
    }
  })
})

describe('a dialect', () => {
  const dialectProblems = (text: string, file = 'plain.yaml') => formatted(loadDialect(readSource(file, text)).problems)

  test('defines its endpoint completely, in a file of its name', () => {
    expect(dialectProblems(plainDialect, 'other.yaml')).toEqual([
      '1:10 the dialect `plain` must be in plain.yaml, not other.yaml',
    ])
    expect(dialectProblems('dialect: plain\nendpoints: { chat: { path: /x } }\n')).toHaveLength(3)
  })

  test('that cannot be used is reported by the manifests that name it', () => {
    const { problems: found } = loadManifest(readSource('acme.yaml', acme), {
      dialects: new Map([['plain', 'unusable']]),
      env: {},
    })
    expect(formatted(found)).toEqual(['5:10 the dialect `plain` has errors of its own'])
  })
})

test('a code that is a name of every object is not taken for an error of the table', () => {
  expect(provider(`${acme}errors: { busy: rate_limited }\n`).errors.constructor).toBeUndefined()
})
